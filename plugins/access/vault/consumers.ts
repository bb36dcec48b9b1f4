import { isDropIn } from '../../../kernel/platform.js'
import type { Namespace } from './api.js'

/** Paths that plugins of the package may access; a part after `/` in the consumer's name restricts them further. */
const OWN: Readonly<Record<string, readonly `${Namespace}/${string}`[]>> = {
  providers: ['providers/'],
  bridges: ['bridges/'],
  automation: ['automation/'],
  mcp: ['mcp/'],
  hooks: ['hooks/'],
  extensions: ['extensions/', 'mcp/extensions/'],
  sandboxes: ['sandbox/'],
  sessions: ['sessions/', 'mcp/'],
  'network-nats': ['network/'],
  telemetry: ['telemetry/'],
  console: ['console/'],
}
/** Prefix of the servers of a workspace, `mcp/ws/<id>/…`. */
const OF_WORKSPACES = 'mcp/ws/'

/**
 * Whether a consumer may use a path. A consumer is a plugin, or a party on whose behalf a plugin of the package asks:
 * - `extensions/clock-node`: paths below `extensions/` and its name, and the secrets of its servers
 * - the plugin of an extension, `acme.mail`: paths below `extensions/` and its name
 * - `sessions/ws_…`: servers of that workspace only
 */
export function mayUse(consumer: string, path: string): boolean {
  const slash = consumer.indexOf('/')
  const plugin = slash < 0 ? consumer : consumer.slice(0, slash)
  const whom = slash < 0 ? undefined : consumer.slice(slash + 1)
  // Names of in-process extensions begin with a vendor; no plugin of the package has such a name.
  if (isDropIn(plugin)) return path.startsWith(`extensions/${consumer}/`)
  if (plugin === 'extensions' && whom !== undefined)
    return path.startsWith(`extensions/${whom}/`) || path.startsWith(`mcp/extensions/${whom}/`)
  if (whom !== undefined && path.startsWith(OF_WORKSPACES)) return path.startsWith(`${OF_WORKSPACES}${whom}/`)
  return Object.hasOwn(OWN, plugin) && (OWN[plugin]?.some(own => path.startsWith(own)) ?? false)
}
