import { isDropIn } from '../../../kernel/platform.js'
import type { Namespace } from './api.js'

/** Paths that plugins of the package read and write; what follows `/` in the name of a consumer narrows them, see below. */
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
}
/** Servers of one workspace, `mcp/ws/<id>/…`. */
const OF_WORKSPACES = 'mcp/ws/'

/**
 * Whether a consumer may use a path. It is a plugin, or whom a plugin of the package asks for:
 * - `extensions/clock-node`: what is below `extensions/` and its name, and the secrets of the servers that it brings;
 * - the plugin of an extension, `acme.mail`: what is below `extensions/` and its name;
 * - `sessions/ws_…`: servers of that workspace, and of no other one.
 */
export function mayUse(consumer: string, path: string): boolean {
  const slash = consumer.indexOf('/')
  const plugin = slash < 0 ? consumer : consumer.slice(0, slash)
  const whom = slash < 0 ? undefined : consumer.slice(slash + 1)
  // Names of extensions that run in the daemon begin with a vendor, and no plugin of the package is called so.
  if (isDropIn(plugin)) return path.startsWith(`extensions/${consumer}/`)
  if (plugin === 'extensions' && whom !== undefined)
    return path.startsWith(`extensions/${whom}/`) || path.startsWith(`mcp/extensions/${whom}/`)
  if (whom !== undefined && path.startsWith(OF_WORKSPACES)) return path.startsWith(`${OF_WORKSPACES}${whom}/`)
  return Object.hasOwn(OWN, plugin) && (OWN[plugin]?.some(own => path.startsWith(own)) ?? false)
}
