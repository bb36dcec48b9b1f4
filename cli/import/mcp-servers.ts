import { basename, dirname } from 'node:path'
import { command } from '../../kernel/kit/commands/command-line.js'
import { clip, shown } from '../../kernel/kit/text.js'
import {
  type Document,
  ForeignFileError,
  type MemberPath,
  objectOf,
  parseJsonFile,
  type SourceFile,
  scalarText,
  typeOf,
} from './foreign-file.js'
import { type Around, Findings, type Found, NotCarried, type SourceLocation, type WantedServer } from './plan.js'
import { holdsSecret, isSecret, secretBase } from './secrets.js'

/** Minimum length of a vault secret: a shorter text would be redacted wherever it occurs. */
const LEAST_SECRET = 8
/** Maximum number of servers per file. */
const MOST_SERVERS = 1000

/** Names of the member with the servers, in the files of different programs. */
export const SERVER_MEMBERS = ['mcpServers', 'servers', 'mcp_servers', 'context_servers'] as const

/** Transports by the names that programs use. */
const TRANSPORTS: Readonly<Record<string, 'stdio' | 'http' | 'sse' | undefined>> = {
  stdio: 'stdio',
  local: 'stdio',
  command: 'stdio',
  http: 'http',
  'streamable-http': 'http',
  streamablehttp: 'http',
  streamable_http: 'http',
  remote: 'http',
  sse: 'sse',
}

/** Members without a meaning in svc, with the reason. */
const UNUSED: Readonly<Record<string, string>> = {
  alwaysAllow: 'svc decides by permissions, tools and deny_tools of an agent',
  autoApprove: 'svc decides by permissions, tools and deny_tools of an agent',
  trust: 'svc decides by permissions, tools and deny_tools of an agent',
  timeout: 'svc has its own timeouts for servers',
  startup_timeout_sec: 'svc has its own timeouts for servers',
  startup_timeout_ms: 'svc has its own timeouts for servers',
  tool_timeout_sec: 'svc has its own timeouts for servers',
  includeTools: 'name tools of a server in tools and deny_tools of an agent',
  excludeTools: 'name tools of a server in tools and deny_tools of an agent',
  enabled_tools: 'name tools of a server in tools and deny_tools of an agent',
  disabled_tools: 'name tools of a server in tools and deny_tools of an agent',
  envFile: 'svc reads no file of environment variables for a server',
  sandboxEnabled: 'a sandbox is named by svc mcp add --sandbox',
  oauth: 'log in with svc mcp auth login',
}

/** Members that are read, or that do not affect how a server runs. */
const KNOWN = new Set([
  ...['command', 'args', 'env', 'cwd', 'url', 'serverUrl', 'httpUrl', 'headers', 'http_headers', 'type', 'transport'],
  ...['disabled', 'enabled', 'description', 'name', 'gallery', 'version', 'source', 'icon', 'env_http_headers'],
  ...['bearer_token_env_var', 'env_vars', 'settings'],
])

/** Context for a server declaration. */
interface Reading {
  readonly location: SourceLocation
  readonly around: Around
  readonly found: Findings
  readonly what: string
  /** Base folder of `${workspaceFolder}` and of a relative `cwd`; undefined for a file outside of projects. */
  readonly project: string | undefined
}

/** Imports servers from `mcp.json` files in the dialects of Claude, VS Code, Cursor, Windsurf, Zed, Gemini and others. */
export function importMcpFiles(files: readonly SourceFile[], around: Around): Found {
  const found = new Findings()
  for (const file of files) {
    if (basename(file.path) === '.mcp.json' && around.workspaceRoots?.includes(dirname(file.path))) {
      const next = command('mcp list', '--workspace', dirname(file.path))
      found.stays(
        { file: file.path, line: 1 },
        '.mcp.json',
        `svc reads it in place, once its workspace is trusted: ${next}`,
      )
      continue
    }
    try {
      readServers(parseJsonFile(file), file.path, around, found)
    } catch (error) {
      if (!(error instanceof ForeignFileError)) throw error
      found.leave({ file: file.path, line: error.line }, basename(file.path), error.message)
    }
  }
  return found
}

