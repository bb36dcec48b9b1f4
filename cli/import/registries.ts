import { basename } from 'node:path'
import * as v from 'valibot'
import { clip, shown } from '../../kernel/kit/text.js'
import { catalog } from '../../plugins/agents/providers/catalog.js'
import { ProviderEntry } from '../../plugins/agents/providers/entry.js'
import {
  type Document,
  ForeignFileError,
  type MemberPath,
  objectOf,
  parseJsonFile,
  type SourceFile,
  typeOf,
} from './foreign-file.js'
import { eachFile } from './other-agents.js'
import {
  type Around,
  type Findings,
  type Found,
  NotCarried,
  type SourceLocation,
  slug,
  type WantedServer,
} from './plan.js'
import { secretBase } from './secrets.js'

type Members = Readonly<Record<string, unknown>>

/** `server.json` of the MCP registry, one entry or a reply of its API. */
export function importMcpRegistry(files: readonly SourceFile[], around: Around): Found {
  return eachFile(files, (file, found) => {
    const document = parseJsonFile(file)
    for (const [path, entry] of entriesOf(document.value, 'servers', 'server')) {
      const location = { file: file.path, line: document.lineOf(path) }
      const name = typeof entry.name === 'string' ? entry.name : 'server'
      found.entry(location, inner(name), () => found.want(serverOf(name, entry, location, around, found)))
    }
  })
}

/** An entry of the ACP registry, or its whole list. */
export function importAcpRegistry(files: readonly SourceFile[], around: Around): Found {
  return eachFile(files, (file, found) => {
    const document = parseJsonFile(file)
    for (const [path, entry] of entriesOf(document.value, 'agents', 'agent')) {
      const location = { file: file.path, line: document.lineOf(path) }
      const id = typeof entry.id === 'string' ? entry.id : ''
      found.entry(location, inner(id || 'agent'), () => wantProvider(id, entry, location, around, found))
    }
  })
}

const inner = (text: string) => shown(text, 60).slice(1, -1)

/** The entries of a file, which is an entry, wraps one, or lists them. @throws ForeignFileError */
function* entriesOf(value: Document['value'], list: string, one: string): Generator<[MemberPath, Members]> {
  const top = objectOf(value)
  if (!top) throw new ForeignFileError(`an object is expected, not ${typeOf(value)}`, 1)
  const all = top[list]
  if (!Array.isArray(all)) return yield [objectOf(top[one]) ? [one] : [], objectOf(top[one]) ?? top]
  for (const [index, entry] of all.slice(0, 1000).entries()) {
    const members = objectOf(entry) ?? {}
    yield objectOf(members[one]) ? [[list, index, one], objectOf(members[one]) as Members] : [[list, index], members]
  }
}

/** Start command per package registry: the program, the words before the package, and the version separator. */
const RUNTIMES: Readonly<
  Record<string, { readonly program: string; readonly before: readonly string[]; readonly at: string }>
> = {
  npm: { program: 'npx', before: ['-y'], at: '@' },
  pypi: { program: 'uvx', before: [], at: '@' },
  oci: { program: 'docker', before: ['run', '-i', '--rm'], at: ':' },
  nuget: { program: 'dnx', before: ['--yes'], at: '@' },
}

/** The first supported way to run a server; the others are listed. @throws NotCarried */
function serverOf(
  full: string,
  entry: Members,
  location: SourceLocation,
  around: Around,
  found: Findings,
): WantedServer {
  const name = slug(full.split('/').at(-1) ?? '', 'server', 64)
  const ways = [
    ...listOf(entry.packages).map(one => [one, true] as const),
    ...listOf(entry.remotes).map(one => [one, false] as const),
  ]
  const whys: string[] = []
  for (const [index, [way, isPackage]] of ways.entries()) {
    try {
      const needs = new Needs(secretBase(name, around.workspaceId))
      const server = isPackage ? packageServer(way, needs) : remoteServer(way, needs)
      const others = ways.length - index - 1
      if (others > 0)
        found.leave(
          location,
          inner(full),
          `${others} other ways to run it are ignored; the first supported one is used`,
        )
      for (const [what, why] of needs.left) found.leave(location, `${inner(full)} ${what}`, why)
      return {
        kind: 'mcp_server',
        ...location,
        name,
        server,
        secrets: {},
        notes: name === full ? [] : [`of ${inner(full)}`],
      }
    } catch (error) {
      if (!(error instanceof NotCarried)) throw error
      whys.push(error.message)
    }
  }
  throw new NotCarried(whys[0] ?? 'it has neither packages nor remotes')
}

