import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createKernel } from '../../../kernel/index.js'
import configuration from '../../../plugins/platform/configuration/index.js'
import tcpDoor from '../../../plugins/platform/tcp/index.js'
import { label } from '../../fixtures/cases.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'
import { type Ask, ask, DOORS, type Doors, openDoors } from './doors.js'
import { faults } from './fault-plugin.js'

const test = suite<{ doors: Doors }>('errors')
test.before(async context => {
  context.doors = await openDoors([faults])
})
test.after(({ doors }) => doors.close())

const json = { 'content-type': 'application/json' }

/** What is asked, and the status and code that both doors answer with. */
const CASES: readonly (readonly [url: string, ask: Ask, status: number, code: string])[] = [
  ['/api/faults/a?limit=many', {}, 400, 'invalid_query'],
  ['/api/faults/a?limit=1&limit=2', {}, 400, 'invalid_query'],
  ['/api/faults/a?limt=1', {}, 400, 'invalid_query'],
  ['/api/faults/a', { method: 'PUT' }, 400, 'invalid_request'],
  ['/api/faults/a', { method: 'PUT', body: '', headers: json }, 400, 'invalid_request'],
  ['/api/faults/a', { method: 'PUT', body: ' \n', headers: json }, 400, 'invalid_request'],
  ['/api/faults/a', { method: 'PUT', body: '{"token":' }, 400, 'malformed_json'],
  ['/api/faults/a', { method: 'PUT', body: '{"__proto__":{"x":1}}' }, 400, 'malformed_json'],
  ['/api/faults/a', { method: 'PUT', body: '{"deep":{"constructor":{"prototype":1}}}' }, 400, 'malformed_json'],
  ['/api/faults/a', { method: 'PUT', body: `{"deep":${'['.repeat(200)}${']'.repeat(200)}}` }, 400, 'malformed_json'],
  ['/api/faults/a', { method: 'PUT', body: `${'['.repeat(30_000)}${']'.repeat(30_000)}` }, 400, 'malformed_json'],
  ['/api/faults/a', { method: 'PUT', body: '[]' }, 400, 'invalid_request'],
  ['/api/faults/a', { method: 'PUT', body: { token: 'tok_1', more: 1 } }, 400, 'invalid_request'],
  ['/api/faults/%zz', {}, 400, 'invalid_request'],
  ['/api/faults/%c3', {}, 400, 'invalid_request'],
  ['/api/faults/unauthorized', {}, 401, 'who_are_you'],
  ['/api/faults/forbidden', {}, 403, 'forbidden'],
  ['/api/nothing', {}, 404, 'route_not_found'],
  ['/', {}, 404, 'route_not_found'],
  ['/api/faults/a', { method: 'DELETE' }, 404, 'route_not_found'],
  ['/api/faults/a', { method: 'OPTIONS' }, 404, 'route_not_found'],
  ['/api/faults/a', { method: 'PROPFIND' }, 404, 'route_not_found'],
  ['/api/faults/a', { method: 'QUERY' }, 404, 'route_not_found'],
  ['/api/faults/conflict', {}, 409, 'version_conflict'],
  ['/api/faults/a', { method: 'PUT', body: { token: 'x'.repeat(70_000) } }, 413, 'payload_too_large'],
  [
    '/api/faults/a',
    { method: 'PUT', body: JSON.stringify('x'.repeat(70_000)), headers: { 'transfer-encoding': 'chunked' } },
    413,
    'payload_too_large',
  ],
  [
    '/api/faults/a',
    { method: 'PUT', body: 'a=1', headers: { 'content-type': 'text/plain' } },
    415,
    'unsupported_media_type',
  ],
  ['/api/faults/a', { method: 'POST', body: 'a=1', headers: { 'content-type': 'a/b' } }, 415, 'unsupported_media_type'],
  [
    '/api/faults/a',
    { method: 'PUT', body: '{}', headers: { 'content-type': 'application/json; charset=utf-16' } },
    415,
    'unsupported_media_type',
  ],
  [
    '/api/faults/a',
    { method: 'PUT', body: '{}', headers: { 'content-encoding': 'gzip' } },
    415,
    'unsupported_media_type',
  ],
  ['/api/faults/a', { headers: { expect: 'a miracle' } }, 417, 'expectation_failed'],
  ['/api/faults/a', { method: 'PUT', body: { token: 1 } }, 422, 'unprocessable'],
  ['/api/faults/often', {}, 429, 'too_often'],
  [`/api/faults/a?limit=${'1'.repeat(20_000)}`, {}, 431, 'headers_too_large'],
  ['/api/faults/a', { headers: { big: 'x'.repeat(20_000) } }, 431, 'headers_too_large'],
  ['/api/faults/error', {}, 500, 'internal'],
  ['/api/faults/text', {}, 500, 'internal'],
  ['/api/faults/nothing', {}, 500, 'internal'],
  ['/api/faults/status', {}, 500, 'internal'],
  ['/api/wrong', {}, 500, 'reply_invalid'],
  ['/api/faults/unavailable', {}, 503, 'unavailable'],
  ['/api/faults/read-only', {}, 503, 'file_unwritable'],
  ['/api/faults/unwritable', {}, 503, 'file_unwritable'],
]

