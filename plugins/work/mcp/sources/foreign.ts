import path from 'node:path'
import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import { clip, shown } from '../../../../kernel/kit/text.js'
import { McpServerPolicy } from '../../../../schemas/settings/entries.js'
import { McpErrors } from '../errors.js'
import { type Declaration, type ServerFault, ServerMembers, type Written } from './declaration.js'

/** Servers read from one file. */
const MOST_SERVERS = 64
/** Remarks listed for one file. */
const MOST_REMARKS = 64

/** Content of a file. An unusable server affects no other. */
export interface ForeignServers {
  readonly servers: readonly Declaration[]
  /** One for each unusable server. */
  readonly faults: readonly ServerFault[]
  /** Ignored members and disabled servers. */
  readonly remarks: readonly string[]
  /** Whether a server is disabled. */
  readonly hasDisabled: boolean
}

/** A variable of a file: the reference of its value, and the value if the surrounding text needs it. */
export interface Variable {
  /** Reference used if the whole text is just this variable. */
  readonly ref: string
  readonly value?: string | undefined
  /** Why the value is not available; absent if it is resolved when the server starts. */
  readonly missing?: string
}

/** A file and its variables. */
export interface ForeignLocation {
  /** The file, for people. */
  readonly where: string
  /** Members that can contain the servers; the first existing one is used. */
  readonly holders: readonly string[]
  /** Folder that a relative `cwd` refers to. */
  readonly root: string
  /** Whether `root` is a workspace folder, which `${workspaceFolder}` refers to. */
  readonly isWorkspace: boolean
  /** Whether names are limited to the characters that other programs allow. */
  readonly isStrict?: boolean
  readonly variable: (server: string, variable: string) => Variable
  /** `line:column` of a value. */
  readonly at: (keys: readonly (string | number)[]) => string
}

/** Supported transports by the names that other programs use. */
const TRANSPORTS: ReadonlyMap<string, 'stdio' | 'http'> = new Map([
  ['stdio', 'stdio'],
  ['local', 'stdio'],
  ['http', 'http'],
  ['streamable-http', 'http'],
  ['streamablehttp', 'http'],
  ['streamable_http', 'http'],
  ['remote', 'http'],
])
/** Members that are read, or that do not affect how a server runs. */
const READ = new Set([
  ...['type', 'transport', 'command', 'args', 'env', 'cwd', 'url', 'serverUrl', 'httpUrl', 'headers'],
  ...['disabled', 'enabled', 'name', 'description', 'version', 'icon', 'gallery', 'source'],
])
/** Members of this daemon that no other program has. */
const OWN = [
  ...['secret_env', 'secret_headers', 'auth', 'sandbox', 'catalog_entry', 'catalog_version'],
  ...Object.keys(McpServerPolicy),
]

type Members = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A server is unusable because of the member at `keys`. */
class Unusable extends Error {
  constructor(
    readonly keys: readonly (string | number)[],
    message: string,
  ) {
    super(message)
  }
}

/**
 * Servers of an `mcp.json` or similar file, in the spellings of the common programs.
 * @throws Error if the file is not a list of servers at all
 */
export function foreignServers(document: unknown, location: ForeignLocation): ForeignServers {
  const servers: Declaration[] = []
  const faults: ServerFault[] = []
  const remarks: string[] = []
  let hasDisabled = false
  for (const member of isObject(document) ? Object.keys(document) : [])
    if (isMisspelt(member, location.holders))
      remarks.push(
        `${location.where}:${location.at([member])}: ${shown(member)} is not read; write ${location.holders[0]}`,
      )
  const holder = isObject(document) ? location.holders.find(member => isSaid(document[member])) : ''
  if (holder === undefined) return { servers, faults, remarks, hasDisabled }
  const held = isObject(document) ? document[holder] : undefined
  if (!isObject(held))
    throw new Error(`${location.at([holder])}: an object with ${location.holders[0]}, servers by name, is expected`)
  const all = Object.entries(held)
  for (const [name, entry] of all.slice(0, MOST_SERVERS)) {
    const called = (keys: readonly (string | number)[]) =>
      `${location.where}:${location.at([holder, name, ...keys])}: the server ${shown(name, 64)}`
    try {
      const server = serverOf(name, entry, location, what => remarks.push(`${called([])} ${what}`))
      if (server) servers.push(server)
      else hasDisabled = true
    } catch (error) {
      const keys = error instanceof Unusable ? error.keys : []
      const member = keys.length > 0 ? `${pathText([holder, name, ...keys])}: ` : ''
      const text = `${called(keys)} is left out: ${member}${(error as Error).message}`
      const isRequired = isObject(entry) && entry.required === true
      faults.push({ name, error: McpErrors.mcp_file_invalid(text), isRequired })
    }
  }
  if (all.length > MOST_SERVERS)
    remarks.push(`${location.where} has ${all.length} servers; the first ${MOST_SERVERS} are read`)
  return { servers, faults, remarks: remarks.slice(0, MOST_REMARKS), hasDisabled }
}