/** Imports the servers of one document; an invalid entry does not affect the others. */
export function readServers(document: Document, file: string, around: Around, found: Findings): void {
  const top = objectOf(document.value) ?? {}
  const nested = objectOf(top.mcp)
  const [holder, prefix]: [Readonly<Record<string, unknown>>, MemberPath] =
    nested && SERVER_MEMBERS.some(name => name in nested) ? [nested, ['mcp']] : [top, []]
  const member = SERVER_MEMBERS.find(name => objectOf(holder[name]))
  if (member === undefined) {
    const wrong = SERVER_MEMBERS.find(name => name in holder)
    const why = wrong
      ? `${wrong} is ${typeOf(holder[wrong])}; servers by name are expected`
      : `it has none of ${SERVER_MEMBERS.join(', ')}`
    found.leave({ file, line: wrong ? document.lineOf([...prefix, wrong]) : 1 }, basename(file), why)
    return
  }
  for (const { name, line } of document.twice)
    found.leave({ file, line }, shown(name, 60).slice(1, -1), 'the member occurs twice; the last one is used')
  const inputs = Array.isArray(holder.inputs) ? holder.inputs.length : 0
  if (inputs > 0)
    found.leave(
      { file, line: document.lineOf([...prefix, 'inputs']) },
      'inputs',
      'svc does not prompt for values; store them: svc vault put',
    )
  const servers = Object.entries(objectOf(holder[member]) ?? {})
  if (servers.length > MOST_SERVERS)
    found.leave({ file, line: 1 }, member, `more than ${MOST_SERVERS} servers; the others are ignored`)
  const project = projectOf(file)
  for (const [name, value] of servers.slice(0, MOST_SERVERS)) {
    const location = { file, line: document.lineOf([...prefix, member, name]) }
    wantServer(name, value, { location, around, found, what: shown(name, 60).slice(1, -1), project })
  }
}

/** The project of a file; `~/.cursor/mcp.json` has none, but its folder is harmless. */
const projectOf = (file: string): string =>
  /^\.(?:vscode|cursor|windsurf|gemini|claude|codex)$/.test(basename(dirname(file)))
    ? dirname(dirname(file))
    : dirname(file)

/** Imports one server declaration. Members without a counterpart are listed. */
export function wantServer(written: string, value: unknown, reading: Reading): void {
  reading.found.entry(reading.location, reading.what, () => reading.found.want(serverOf(written, value, reading)))
}

/** @throws NotCarried */
function serverOf(written: string, value: unknown, reading: Reading): WantedServer {
  const { location, around, found, what } = reading
  const members = objectOf(value)
  if (!members) throw new NotCarried(`an object is expected, not ${typeOf(value)}`)
  const name = serverName(written)
  if (members.disabled === true || members.enabled === false) throw new NotCarried('it is disabled in the file')
  const url = urlOf(members)
  const secrets: Record<string, string> = {}
  const store = { base: secretBase(name, around.workspaceId), secrets }
  const server = url === undefined ? stdioServer(members, reading, store) : httpServer(members, url, reading, store)
  for (const member of Object.keys(members)) {
    const why = UNUSED[member] ?? (KNOWN.has(member) ? undefined : 'svc does not know this member')
    if (why !== undefined) found.leave(location, `${what}.${inner(member)}`, why)
  }
  const notes = name === written ? [] : [`named ${name}`]
  const stored = Object.keys(secrets).length
  if (stored > 0) notes.push(`${stored === 1 ? 'a secret goes' : `${stored} secrets go`} to the vault`)
  const plainly = [...(server.args ?? []), server.url ?? '', server.command ?? ''].some(holdsSecret)
  if (plainly) notes.push('an argument or URL looks like a secret; it stays readable in config.json')
  return { kind: 'mcp_server', ...location, name, server, secrets, notes }
}

/** A foreign text quoted within a sentence. */
const inner = (text: string) => shown(text, 60).slice(1, -1)

