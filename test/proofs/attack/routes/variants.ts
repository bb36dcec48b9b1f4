import type { Chance } from '../../library/chance.js'
import type { Sent } from './exchange.js'
import type { Operation, Routes } from './sample.js'

export type Door = 'socket' | 'tcp'

export interface Target {
  readonly door: Door
  readonly port: number
  /** What lets in over TCP: without it everything would be refused before it is read. */
  readonly token: string
  readonly operation: Operation
  readonly routes: Routes
  /** Values of path parameters that name something. */
  readonly known: Readonly<Record<string, string>>
  readonly chance: Chance
}

export interface Variant {
  readonly name: string
  /** Doors on which the request must be refused, whatever the route. */
  readonly refused?: readonly Door[]
  /** What is hostile is the body alone, which a GET is not read for. */
  readonly bodied?: boolean
  readonly make: (target: Target) => Sent
}

const BOTH: readonly Door[] = ['socket', 'tcp']
const JSON_TYPE = 'content-type: application/json'

interface Parts {
  readonly path?: string
  readonly host?: string | undefined
  readonly fields?: readonly string[]
  readonly body?: string | Buffer
  readonly type?: string
  readonly pace?: Sent['pace']
}

/** A request whose parts are decent where the variant gives none. */
function request(target: Target, parts: Parts): Sent {
  const { operation, port } = target
  const body = parts.body === undefined ? undefined : Buffer.from(parts.body as string)
  const host = 'host' in parts ? parts.host : `host: localhost:${port}`
  const lines = [
    `${operation.method} ${parts.path ?? pathOf(target)} HTTP/1.1`,
    ...(host === undefined ? [] : [host]),
    'connection: close',
    ...(target.door === 'tcp' ? [`authorization: Bearer ${target.token}`] : []),
    ...(body ? [parts.type ?? JSON_TYPE, `content-length: ${body.length}`] : []),
    ...(parts.fields ?? []),
  ]
  const sent = { head: `${lines.join('\r\n')}\r\n\r\n`, ...(body ? { body } : {}) }
  return parts.pace ? { ...sent, pace: parts.pace } : sent
}

/** Known names, so that a request gets past the look-up; what deletes gets none, for the others need it. */
function pathOf({ operation, known }: Target, as?: string): string {
  return operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => {
    return as ?? (operation.method === 'DELETE' ? 'nothing' : (known[name] ?? 'nothing'))
  })
}

const sampleOf = ({ operation, routes, chance }: Target): unknown =>
  operation.body ? routes.sample(operation.body, chance) : {}

/** A body of which one member, at any depth, is this JSON text. */
function withMember(target: Target, text: string): Sent {
  const mark = '\u2603mark'
  const members: [Record<string, unknown>, string][] = []
  const walk = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, member] of Object.entries(value)) {
      members.push([value as Record<string, unknown>, name])
      walk(member)
    }
  }
  const body = sampleOf(target)
  walk(body)
  if (members.length === 0) return request(target, { body: text })
  const [owner, name] = target.chance.of(members)
  owner[name] = mark
  return request(target, { body: JSON.stringify(body).replace(JSON.stringify(mark), () => text) })
}

