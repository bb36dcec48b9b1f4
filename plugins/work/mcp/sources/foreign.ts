import path from 'node:path'
import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { clip, shown } from '../../../../kernel/kit/text.js'
import type { Fault } from '../../../../kernel/plugin.js'
import { McpErrors } from '../errors.js'
import { type Declaration, ServerMembers } from './declaration.js'

/** Servers of one file; more are not read. */
const MOST_SERVERS = 64
/** Remarks on one file; more are not listed. */
const MOST_REMARKS = 64

/** What a file of another program declares. A server that cannot be used costs itself. */
export interface ForeignServers {
  readonly servers: readonly Declaration[]
  /** One for each server that cannot be used. */
  readonly faults: readonly Fault[]
  /** Members that mean nothing here, and servers that are switched off. */
  readonly remarks: readonly string[]
}

export interface ForeignPlace {
  /** The file, for people. */
  readonly where: string
  /** Folder that `${workspaceFolder}` and a relative `cwd` are of. */
  readonly root: string
  /** Where the vault has the value of a variable of a server. */
  readonly ref: (server: string, variable: string) => string
}

/** Transports by the names that programs have for them; undefined: none of ours. */
const TRANSPORTS: ReadonlyMap<string, 'stdio' | 'http'> = new Map([
  ['stdio', 'stdio'],
  ['local', 'stdio'],
  ['http', 'http'],
  ['streamable-http', 'http'],
  ['streamablehttp', 'http'],
  ['streamable_http', 'http'],
  ['remote', 'http'],
])
/** Members that are read here, and those that say nothing about how a server runs. */
const READ = new Set([
  ...['type', 'transport', 'command', 'args', 'env', 'cwd', 'url', 'serverUrl', 'httpUrl', 'headers'],
  ...['disabled', 'enabled', 'name', 'description', 'version', 'icon', 'gallery', 'source'],
])
/** Members that are ours, with the same meaning as in `.svc/mcp.json`. */
const OWN = ['secret_env', 'secret_headers', 'auth', 'sandbox'] as const

type Members = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Servers of a `.mcp.json` in the spellings of the programs that write one.
 * @throws Error where the file is no list of servers at all
 */
export function foreignServers(document: unknown, place: ForeignPlace): ForeignServers {
  const servers: Declaration[] = []
  const faults: Fault[] = []
  const remarks: string[] = []
  const holder = isObject(document) ? (document.mcpServers ?? document.servers ?? {}) : undefined
  if (!isObject(holder)) throw new Error('an object with mcpServers, servers by name, is expected')
  const all = Object.entries(holder)
  for (const [name, given] of all.slice(0, MOST_SERVERS)) {
    try {
      const server = serverOf(name, given, place, remarks)
      if (server) servers.push(server)
    } catch (error) {
      const text = `${place.where}: the server ${shown(name, 64)} is left out: ${(error as Error).message}`
      faults.push(McpErrors.mcp_file_invalid(text))
    }
  }
  if (all.length > MOST_SERVERS)
    remarks.push(`${place.where} has ${all.length} servers; the first ${MOST_SERVERS} are read`)
  return { servers, faults, remarks: remarks.slice(0, MOST_REMARKS) }
}

/** Undefined for one that is switched off. @throws Error saying why it cannot be used */
function serverOf(name: string, given: unknown, place: ForeignPlace, remarks: string[]): Declaration | undefined {
  const remark = (what: string) => remarks.push(`${place.where}: the server ${shown(name, 64)} ${what}`)
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name))
    throw new Error('its name needs letters, digits, _, . and -, at most 64')
  if (!isObject(given)) throw new Error('an object is expected')
  if (given.disabled === true || given.enabled === false) {
    remark('is disabled in the file')
    return undefined
  }
  const isOwn = (member: string) => (OWN as readonly string[]).includes(member)
  const unread = Object.keys(given).filter(member => !READ.has(member) && !isOwn(member))
  if (unread.length > 0) remark(`has members that are not read: ${shown(unread.join(', '), 200).slice(1, -1)}`)
  const reading = { name, place }
  const own = Object.fromEntries(OWN.filter(member => given[member] !== undefined).map(one => [one, given[one]]))
  const url = urlOf(given, reading)
  const values = url === undefined ? started(given, reading) : reached(given, url, reading)
  const parsed = v.safeParse(v.object(ServerMembers), {
    ...own,
    ...values,
    ...merged('secret_env', values, own),
    ...merged('secret_headers', values, own),
  })
  if (!parsed.success) throw new Error(clip(v.summarize(parsed.issues), 300))
  return { name, ...parsed.output }
}

interface Reading {
  readonly name: string
  readonly place: ForeignPlace
}