/** The name if tools and the vault support it, else a similar one. @throws NotCarried */
function serverName(written: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(written)) return written
  const name = clip(
    written
      .normalize('NFKD')
      .replace(/[^A-Za-z0-9_.-]+/g, '-')
      .replace(/^[^A-Za-z0-9]+|-+$/g, ''),
    64,
  )
  if (name === '' || /[<>]/.test(written))
    throw new NotCarried('svc has no name for it: letters, digits, _, . and - are allowed')
  return name
}

/** URL of a remote server; undefined for a server that is started. @throws NotCarried */
function urlOf(members: Readonly<Record<string, unknown>>): string | undefined {
  const urls = ['url', 'httpUrl', 'serverUrl'].filter(member => typeof members[member] === 'string')
  const said = members.type ?? members.transport
  const word = typeof said === 'string' ? said.toLowerCase() : undefined
  if (said !== undefined && !Object.hasOwn(TRANSPORTS, word ?? ''))
    throw new NotCarried(`the type is ${typeOf(said)}; stdio and http are known`)
  const type = word === undefined ? undefined : TRANSPORTS[word]
  if (type === 'sse') throw new NotCarried('svc has no SSE transport; the server has to speak streamable HTTP')
  const isStarted = members.command !== undefined
  if (isStarted && urls.length > 0) throw new NotCarried('it has a command and a URL; remove one of them')
  if (isStarted && type === 'http') throw new NotCarried('its type is http, but it has a command')
  if (isStarted) return undefined
  // In Gemini `url` means SSE and `httpUrl` means streamable HTTP; svc uses streamable HTTP for both.
  const member = urls.includes('httpUrl') ? 'httpUrl' : urls[0]
  if (member === undefined) throw new NotCarried('it has neither a command nor a URL')
  if (type === 'stdio') throw new NotCarried('its type is stdio, but it has a URL')
  return members[member] as string
}

type Server = WantedServer['server']

/** The secrets of a server; their references begin with `base`. */
interface SecretStore {
  readonly base: string
  readonly secrets: Record<string, string>
}

function stdioServer(members: Readonly<Record<string, unknown>>, reading: Reading, store: SecretStore): Server {
  const [command = '', ...args] = wordsOf(members).map(word => expand(word, reading))
  if (command === '') throw new NotCarried('its command is empty')
  const env = valuesOf(members.env, 'env', reading, store)
  const passed = passedOn(members.env_vars)
  const cwd = members.cwd === undefined ? undefined : expand(String(members.cwd), reading)
  return {
    ...inFolder(command, args, cwd),
    ...some('env', env.plain),
    ...some('secret_env', { ...passed, ...env.secret }),
  }
}

/** Variables passed to the server from the environment, by name. */
const passedOn = (names: unknown): Record<string, string> =>
  Object.fromEntries(
    (Array.isArray(names) ? names : [])
      .filter((name): name is string => typeof name === 'string' && /^[A-Za-z_]\w*$/.test(name))
      .map(name => [name, `env:${name}`]),
  )

/** A server with a folder is started by a shell that changes to it first, because neither svc nor ACP has a member for it. */
const inFolder = (command: string, args: readonly string[], cwd: string | undefined) =>
  cwd === undefined
    ? { command, ...(args.length > 0 && { args }) }
    : { command: 'sh', args: ['-c', 'cd "$1" && shift && exec "$@"', 'sh', cwd, command, ...args] }

/** The program and its arguments. @throws NotCarried */
function wordsOf(members: Readonly<Record<string, unknown>>): string[] {
  const program = objectOf(members.command)
  // Zed has both in an object.
  if (program) return wordsOf({ command: program.path, args: program.args })
  const args = members.args ?? []
  if (!Array.isArray(args)) throw new NotCarried(`args: a list is expected, not ${typeOf(args)}`)
  return [members.command, args].flat(2).map(word => {
    const text = scalarText(word)
    if (text === undefined) throw new NotCarried(`command and args: texts are expected, not ${typeOf(word)}`)
    return text
  })
}

