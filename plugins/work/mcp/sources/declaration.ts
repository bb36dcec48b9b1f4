import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { Fault } from '../../../../kernel/plugin.js'
import { mapOf } from '../../../../schemas/kernel/map-of.js'
import { McpServerPolicy, SandboxName } from '../../../../schemas/settings/entries.js'
import type { SettingsWriteTarget } from '../../../../schemas/settings.js'
import { McpErrors } from '../errors.js'

const text = (max: number) => v.pipe(v.string(), v.maxLength(max))
const variables = mapOf(text(256), text(32_768))
const references = mapOf(text(256), text(512))

/** Whether a URL may be stored in a file: everyone who reads the file sees it, so it must not contain a password. */
function isWebAddress(url: string): boolean {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  return parsed !== undefined && /^https?:$/.test(parsed.protocol) && !parsed.username && !parsed.password
}
const webAddress = v.pipe(
  text(2048),
  v.check(isWebAddress, 'a URL starts with http:// or https:// and has no password'),
)

/** Login settings of a server; secrets are references. */
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

/** Profile name that means no sandbox. */
export const NO_SANDBOX = 'none'

/** Members of a server in files. */
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

/** A usable server: one with a `command` is started, one with a `url` is connected to. */
export interface Declaration extends v.InferOutput<v.ObjectSchema<typeof ServerMembers, undefined>> {
  readonly name: string
  /** Members as written, with variables: values of variables are not shown and do not change the server's identity. */
  readonly written?: Written
}
export type Written = Partial<
  Pick<v.InferOutput<v.ObjectSchema<typeof ServerMembers, undefined>>, 'command' | 'args' | 'env' | 'url' | 'headers'>
>

/** A server as written in its file. */
export const asWritten = ({ written, ...declaration }: Declaration): Declaration => ({ ...declaration, ...written })

/** Servers read from one file. */
const MOST_SERVERS = 64

/** Servers of a file that also has other content, and the unusable ones. */
export interface ReadServers {
  readonly servers: readonly Declaration[]
  readonly faults: readonly ServerFault[]
}

/** Why a server of a file is unusable. */
export interface ServerFault {
  readonly name: string
  readonly error: Fault
  /** Whether the file marks the server as required for sessions. */
  readonly isRequired: boolean
}

/** Reads servers from part of a file: a list with names, or a table by name. An unusable server affects no other. */
export function parseDeclarations(where: string, value: unknown): ReadServers {
  const servers: Declaration[] = []
  const faults: ServerFault[] = []
  const refuse = (name: string, what: string, isRequired = false) => {
    const which = name === '' ? '' : `${shown(name, 64)} is left out: `
    faults.push({ name, error: McpErrors.mcp_file_invalid(`MCP servers of ${where}: ${which}${what}`), isRequired })
  }
  if (typeof value !== 'object' || value === null) refuse('', 'a list with names, or servers by name, is expected')
  const all = Object.entries(Object(value) as object)
  for (const [key, entry] of all.slice(0, MOST_SERVERS)) {
    const name = Array.isArray(value) ? String(Object(entry).name ?? key) : key
    const parsed = v.safeParse(v.object({ name: text(128), ...ServerMembers }), { ...Object(entry), name })
    const isRequired = Object(entry).required === true
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

/** Sources of servers, weakest first: the last declaration of a name replaces earlier ones completely. */
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

/** The source of a server. */
export interface Source {
  readonly kind: SourceKind
  readonly scope: 'global' | 'workspace' | 'agent'
  /** Id of its workspace; absent for a server of all workspaces. */
  readonly workspaceId?: string
  /** The file, extension, skill or agent, for people. Sources with equal text share secrets. */
  readonly where: string
  /** The agent it belongs to. */
  readonly agent?: string
  /** Key of its extension: it runs and resolves secrets as that extension. */
  readonly extension?: string
}

/** A declaration with its source. */
export interface Declared {
  readonly source: Source
  readonly declaration: Declaration
}

/** A server after merging all sources. */
export interface Server {
  readonly name: string
  readonly declaration: Declaration
  readonly source: Source
  /** Sources with weaker declarations of the same name, strongest last. */
  readonly shadowed: readonly Source[]
  /**
   * Hash of its declaration and source: a server of the same name from another source is a different one, and inherits
   * neither tokens nor approvals.
   */
  readonly key: string
}

/** Whether requests may write servers to files of this kind. */
export const isWritable = (kind: SourceKind): kind is SourceKind & SettingsWriteTarget =>
  kind.endsWith('-config') || kind === 'global-mcp-sidecar' || kind === 'workspace-mcp-sidecar'

/** Merges the declarations of all sources, weakest first; the strongest of each name wins. */
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

/** Cached keys of declarations, which are needed on every call. */
const keys = new WeakMap<Declaration, { readonly sourceKey: string; readonly key: string }>()

function keyOf({ kind, workspaceId = '', where }: Source, declaration: Declaration): string {
  const sourceKey = [kind, workspaceId, where].join(' ')
  const known = keys.get(declaration)
  if (known?.sourceKey === sourceKey) return known.key
  const key = createHash('sha256')
    .update(canonicalJson([kind, workspaceId, where, asWritten(declaration)]))
    .digest('hex')
  keys.set(declaration, { sourceKey, key })
  return key
}