/** Whether a member is meant to contain the servers, in the spelling of another file. */
const isMisspelt = (member: string, holders: readonly string[]) =>
  member.replace(/[_-]/g, '').toLowerCase() === 'mcpservers' && !holders.includes(member)

const isSaid = (value: unknown) => value !== undefined && value !== null

/** `mcpServers.files.args[1]` */
const pathText = (keys: readonly (string | number)[]) =>
  shown(
    keys
      .map(key => (typeof key === 'number' ? `[${key}]` : `.${key}`))
      .join('')
      .slice(1),
    120,
  ).slice(1, -1)

/** Undefined for a disabled server. @throws Error with the reason if it is unusable */
function serverOf(
  name: string,
  written: unknown,
  location: ForeignLocation,
  remark: (what: string) => void,
): Declaration | undefined {
  if (location.isStrict && !/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name))
    throw new Error('its name needs letters, digits, _, . and -, at most 64')
  if (name === '' || name.length > 128) throw new Error('its name needs 1 to 128 characters')
  if (!isObject(written)) throw new Error('an object is expected')
  // Some generators write null for unset members.
  const fields = Object.fromEntries(Object.entries(written).filter(([, value]) => isSaid(value)))
  if (fields.disabled === true || fields.enabled === false) {
    remark('is disabled in the file')
    return undefined
  }
  const unread = Object.keys(fields).filter(member => !READ.has(member) && !OWN.includes(member))
  if (unread.length > 0) remark(`has members that are not read: ${shown(unread.join(', '), 200).slice(1, -1)}`)
  const own = Object.fromEntries(OWN.filter(member => fields[member] !== undefined).map(one => [one, fields[one]]))
  const members = (isShown: boolean): Members => {
    const reading = { name, location, isShown }
    const url = urlOf(fields, reading)
    const values = url === undefined ? started(fields, reading) : reached(fields, url, reading)
    return { ...own, ...values, ...merged('secret_env', values, own), ...merged('secret_headers', values, own) }
  }
  const parsed = v.safeParse(v.object(ServerMembers), members(false))
  if (!parsed.success) {
    const [issue] = parsed.issues
    const keys = (issue.path ?? []).map(({ key }) => key as string | number)
    throw new Unusable(keys, issueText(issue))
  }
  const shownAs = members(true)
  const differs = SHOWN.filter(member => JSON.stringify(shownAs[member]) !== JSON.stringify(parsed.output[member]))
  return {
    name,
    ...parsed.output,
    ...(differs.length > 0 && { written: Object.fromEntries(differs.map(one => [one, shownAs[one]])) as Written }),
  }
}

/** Members in which variables are expanded. */
const SHOWN = ['command', 'args', 'env', 'url', 'headers'] as const

interface Reading {
  readonly name: string
  readonly location: ForeignLocation
  /** Whether texts keep variables by name, for display. */
  readonly isShown: boolean
}

const merged = (member: 'secret_env' | 'secret_headers', values: Members, own: Members) =>
  isObject(own[member]) && isObject(values[member]) ? { [member]: { ...values[member], ...own[member] } } : {}

const URLS = ['httpUrl', 'url', 'serverUrl'] as const

/** Address of a server; undefined for a server with a command. */
function urlOf(members: Members, reading: Reading): string | undefined {
  const urls = URLS.filter(member => members[member] !== undefined)
  const named = members.type === undefined ? 'transport' : 'type'
  const type = members[named] === undefined ? undefined : textOf(members[named], [named])
  const transport = type === undefined ? undefined : TRANSPORTS.get(type.toLowerCase())
  if (type !== undefined && transport === undefined)
    throw new Unusable([named], `its type is ${shown(type, 40)}; stdio and http are known`)
  const isStarted = members.command !== undefined
  if (isStarted === urls.length > 0)
    throw new Error(isStarted ? 'it has a command and a URL' : 'it has neither a command nor a URL')
  if (transport !== undefined && (transport === 'stdio') !== isStarted)
    throw new Error(`its type is ${transport}, but it has ${isStarted ? 'a command' : 'a URL'}`)
  const [member] = urls
  return member === undefined ? undefined : expand(members[member], [member], reading)
}