function httpServer(
  members: Readonly<Record<string, unknown>>,
  written: string,
  reading: Reading,
  store: SecretStore,
): Server {
  const url = expand(written, reading)
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw new NotCarried('its URL is not an http:// or https:// address')
  if (parsed.username || parsed.password) throw new NotCarried('its URL has a password; give it as a header instead')
  const headers = valuesOf(
    { ...objectOf(members.http_headers), ...objectOf(members.headers) },
    'header',
    reading,
    store,
  )
  for (const [name, variable] of Object.entries(objectOf(members.env_http_headers) ?? {}))
    if (typeof variable === 'string') headers.secret[name] = `env:${variable}`
  const bearer = members.bearer_token_env_var
  if (typeof bearer === 'string') {
    const token = reading.around.env[bearer]
    if (!token) throw new NotCarried(`its token is in ${inner(bearer)}, which is not set here; set it and import again`)
    keep(store, 'header/Authorization', `Bearer ${token}`)
    headers.secret.Authorization = `${store.base}/header/Authorization`
  }
  return { url, ...some('headers', headers.plain), ...some('secret_headers', headers.secret) }
}

interface Values {
  readonly plain: Record<string, string>
  /** References by name. */
  readonly secret: Record<string, string>
}

/** Variables or headers: secret values become references, and the values go to the vault. @throws NotCarried */
function valuesOf(value: unknown, of: 'env' | 'header', reading: Reading, store: SecretStore): Values {
  const values: Values = { plain: {}, secret: {} }
  const members = objectOf(value ?? {})
  if (!members) throw new NotCarried(`${of}: an object is expected, not ${typeOf(value)}`)
  for (const [name, entry] of Object.entries(members)) {
    const text = scalarText(entry)
    if (text === undefined) throw new NotCarried(`${of}.${inner(name)}: a text is expected, not ${typeOf(entry)}`)
    if (!/^[A-Za-z_][\w.-]{0,127}$/.test(name))
      throw new NotCarried(
        `${of}: ${shown(name, 40)} is not a valid name of ${of === 'env' ? 'a variable' : 'a header'}`,
      )
    // Equivalent: the value is read from the environment of the daemon when the server starts.
    const variable = /^\$\{(?:env:)?([A-Za-z_]\w*)\}$/.exec(text)?.[1] ?? /^\$([A-Za-z_]\w*)$/.exec(text)?.[1]
    if (variable !== undefined) {
      values.secret[name] = `env:${variable}`
      continue
    }
    const full = expand(text, reading)
    if (full.length >= LEAST_SECRET && isSecret(name, full)) {
      keep(store, `${of}/${name}`, full)
      values.secret[name] = `${store.base}/${of}/${name}`
    } else values.plain[name] = full
  }
  return values
}

const keep = ({ base, secrets }: SecretStore, path: string, value: string): void => {
  secrets[`${base}/${path}`] = value
}

/** Expands `${VAR}`, `${VAR:-x}`, `${env:VAR}` and editor variables in the importing environment. @throws NotCarried */
function expand(text: string, { around, project }: Reading): string {
  return text.replace(/\$\{([^{}]*)\}/g, (whole, inside: string) => {
    if (inside === '/' || inside === 'pathSeparator') return '/'
    if (inside === 'userHome') return around.userHome
    if (/^(?:workspaceFolder|workspaceRoot|projectRoot)$/.test(inside) && project !== undefined) return project
    if (inside === 'workspaceFolderBasename' && project !== undefined) return basename(project)
    const [, variable, fallback] = /^(?:env:)?([A-Za-z_]\w*)(?::-([\s\S]*))?$/.exec(inside) ?? []
    if (variable === undefined)
      throw new NotCarried(`${inner(whole)} is a value that the other program prompts for; write the value itself`)
    const value = around.env[variable] || fallback
    if (value === undefined) throw new NotCarried(`${whole} is not set here; set it and import again`)
    return value
  })
}

const some = (member: string, values: Readonly<Record<string, string>>) =>
  Object.keys(values).length > 0 ? { [member]: values } : {}