const listOf = (value: unknown): Members[] => (Array.isArray(value) ? value.map(one => objectOf(one) ?? {}) : [])

/** Values that a person has to supply before a server can run. */
class Needs {
  readonly left: [what: string, why: string][] = []

  constructor(private readonly base: string) {}

  /** Variables or headers: given values, and references for required values without one. */
  values(inputs: readonly Members[], of: 'env' | 'header') {
    const plain: Record<string, string> = {}
    const secret: Record<string, string> = {}
    for (const input of inputs) {
      const { name } = input
      if (typeof name !== 'string' || !/^[A-Za-z_][\w.-]{0,127}$/.test(name)) continue
      const value = valueIn(input)
      if (value !== undefined && input.isSecret !== true) plain[name] = value
      else if (input.isRequired === true || input.is_required === true) {
        secret[name] = `${this.base}/${of}/${name}`
        this.left.push([name, `it is required and has no value: svc vault put ${secret[name]}`])
      }
    }
    return { plain, secret }
  }
}

/** The default value of an input, with its variables expanded; undefined without one. */
function valueIn(input: Members): string | undefined {
  const { value, default: fallback } = input
  const text = [value, fallback].find(one => ['string', 'number', 'boolean'].includes(typeof one))
  if (text === undefined) return undefined
  const variables = objectOf(input.variables) ?? {}
  let isWhole = true
  const full = String(text).replace(/\{(\w+)\}/g, (whole, name: string) => {
    const inner = Object.hasOwn(variables, name) ? valueIn(objectOf(variables[name]) ?? {}) : undefined
    if (inner === undefined) isWhole = false
    return inner ?? whole
  })
  return isWhole ? full : undefined
}

/** @throws NotCarried when a required argument has no value */
function argumentsOf(inputs: readonly Members[]): string[] {
  return inputs.flatMap(input => {
    const value = valueIn(input)
    const name = typeof input.name === 'string' ? input.name : undefined
    const isNamed = input.type === 'named' && name !== undefined
    if (value !== undefined) return isNamed ? [name, value] : [value]
    if (input.isRequired !== true && input.is_required !== true) return []
    const what = name ?? input.valueHint ?? input.value_hint ?? input.description ?? 'an argument'
    throw new NotCarried(
      `its argument ${shown(String(what), 60)} is required and has no value; add it with svc mcp add`,
    )
  })
}

function packageServer(members: Members, needs: Needs): WantedServer['server'] {
  const type = String(members.registryType ?? members.registry_type ?? members.registry_name ?? '')
  const runtime = Object.hasOwn(RUNTIMES, type) ? RUNTIMES[type] : undefined
  if (!runtime)
    throw new NotCarried(`its package is of ${shown(type, 40)}; ${Object.keys(RUNTIMES).join(', ')} are known`)
  const transport = objectOf(members.transport)?.type ?? 'stdio'
  if (transport !== 'stdio') throw new NotCarried(`its package speaks ${typeOf(transport)}; stdio is known`)
  const identifier = members.identifier ?? members.name
  if (typeof identifier !== 'string' || !/^[@\w][\w@/.:+-]*$/.test(identifier))
    throw new NotCarried('its package has no name')
  const version =
    typeof members.version === 'string' && members.version !== '' && members.version !== 'latest'
      ? members.version
      : undefined
  const hasTag = type === 'oci' && /[:@][^/]+$/.test(identifier)
  const env = needs.values(listOf(members.environmentVariables ?? members.environment_variables), 'env')
  const passed = type === 'oci' ? Object.keys({ ...env.plain, ...env.secret }).flatMap(name => ['-e', name]) : []
  const hint = members.runtimeHint ?? members.runtime_hint
  return {
    command: typeof hint === 'string' && /^[\w.-]+$/.test(hint) ? hint : runtime.program,
    args: [
      ...runtime.before,
      ...passed,
      ...argumentsOf(listOf(members.runtimeArguments ?? members.runtime_arguments)).filter(
        word => !runtime.before.includes(word),
      ),
      version === undefined || hasTag ? identifier : `${identifier}${runtime.at}${version}`,
      ...argumentsOf(listOf(members.packageArguments ?? members.package_arguments)),
    ],
    ...(Object.keys(env.plain).length > 0 && { env: env.plain }),
    ...(Object.keys(env.secret).length > 0 && { secret_env: env.secret }),
  }
}

