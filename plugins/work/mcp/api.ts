import * as v from 'valibot'
import { type Actor, type Awaitable, registry, token } from '../../../kernel/plugin.js'
import type { McpPlaceQuery, McpServerView, PutMcpServerBody } from '../../../schemas/settings/mcp-servers.js'
import type { ApplyOutcome } from '../../../schemas/settings.js'
import type { Declaration, ServerFault } from './sources/declaration.js'
import type { Place } from './sources/sources.js'

export { McpServerKind, type ServerSpec } from './server-kind.js'
export { type Declaration, parseDeclarations, type ServerFault } from './sources/declaration.js'
export type { Place } from './sources/sources.js'

/** Contributes servers that providers or skills bring along, in the place of these two in the order of sources. */
export interface McpServerSource {
  readonly kind: 'provider' | 'skill'
  /**
   * Servers that may be used in a place: whoever contributes them has asked whether they may run code.
   * `where` names what brings one, for people; `ofWorkspace`: it comes with the files of the workspace; `extension`: key of the
   * extension that it comes with. A server that cannot be used has a `fault` in place of its declaration.
   */
  readonly read: (place: Place) => Awaitable<readonly BroughtServer[]>
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

/** The entry of a catalog that a server was made of. */
export interface CatalogOrigin {
  readonly entry: string
  readonly version?: string | undefined
}

/** MCP servers for other plugins. */
export interface McpApi {
  /** The server of that name in a place; undefined where there is none. Throws `mcp_scope_invalid`, `workspace_not_found`. */
  shown(name: string, place: McpPlaceQuery): Promise<McpServerView | undefined>
  /** Declares a server as PUT of it does, with a note of where it comes from. */
  declare(body: PutMcpServerBody, place: McpPlaceQuery, origin: CatalogOrigin, actor: Actor): Promise<ApplyOutcome>
}

export const Mcp = token<McpApi>('mcp@1')