const merged = (member: 'secret_env' | 'secret_headers', values: Members, own: Members) =>
  isObject(own[member]) && isObject(values[member]) ? { [member]: { ...values[member], ...own[member] } } : {}

/** Where a server is reached; undefined for one that is started. */
function urlOf(given: Members, reading: Reading): string | undefined {
  const urls = [given.httpUrl, given.url, given.serverUrl].filter(url => url !== undefined)
  const own = given.type ?? given.transport ?? undefined
  const type = own === undefined ? undefined : textOf(own, 'type')
  const transport = type === undefined ? undefined : TRANSPORTS.get(type.toLowerCase())
  if (type !== undefined && transport === undefined)
    throw new Error(`its type is ${shown(type, 40)}; stdio and http are known`)
  const isStarted = given.command !== undefined
  if (isStarted === urls.length > 0)
    throw new Error(isStarted ? 'it has a command and a URL' : 'it has neither a command nor a URL')
  if (transport !== undefined && (transport === 'stdio') !== isStarted)
    throw new Error(`its type is ${transport}, but it has ${isStarted ? 'a command' : 'a URL'}`)
  return isStarted ? undefined : expand(textOf(urls[0], 'url'), reading)
}

function started(given: Members, reading: Reading): Members {
  const { args } = given
  if (args !== undefined && args !== null && !Array.isArray(args)) throw new Error('args: a list is expected')
  const [command = '', ...rest] = [given.command, args ?? []]
    .flat(2)
    .map(word => expand(textOf(word, 'command and args'), reading))
  if (command === '') throw new Error('its command is empty')
  const cwd = given.cwd === undefined ? undefined : expand(textOf(given.cwd, 'cwd'), reading)
  const { plain, secret } = valuesOf(given.env, 'env', reading)
  return {
    ...inFolder(command, rest, cwd && path.resolve(reading.place.root, cwd)),
    ...some('env', plain),
    ...some('secret_env', secret),
  }
}

/** A shell goes to the folder first: a declaration has no member for it. */
const inFolder = (command: string, args: readonly string[], cwd: string | undefined): Members =>
  cwd === undefined
    ? { command, args }
    : { command: 'sh', args: ['-c', 'cd "$1" && shift && exec "$@"', 'sh', cwd, command, ...args] }

function reached(given: Members, url: string, reading: Reading): Members {
  const { plain, secret } = valuesOf(given.headers, 'headers', reading)
  return { url, ...some('headers', plain), ...some('secret_headers', secret) }
}

/** Variables or headers. One that is nothing but a variable is a secret of the workspace, which the vault has. */
function valuesOf(value: unknown, member: string, reading: Reading) {
  const [plain, secret]: Record<string, string>[] = [{}, {}]
  if (value !== undefined && value !== null && !isObject(value)) throw new Error(`${member}: an object is expected`)
  for (const [key, entry] of Object.entries(value ?? {})) {
    if (entry === null) continue
    const text = textOf(entry, `${member}.${key}`)
    const variable = /^\$\{([A-Za-z_]\w*)\}$/.exec(text.replace('{env:', '{'))?.[1]
    if (variable === undefined) (plain as Record<string, string>)[key] = expand(text, reading)
    else (secret as Record<string, string>)[key] = reading.place.ref(reading.name, variable)
  }
  return { plain: plain as Record<string, string>, secret: secret as Record<string, string> }
}

const some = (member: string, values: Readonly<Record<string, string>>): Members =>
  Object.keys(values).length > 0 ? { [member]: values } : {}

function textOf(value: unknown, member: string): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw new Error(`${shown(member, 60).slice(1, -1)}: a text is expected`)
}

/**
 * `${VAR:-x}` is its default, and `${workspaceFolder}` the folder of the workspace. The environment of the daemon is not for a file that
 * came with a repository.
 */
function expand(text: string, { place, name }: Reading): string {
  return text.replace(/\$\{([^{}]*)\}/g, (whole, inside: string) => {
    if (/^(?:workspaceFolder|workspaceRoot|projectRoot|CLAUDE_PROJECT_DIR)$/.test(inside)) return place.root
    const [, variable, fallback] =
      /^([A-Za-z_]\w*)(?::-([\s\S]*))?$/.exec(`{${inside}`.replace('{env:', '{').slice(1)) ?? []
    if (fallback !== undefined) return fallback
    const named = shown(whole, 60).slice(1, -1)
    throw new Error(
      variable === undefined
        ? `${named} is no variable that is known here`
        : `${named} has no value: a file of a workspace does not see the environment of the daemon. Give it a default, as in \${${clip(variable, 60)}:-value}, or make it the whole value of a variable in env or of a header and store the secret: ${command('vault put', place.ref(name, variable))}`,
    )
  })
}
