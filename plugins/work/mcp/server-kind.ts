import * as v from 'valibot'
import { secretRef } from '../../../kernel/kit/secret-ref.js'
import { text } from '../../../kernel/kit/text.js'
import { kind } from '../../../kernel/plugin.js'
import { StringMap } from '../../../schemas/kernel/common.js'
import { mapOf } from '../../../schemas/kernel/map-of.js'
import { SandboxName } from '../../../schemas/settings/entries.js'

/** Access to a referenced secret depends on the source of the record: an extension can use only its own secrets. */
const Reference = secretRef({ env: '', vault: ['mcp/', 'extensions/'] })

/** Login settings of a server. */
const Auth = v.object({
  registration: v.optional(v.picklist(['auto', 'pre_registered']), 'auto'),
  type: v.optional(text(64)),
  authorization_url: v.optional(text(2048)),
  client_id: v.optional(text(1024)),
  client_secret_ref: v.optional(Reference),
  issuer_url: v.optional(text(2048)),
  metadata_url: v.optional(text(2048)),
  revocation_url: v.optional(text(2048)),
  scopes: v.optional(v.pipe(v.array(text(256)), v.maxLength(256))),
  token_url: v.optional(text(2048)),
})

const ServerSpec = v.pipe(
  v.object({
    name: text(128),
    transport: v.optional(v.picklist(['stdio', 'http'])),
    command: v.optional(text(4096)),
    args: v.optional(v.array(v.string())),
    env: v.optional(StringMap),
    secret_env: v.optional(mapOf(v.string(), Reference)),
    url: v.optional(text(2048)),
    headers: v.optional(StringMap),
    secret_headers: v.optional(mapOf(v.string(), Reference)),
    auth: v.nullish(Auth),
    sandbox: SandboxName,
  }),
  v.transform(({ auth, ...spec }) => ({
    ...spec,
    ...(auth ? { auth } : {}),
    transport: spec.transport ?? (spec.url === undefined ? ('stdio' as const) : ('http' as const)),
  })),
)
export type ServerSpec = v.InferOutput<typeof ServerSpec>

/** Conflict between the transport, login and other members of a server; undefined if there is none. */
export function serverProblem({ transport, command, url, auth, sandbox }: ServerSpec): string | undefined {
  if (transport === 'stdio') {
    if (command === undefined) return 'command: required for transport stdio'
    if (url !== undefined) return 'url: a server has a command or a url, not both'
    return auth ? 'auth: not possible for transport stdio' : undefined
  }
  if (sandbox !== undefined) return 'sandbox: only a server with a command has one'
  if (url === undefined) return 'url: required for transport http'
  if (command !== undefined) return 'command: a server has a command or a url, not both'
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || !/^https?:$/.test(parsed.protocol)) return 'url: http:// or https://'
  // Everyone who may read records can read its content.
  if (parsed.username || parsed.password) return 'url: must not carry a password; use auth or secret_env'
  if (auth?.registration === 'pre_registered' && !(auth.issuer_url && auth.client_id))
    return 'auth: registration pre_registered needs issuer_url and client_id'
  return undefined
}

/** MCP servers that packages and programs provide, as records. */
export const McpServerKind = kind<ServerSpec>({
  name: 'mcp_server',
  spec: ServerSpec,
  maxBytes: 256 * 1024,
  onDemand: true,
  check: ({ spec }) => serverProblem(spec),
})