const labelOf = (url: string, { method = 'GET', headers, body }: Ask) =>
  [`${method} ${label(url, 30)}`, headers && label(headers, 40), body && label(body, 30)].filter(Boolean).join(' ')

for (const door of DOORS) {
  for (const [url, request, status, code] of CASES)
    test(`${door}: ${status} ${code} for ${labelOf(url, request)}`, async ({ doors }) => {
      const reply = await ask(doors.where[door], url, request)
      assert.equal([reply.status, reply.body.code], [status, code], reply.text.slice(0, 200))
      assert.is(reply.headers['content-type'], 'application/json; charset=utf-8')
      assert.type(reply.body.error, 'string')
      const members = Object.keys(reply.body).filter(name => !['error', 'code', 'details'].includes(name))
      assert.equal(members, [])
      assert.ok(reply.text.length < 1000)
    })

  test(`${door}: internal failures are only in the log`, async ({ doors }) => {
    for (const name of ['error', 'text', 'status']) {
      assert.not.match((await ask(doors.where[door], `/api/faults/${name}`)).text, /hunter2/)
      assert.match(doors.kernel.host.faults().at(-1)?.error ?? '', /hunter2/)
      assert.is(doors.kernel.host.faults().at(-1)?.owner, 'faults')
    }
  })

  test(`${door}: a handler that returns nothing is reported with a hint for its author`, async ({ doors }) => {
    assert.is((await ask(doors.where[door], '/api/silent')).status, 500)
    assert.match(doors.kernel.host.faults().at(-1)?.error ?? '', 'the handler returned no reply')
  })

  test(`${door}: the text of a refusal names the place once`, async ({ doors }) => {
    const put = (body?: string) => ask(doors.where[door], '/api/faults/a', { method: 'PUT', body })
    assert.is((await put('[]')).body.error, 'body: an object is expected, not an array')
    assert.match((await put('{"token":"tok_1","more":1}')).body.error, /^body: more: /)
  })

  test(`${door}: Retry-After and the next step are sent`, async ({ doors }) => {
    const often = await ask(doors.where[door], '/api/faults/often')
    assert.is(often.headers['retry-after'], '7')
    const unauthorized = await ask(doors.where[door], '/api/faults/unauthorized')
    assert.equal(unauthorized.body, {
      error: 'say who you are',
      code: 'who_are_you',
      details: { next: 'send both identity headers' },
    })
  })

  test(`${door}: request contents appear neither in the reply nor in the log`, async ({ doors }) => {
    const secret = 'hunter3-very-secret'
    const before = doors.log.length
    const put = (body: unknown, headers: Record<string, string> = {}) =>
      ask(doors.where[door], '/api/faults/a', { method: 'PUT', body, headers })
    const replies = [
      await put({ token: secret }),
      await put({ token: [secret] }),
      await put({ token: 'tok_1', pin: 48151623 }),
      await put({ token: 'tok_1', kind: secret }),
      await put(`{"token":"${secret}"`),
      await put(`{"token":${secret}}`),
      await put(`"${secret}"`),
      await put(secret, { 'content-type': secret }),
      await put('{}', { 'content-encoding': secret }),
      await ask(doors.where[door], `/api/faults/a?limit=${secret}`),
      await ask(doors.where[door], '/api/faults/error', { headers: { authorization: `Bearer ${secret}` } }),
      await ask(doors.where[door], `/api/nothing?token=${secret}`),
      await ask(doors.where[door], `/api/faults/%zz${secret}`),
    ]
    for (const [i, { status, text }] of replies.entries()) {
      assert.ok(status >= 400, `${i}`)
      assert.not.match(text, new RegExp(`${secret}|48151623`), `${i}`)
    }
    assert.match(replies[0]?.text ?? '', /token: must have the format /)
    assert.not.match(JSON.stringify(doors.log.slice(before)), new RegExp(secret))
  })
}

test('a byte order mark is skipped, and bytes that are not UTF-8 are refused', async ({ doors }) => {
  const put = (body: string) => ask(doors.where.socket, '/api/faults/a', { method: 'PUT', body })
  assert.is((await put('\ufeff{"token":"tok_1"}')).status, 200)
  assert.is((await put('{"token":"tok_ü😀"}')).status, 200)
  assert.is((await put('{"token":"tok_1","deep":'.concat('['.repeat(99), ']'.repeat(99), '}'))).status, 200)
})

