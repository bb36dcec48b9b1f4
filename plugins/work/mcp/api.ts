import * as v from 'valibot'
import { type Actor, type Awaitable, registry, token } from '../../../kernel/plugin.js'
import type {
  ListMcpServersReply,
  McpPlaceQuery,
  McpServerView,
  PutMcpServerBody,
} from '../../../schemas/settings/mcp-servers.js'
import type { ApplyOutcome } from '../../../schemas/settings.js'
import { VaultErrors, WRITE_ERRORS } from '../../access/vault/api.js'
import { SETTING_ERRORS } from '../../desk/settings/api.js'
import { McpErrors } from './errors.js'
import type { Declaration, ServerFault } from './sources/declaration.js'
import type { SourceScope } from './sources/sources.js'

export { McpErrors } from './errors.js'
export { McpServerKind, type ServerSpec } from './server-kind.js'
export { type Declaration, parseDeclarations, type ServerFault } from './sources/declaration.js'
export type { SourceScope as Place } from './sources/sources.js'

/** Contributes servers of providers or skills, at their place in the order of sources. */
export interface McpServerSource {
  readonly kind: 'provider' | 'skill'
  /**
   * Servers available in a place: the contributor has checked that they may run code. `where` is their origin for
   * people; `ofWorkspace`: it is a file of the workspace; `extension`: key of the extension they belong to. An unusable
   * server has a `fault` instead of its declaration.
   */
  readonly read: (scope: SourceScope) => Awaitable<readonly BroughtServer[]>
}

export type BroughtServer = {
  readonly where: string
  readonly ofWorkspace?: boolean | undefined
  readonly extension?: string | undefined
} & ({ readonly declaration: Declaration; readonly fault?: undefined } | { readonly fault: ServerFault })

export const McpServerSources = registry<McpServerSource>(
  'mcp.sources@1',
  v.looseObject({ kind: v.picklist(['provider', 'skill']), read: v.function() }),
)

/** The catalog entry that a server was created from. */
export interface CatalogOrigin {
  readonly entry: string
  readonly version?: string | undefined
}

/** MCP servers for other plugins. */
export interface McpApi {
  /** The servers of a place as their route lists them. @throws Fault `mcp_scope_invalid`, `workspace_not_found` */
  list(target: McpPlaceQuery): Promise<ListMcpServersReply>
  /**
   * The server of that name in a place; undefined if there is none. @throws Fault `mcp_scope_invalid`,
   * `workspace_not_found`
   */
  shown(name: string, target: McpPlaceQuery): Promise<McpServerView | undefined>
  /** Declares a server like its PUT route, with its origin. */
  declare(body: PutMcpServerBody, place: McpPlaceQuery, origin: CatalogOrigin, actor: Actor): Promise<ApplyOutcome>
}

/** Errors of {@link McpApi.declare}. */
export const DECLARE_ERRORS = [
  McpErrors.mcp_file_invalid,
  McpErrors.mcp_scope_invalid,
  McpErrors.mcp_secret_forbidden,
  McpErrors.mcp_server_in_use,
  McpErrors.mcp_server_invalid,
  McpErrors.mcp_server_name_taken,
  VaultErrors.vault_secret_damaged,
  ...WRITE_ERRORS,
  ...SETTING_ERRORS,
] as const

export const Mcp = token<McpApi>('mcp@1')