const MEMBERS: Readonly<Record<string, string>> = {
  null: 'null',
  'an array': '[1,2]',
  'an object': '{"a":{"b":[]}}',
  'a boolean': 'true',
  'a negative number': '-1',
  'a fraction': '0.5',
  'a huge number': '1e308',
  'a number beyond all': '1e999',
  'an inexact number': '9007199254740993',
  'an empty string': '""',
  'a huge string': JSON.stringify('x'.repeat(200_000)),
  'deep nesting': `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
  'a prototype': '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
  'a NUL': '"a\\u0000b"',
  'control characters': '"\\u0001\\u001b[2J\\r\\n\\u007f"',
  'a lone surrogate': '"\\ud800"',
  'path traversal': '"../../../../../../etc/passwd"',
  'an absolute path': '"/proc/self/environ"',
  'a shell': '"$(touch /tmp/svc-attacked); `id`"',
  'a direction mark': '"\\u202egnp.exe"',
}

const BODIES: Readonly<Record<string, string | Buffer>> = {
  'no JSON': '{"a":',
  'a string': '"x"',
  'an array': '[{}]',
  null: 'null',
  'a prototype': '{"__proto__":{"a":1}}',
  'the same key twice': '{"name":"a","name":"b"}',
  'no UTF-8': Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  'a byte order mark': '\ufeff{}',
  'deep nesting': `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`,
  'many members': `{${Array.from({ length: 20_000 }, (_, n) => `"m${n}":0`).join(',')}}`,
}

const PATHS: Readonly<Record<string, string>> = {
  traversal: '..%2f..%2f..%2fetc%2fpasswd',
  dots: '..',
  'encoded dots': '%2e%2e',
  'a NUL': 'a%00b',
  'no UTF-8': '%ff%fe',
  'no encoding': '%zz',
  'a lone surrogate': '%ed%a0%80',
  'a prototype': '__proto__',
  'a constructor': 'constructor',
  'an enormous id': 'x'.repeat(6000),
  'a longer one': 'x'.repeat(20_000),
  'a negative number': '-1',
  'a huge number': '9'.repeat(400),
  'control characters': '%0d%0aset-cookie:%20a=b',
  emptiness: '',
  quotes: "'%22;--",
}

const QUERY_VALUES = ['-1', '1e99', '99999999999999999999', '%00', '%ff', '..%2f..', 'x'.repeat(5000), '%ed%a0%80', '']

const fields = (count: number) => Array.from({ length: count }, () => 'a:')

/** Every hostile form of a request. */
export const variants: readonly Variant[] = [
  ...Object.entries(MEMBERS).map(([name, text]) => ({
    name: `a member that is ${name}`,
    make: (target: Target) => withMember(target, text),
  })),
  {
    name: 'a member too few',
    make: target => {
      const body = sampleOf(target)
      // Of a body that takes anything there is none.
      const members = typeof body === 'object' && body !== null ? { ...(body as Record<string, unknown>) } : {}
      const names = Object.keys(members)
      if (names.length > 0) delete members[target.chance.of(names)]
      return request(target, { body: JSON.stringify(members) })
    },
  },
  {
    name: 'a member too many',
    make: target => request(target, { body: JSON.stringify({ ...(sampleOf(target) as object), unexpected: 1 }) }),
  },
  ...Object.entries(BODIES).map(([name, body]) => ({
    name: `a body that is ${name}`,
    make: (target: Target) => request(target, { body }),
  })),
  ...Object.entries(PATHS).map(([name, id]) => ({
    name: `an id with ${name}`,
    make: (target: Target) => request(target, { path: pathOf(target, id) }),
  })),
  {
    name: 'a query key twice',
    make: target => {
      const [name = 'limit'] = target.operation.parameters.filter(at => at.in === 'query').map(at => at.name)
      return request(target, { path: `${pathOf(target)}?${name}=1&${name}=2&${name}[a]=3` })
    },
  },
  {
    name: 'hostile query values',
    make: target => {
      const names = target.operation.parameters.filter(at => at.in === 'query').map(({ name }) => name)
      const name = names.length > 0 ? target.chance.of(names) : '__proto__'
      return request(target, { path: `${pathOf(target)}?${name}=${target.chance.of(QUERY_VALUES)}` })
    },
  },
  {
    name: 'many query keys',
    make: target => request(target, { path: `${pathOf(target)}?${'a=1&'.repeat(3000)}` }),
  },
  ...[
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=a',
    'application/json; charset=utf-7',
  ].map(type => ({
    name: `content of type ${type}`,
    refused: BOTH,
    make: (target: Target) => request(target, { body: '{}', type: `content-type: ${type}` }),
  })),
  {
    name: 'a compressed body',
    refused: BOTH,
    make: target => request(target, { body: '{}', fields: ['content-encoding: gzip'] }),
  },
  { name: 'no Host', refused: ['tcp'], make: target => request(target, { host: undefined }) },
  { name: 'a foreign Host', refused: ['tcp'], make: target => request(target, { host: 'host: evil.example' }) },
  {
    name: 'two Hosts',
    refused: BOTH,
    make: target => request(target, { fields: [`host: localhost:${target.port}`] }),
  },
  ...['null', 'http://evil.example', 'file://', 'http://localhost:1'].map(origin => ({
    name: `the Origin ${origin}`,
    refused: ['tcp'] as const,
    make: (target: Target) => request(target, { fields: [`origin: ${origin}`] }),
  })),
  {
    name: 'two Origins',
    refused: BOTH,
    make: target =>
      request(target, { fields: [`origin: http://localhost:${target.port}`, 'origin: http://evil.example'] }),
  },
  {
    name: 'a request from another site',
    refused: ['tcp'],
    make: target => request(target, { fields: ['sec-fetch-site: cross-site'] }),
  },
  ...[201, 1000, 2100].map(count => ({
    name: `${count} header fields before the Origin`,
    refused: BOTH,
    make: (target: Target) => request(target, { fields: [...fields(count), 'origin: http://evil.example'] }),
  })),
  { name: 'a huge header', refused: BOTH, make: target => request(target, { fields: [`x: ${'y'.repeat(20_000)}`] }) },
  {
    name: 'an upgrade',
    make: target => request(target, { fields: ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-key: a'] }),
  },
  {
    name: 'an actor of its own choice',
    make: target => request(target, { body: '{"unexpected":1}', fields: ['x-svc-acting: act_1'] }),
  },
  {
    name: 'an expectation that nobody meets',
    refused: BOTH,
    make: target => request(target, { fields: ['expect: the-unexpected'] }),
  },
  ...['zz\r\n{}', '-1\r\n{}\r\n', 'fffffffffffffffff\r\n{}', '2\r\n{}garbage\r\n0\r\n\r\n'].map((chunks, n) => ({
    name: `chunks that are garbage (${n})`,
    refused: BOTH,
    bodied: true,
    make: (target: Target) => ({
      ...request(target, { fields: [JSON_TYPE, 'transfer-encoding: chunked'] }),
      body: Buffer.from(chunks),
    }),
  })),
  {
    name: 'a length and chunks',
    refused: BOTH,
    make: target => request(target, { body: '2\r\n{}\r\n0\r\n\r\n', fields: ['transfer-encoding: chunked'] }),
  },
  {
    name: 'a body over every limit',
    refused: BOTH,
    bodied: true,
    make: target => ({
      ...request(target, { fields: [JSON_TYPE, 'content-length: 999999999'] }),
      body: Buffer.alloc(1_500_000, 0x20),
    }),
  },
  {
    name: 'a body that is cut off',
    make: target => request(target, { body: `{"unexpected":"${'x'.repeat(100)}"}`, pace: 'cut' }),
  },
  {
    name: 'a body that comes slowly and never ends',
    make: target => request(target, { body: `{"unexpected":"${'x'.repeat(100)}"}`, pace: 'slow' }),
  },
]