test('a path parameter is decoded once and cannot become a path', async ({ doors }) => {
  const nameOf = async (text: string) => (await ask(doors.where.socket, `/api/faults/${text}`)).body.name
  assert.is(await nameOf('a%2Fb'), 'a/b')
  assert.is(await nameOf('a%252Fb'), 'a%2Fb')
  assert.is(await nameOf('..%2F..%2Fetc'), '../../etc')
  assert.is(await nameOf('%E2%82%AC'), '€')
  assert.is(await nameOf('__proto__'), '__proto__')
  assert.is(await nameOf('x'.repeat(4000)), 'x'.repeat(4000))
})

test('HEAD is not served', async ({ doors }) => {
  const { status, text } = await ask(doors.where.tcp, '/api/faults/a', { method: 'HEAD' })
  assert.equal([status, text], [404, ''])
})

test('trust depends on the transport, and no header changes it', async ({ doors }) => {
  const headers = {
    'x-forwarded-for': '203.0.113.9',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    forwarded: 'for=203.0.113.9;host=evil.example',
    'x-real-ip': '203.0.113.9',
    'x-http-method-override': 'DELETE',
  }
  const socket = (await ask(doors.where.socket, '/api/actor', { headers })).body
  // A proxy that names somebody else is not taken for the own user.
  assert.is((await ask(doors.where.tcp, '/api/actor', { headers })).body.code, 'identity_required')
  const tcp = (await ask(doors.where.tcp, '/api/actor')).body
  const inject = JSON.parse((await doors.kernel.inject({ method: 'GET', url: '/api/actor', headers })).body)
  assert.equal(socket.actor, {
    kind: 'daemon',
    id: 'daemon-control',
    owner: { kind: 'daemon', id: 'daemon-control' },
    source: { kind: 'daemon', id: 'system' },
    origin: 'uds',
  })
  assert.equal(tcp.actor, { ...socket.actor, origin: 'http' })
  assert.equal(inject.actor, socket.actor)
  assert.equal([socket.door, tcp.door, inject.door], ['socket', 'tcp', 'inject'])
  assert.is((await ask(doors.where.socket, '/api/socket-only')).status, 200)
  assert.is((await ask(doors.where.tcp, '/api/socket-only')).body.code, 'route_not_found')
})

test('TCP serves its own host names and no other site', async ({ doors }) => {
  const { port } = doors
  const get = async (headers: Record<string, string>) => {
    const { status, body } = await ask(doors.where.tcp, '/api/faults/a', { headers })
    return status === 200 ? 200 : `${status} ${body.code}`
  }
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, `LOCALHOST:${port}`])
    assert.is(await get({ host }), 200, host)
  for (const host of ['localhost', `evil.example:${port}`, `localhost:${port + 1}`, `localhost.evil.example:${port}`])
    assert.is(await get({ host }), '421 misdirected', host)
  for (const origin of ['null', 'https://evil.example', `http://localhost:${port + 1}`, `https://localhost:${port}`])
    assert.is(await get({ origin }), '403 cross_site', origin)
  assert.is(await get({ origin: `http://localhost:${port}` }), 200)
  for (const site of ['cross-site', 'same-site', 'anything'])
    assert.is(await get({ 'sec-fetch-site': site }), '403 cross_site', site)
  const preflight = await ask(doors.where.tcp, '/api/faults/a', {
    method: 'OPTIONS',
    headers: { origin: 'https://evil.example', 'access-control-request-method': 'PUT' },
  })
  assert.is(preflight.status, 403)
  const allowed = Object.keys(preflight.headers).filter(name => name.startsWith('access-control'))
  assert.equal(allowed, [])
})

test('a start with a bind address reachable by others is refused', async () => {
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'example.com']) {
    const home = await temporaryFolder('bind')
    await writeFile(path.join(home, 'config.json'), JSON.stringify({ http: { port: 0, host } }))
    const started = await createKernel({ home, plugins: [configuration, tcpDoor], listen: ['tcp'] }).then(
      kernel => kernel.close().then(() => 'started'),
      error => error.code,
    )
    assert.is(started, 'forbidden', host)
    await rm(home, { recursive: true, force: true })
  }
})

test('a full disk gives 507 only to writes', async () => {
  const svc = await boot({ plugins: [faults], freeBytes: async () => 0 })
  const full = await svc.request('PUT', '/api/faults/a', { token: 'tok_1' })
  assert.equal([full.status, full.body.code], [507, 'disk_full'])
  assert.is((await svc.request('GET', '/api/faults/a')).status, 200)
  await svc.close()
})

test.run()