function started(members: Members, reading: Reading): Members {
  const { args = [] } = members
  if (!Array.isArray(args)) throw new Unusable(['args'], 'a list is expected')
  const isList = Array.isArray(members.command)
  const [command = '', ...rest] = [
    ...[members.command].flat().map((word, n) => expand(word, isList ? ['command', n] : ['command'], reading)),
    ...args.map((word, n) => expand(word, ['args', n], reading)),
  ]
  if (command === '') throw new Unusable(['command'], 'its command is empty')
  const cwd = members.cwd === undefined ? undefined : expand(members.cwd, ['cwd'], reading)
  const { plain, secret } = valuesOf(members.env, 'env', reading)
  return {
    ...inFolder(command, rest, cwd && path.resolve(reading.location.root, cwd)),
    ...some('env', plain),
    ...some('secret_env', secret),
  }
}

const GO_AND_RUN = ['-c', 'cd "$1" && shift && exec "$@"', 'sh']

/** A shell changes to the folder first, because a declaration has no member for it. */
const inFolder = (command: string, args: readonly string[], cwd: string | undefined): Members =>
  cwd === undefined ? { command, args } : { command: 'sh', args: [...GO_AND_RUN, cwd, command, ...args] }

/** Folder and program of a server that is started through this shell command; undefined for any other. */
export function folderOf(command: string, args: readonly string[]) {
  const [folder, program] = args.slice(GO_AND_RUN.length)
  const isOurs = command === 'sh' && GO_AND_RUN.every((word, at) => args[at] === word)
  return isOurs && folder !== undefined && program !== undefined ? { folder, program } : undefined
}

function reached(members: Members, url: string, reading: Reading): Members {
  const { plain, secret } = valuesOf(members.headers, 'headers', reading)
  return { url, ...some('headers', plain), ...some('secret_headers', secret) }
}

/** Variables or headers. A text that is only a variable becomes a secret reference, resolved when the server starts. */
function valuesOf(value: unknown, member: string, reading: Reading) {
  const plain: Record<string, string> = {}
  const secret: Record<string, string> = {}
  if (value !== undefined && !isObject(value)) throw new Unusable([member], 'an object is expected')
  for (const [key, entry] of Object.entries(value ?? {})) {
    if (entry === null) continue
    const text = textOf(entry, [member, key])
    const variable = /^\$\{([A-Za-z_]\w*)\}$/.exec(text.replace('{env:', '{'))?.[1]
    const found =
      variable === undefined || isFolder(variable) ? undefined : reading.location.variable(reading.name, variable)
    if (found?.missing !== undefined)
      throw new Unusable([member, key], `\${${variable}} has no value: ${found.missing}`)
    if (found) secret[key] = found.ref
    else plain[key] = expand(entry, [member, key], reading)
  }
  return { plain, secret }
}

const some = (member: string, values: Readonly<Record<string, string>>): Members =>
  Object.keys(values).length > 0 ? { [member]: values } : {}

function textOf(value: unknown, keys: readonly (string | number)[]): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw new Unusable(keys, 'a text is expected')
}

/** Names that programs use for the workspace folder. */
const isFolder = (name: string) => /^(?:workspaceFolder|workspaceRoot|projectRoot|CLAUDE_PROJECT_DIR)$/.test(name)

/** Expands variables in a text; `${VAR:-x}` is x if VAR has no value. */
function expand(value: unknown, keys: readonly (string | number)[], { location, name, isShown }: Reading): string {
  return textOf(value, keys).replace(/\$\{([^{}]*)\}/g, (whole, inside: string) => {
    if (isFolder(inside) && location.isWorkspace) return location.root
    const [, variable, fallback] =
      /^([A-Za-z_]\w*)(?::-([\s\S]*))?$/.exec(`{${inside}`.replace('{env:', '{').slice(1)) ?? []
    const found = variable === undefined ? undefined : location.variable(name, variable)
    if (found?.value !== undefined) return isShown ? whole : found.value
    if (fallback !== undefined) return fallback
    const named = shown(whole, 60).slice(1, -1)
    if (found?.missing !== undefined) throw new Unusable(keys, `${named} has no value: ${found.missing}`)
    throw new Unusable(
      keys,
      found === undefined || variable === undefined
        ? `${named} is not a known variable`
        : `${named} has no value: a file of a workspace cannot use the environment of the daemon. Give it a default, as in \${${clip(variable, 60)}:-value}, or make it the whole value of a variable in env or of a header and store the secret: ${command('vault put', found.ref)}`,
    )
  })
}