function remoteServer(members: Members, needs: Needs): WantedServer['server'] {
  const type = members.type ?? members.transport_type
  if (type !== 'streamable-http') throw new NotCarried(`it speaks ${typeOf(type)}; svc knows streamable-http`)
  const url = valueIn({ value: members.url, variables: members.variables })
  const parsed = url !== undefined && URL.canParse(url) ? new URL(url) : undefined
  if (url === undefined || !parsed || !/^https?:$/.test(parsed.protocol) || parsed.username || parsed.password)
    throw new NotCarried('its URL is not an http:// or https:// address, or has variables without a value')
  const headers = needs.values(listOf(members.headers), 'header')
  return {
    url,
    ...(Object.keys(headers.plain).length > 0 && { headers: headers.plain }),
    ...(Object.keys(headers.secret).length > 0 && { secret_headers: headers.secret }),
  }
}

/** Binary platforms of the ACP registry by Node's architecture. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' }

/** An agent from a package registry becomes a provider; a person has to install a binary. @throws NotCarried */
function wantProvider(
  id: string,
  entry: Members,
  location: SourceLocation,
  { platform }: Around,
  found: Findings,
): void {
  if (!/^[a-z][a-z0-9-]{0,63}$/.test(id)) throw new NotCarried('it has no id of a-z, 0-9 and -')
  if (catalog.some(({ name }) => name === id))
    throw new NotCarried('svc has a provider of this name: svc provider list')
  const distribution = objectOf(entry.distribution) ?? {}
  const [npx, uvx] = [objectOf(distribution.npx), objectOf(distribution.uvx)]
  const way = npx ?? uvx
  if (!way) throw new NotCarried(binaryText(id, distribution, platform))
  const words = [...(npx ? ['npx', '-y'] : ['uvx']), way.package, ...argumentsIn(way)]
  if (!areWords(words))
    throw new NotCarried('its package or an argument has characters that svc does not allow in a command')
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(objectOf(way.env) ?? {})) {
    if (typeof value === 'string' && value !== '' && v.safeParse(ProviderEntry, { env: { [name]: value } }).success)
      env[name] = value
    else
      found.leave(
        location,
        `${id} ${inner(name)}`,
        `a person has to give its value: set it for the daemon, then svc config set providers.${id}.env_allow '["${inner(name)}"]'`,
      )
  }
  const settings = {
    ...(typeof entry.name === 'string' && { display_name: clip(entry.name, 200) }),
    command: words.join(' '),
    ...(Object.keys(env).length > 0 && { env }),
  }
  found.want({ kind: 'provider', ...location, name: id, settings, notes: [] })
}

const argumentsIn = ({ args }: Members): unknown[] => (Array.isArray(args) ? args : [])

/** Whether words need no quotes in a command. */
const areWords = (words: readonly unknown[]): words is string[] =>
  words.every(word => typeof word === 'string' && /^[@\w=:,./+~^-]+$/.test(word))

/** Instructions for a binary agent. */
function binaryText(id: string, distribution: Members, platform: string): string {
  const target = `${platform}-${ARCHITECTURES[process.arch] ?? process.arch}`
  const binary = objectOf(objectOf(distribution.binary)?.[target])
  if (!binary) return `it has no package, and no binary for ${target}`
  const words = [basename(String(binary.cmd)), ...argumentsIn(binary)]
  const line = areWords(words) ? words.join(' ') : '<program>'
  return `it is a binary: put ${words[0]} of ${shown(String(binary.archive), 120)} on the PATH, then svc config set providers.${id} '{"command":"${line}"}'`
}
