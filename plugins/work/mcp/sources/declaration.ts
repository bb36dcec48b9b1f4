import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { Fault } from '../../../../kernel/plugin.js'
import { McpServerPolicy, SandboxName } from '../../../../schemas/settings/entries.js'
import type { SettingsWriteTarget } from '../../../../schemas/settings.js'
import { McpErrors } from '../errors.js'

const text = (max: number) => v.pipe(v.string(), v.maxLength(max))
const variables = v.record(text(256), text(32_768))
const references = v.record(text(256), text(512))

/** Of a URL that may stand in a file: what is there can be read by everybody who may read it, so it carries no password. */
function isWebAddress(url: string): boolean {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  return parsed !== undefined && /^https?:$/.test(parsed.protocol) && !parsed.username && !parsed.password
}
const webAddress = v.pipe(text(2048), v.check(isWebAddress, 'http:// or https://, without a password'))

/** How the daemon logs in to a server; a secret is named by reference. */
export const Login = v.object({
  type: v.optional(text(64)),
  registration: v.optional(v.picklist(['auto', 'pre_registered'])),
  authorization_url: v.optional(webAddress),
  client_id: v.optional(text(1024)),
  client_secret_ref: v.optional(text(512)),
  issuer_url: v.optional(webAddress),
  metadata_url: v.optional(webAddress),
  revocation_url: v.optional(webAddress),
  scopes: v.optional(v.pipe(v.array(text(256)), v.maxLength(256))),
  token_url: v.optional(webAddress),
})
export type Login = v.InferOutput<typeof Login>

/** The profile that stands for no sandbox. */
export const NO_SANDBOX = 'none'

/** Members of a server as files have them. */
export const ServerMembers = {
  transport: v.optional(text(64)),
  command: v.optional(text(4096)),
  args: v.optional(v.pipe(v.array(text(32_768)), v.maxLength(1024))),
  env: v.optional(variables),
  secret_env: v.optional(references),
  url: v.optional(webAddress),
  headers: v.optional(variables),
  secret_headers: v.optional(references),
  auth: v.nullish(Login),
  sandbox: SandboxName,
  ...McpServerPolicy,
  catalog_entry: v.optional(text(256)),
  catalog_version: v.optional(text(128)),
}

/** A server that can be used: one with a `command` is started, one with a `url` is reached. */
export interface Declaration extends v.InferOutput<v.ObjectSchema<typeof ServerMembers, undefined>> {
  readonly name: string
  /** Members in which the file names a variable, as it has them: values of variables are not shown, nor do they make it another server. */
  readonly written?: Written
}
export type Written = Partial<
  Pick<v.InferOutput<v.ObjectSchema<typeof ServerMembers, undefined>>, 'command' | 'args' | 'env' | 'url' | 'headers'>
>

/** A server as its file has it. */
export const asWritten = ({ written, ...declaration }: Declaration): Declaration => ({ ...declaration, ...written })

/** Servers that are read of one file. */
const MOST_SERVERS = 64

/** Servers of a file that has them among other things, and those that cannot be used. */
export interface ReadServers {
  readonly servers: readonly Declaration[]
  readonly faults: readonly ServerFault[]
}

/** Why a server of a file cannot be used. */
export interface ServerFault {
  readonly name: string
  readonly error: Fault
  /** The file says that no session is to start without it. */
  readonly isRequired: boolean
}

/** Servers of a file that has them among other things: a list with names, or by name. One that cannot be used costs itself. */
export function parseDeclarations(where: string, value: unknown): ReadServers {
  const servers: Declaration[] = []
  const faults: ServerFault[] = []
  const refuse = (name: string, what: string, isRequired = false) => {
    const which = name === '' ? '' : `${shown(name, 64)} is left out: `
    faults.push({ name, error: McpErrors.mcp_file_invalid(`MCP servers of ${where}: ${which}${what}`), isRequired })
  }
  if (typeof value !== 'object' || value === null) refuse('', 'a list with names, or servers by name, is expected')
  const all = Object.entries(Object(value) as object)
  for (const [key, given] of all.slice(0, MOST_SERVERS)) {
    const name = Array.isArray(value) ? String(Object(given).name ?? key) : key
    const parsed = v.safeParse(v.object({ name: text(128), ...ServerMembers }), { ...Object(given), name })
    const isRequired = Object(given).required === true
    if (!parsed.success) {
      const [issue] = parsed.issues
      const member = v.getDotPath(issue)
      refuse(name, `${member === null ? '' : `${member}: `}${issueText(issue)}`, isRequired)
    } else if ((parsed.output.command === undefined) === (parsed.output.url === undefined))
      refuse(name, 'give it exactly one of command and url', isRequired)
    else servers.push(parsed.output)
  }
  if (all.length > MOST_SERVERS) refuse('', `there are ${all.length}; the first ${MOST_SERVERS} are read`)
  return { servers, faults }
}

/** Where servers are declared, the weakest first: of one name the last one counts, as a whole. */
export const SOURCES = [
  'global-config',
  'global-mcp-sidecar',
  'workspace-config',
  'workspace-foreign',
  'workspace-mcp-sidecar',
  'provider',
  'agent',
  'agent-mcp-sidecar',
  'skill',
  'extension',
] as const
export type SourceKind = (typeof SOURCES)[number]

/** Where a server is declared. */
export interface Source {
  readonly kind: SourceKind
  readonly scope: 'global' | 'workspace' | 'agent'
  /** Of the workspace whose it is; absent for one of everybody. */
  readonly workspaceId?: string
  /** The file, extension, skill or agent, for people; of two with one text, each has secrets like the other. */
  readonly where: string
  /** The agent whose it is. */
  readonly agent?: string
  /** Key of the extension that brings it: it runs and has secrets as that extension. */
  readonly extension?: string
}

/** What one place declares. */
export interface Declared {
  readonly source: Source
  readonly declaration: Declaration
}

/** A server with where it comes from. */
export interface Server {
  readonly name: string
  readonly declaration: Declaration
  readonly source: Source
  /** Of the same name in weaker sources, the strongest last. */
  readonly shadowed: readonly Source[]
  /**
   * Of its declaration and of where it is declared: a server of the same name from another layer is another one, and inherits
   * neither tokens nor what somebody approved.
   */
  readonly key: string
}

/** Files that a person may have a server written to. */
export const isWritable = (kind: SourceKind): kind is SourceKind & SettingsWriteTarget =>
  kind.endsWith('-config') || kind === 'global-mcp-sidecar' || kind === 'workspace-mcp-sidecar'

/** The servers of all sources, the weakest source first; of each name the strongest. */
export function merged(all: readonly Declared[]): Server[] {
  const byName = new Map<string, Server>()
  for (const { source, declaration } of all) {
    const weaker = byName.get(declaration.name)
    const shadowed = weaker ? [...weaker.shadowed, weaker.source] : []
    const key = keyOf(source, declaration)
    byName.set(declaration.name, { name: declaration.name, declaration, source, shadowed, key })
  }
  return [...byName.values()]
}

/** Of declarations that were read once and are asked for with each call. */
const keys = new WeakMap<Declaration, { readonly place: string; readonly key: string }>()

function keyOf({ kind, workspaceId = '', where }: Source, declaration: Declaration): string {
  const place = [kind, workspaceId, where].join(' ')
  const known = keys.get(declaration)
  if (known?.place === place) return known.key
  const key = createHash('sha256')
    .update(canonicalJson([kind, workspaceId, where, asWritten(declaration)]))
    .digest('hex')
  keys.set(declaration, { place, key })
  return key
}
