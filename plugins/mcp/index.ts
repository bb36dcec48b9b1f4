import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { ResourceFamilies, type ResourceFamily } from '../extensions/api.js'
import { McpServerKind } from './api.js'

/** How extensions have their MCP servers read. */
const family: ResourceFamily = {
  name: 'mcp_servers',
  kinds: [McpServerKind],
  load: async extension => ({ records: await (await import('./shipped.js')).readServers(extension) }),
}

/**
 * The kind, and how extensions ship records of it: they are checked, made canonical and kept; nothing projects them yet, and
 * the status says so.
 */
export default definePlugin({ name: 'mcp', version: '0.1.0' }).surface({
  kinds: [McpServerKind],
  registries: [surfaceOf().contribute(ResourceFamilies, () => [family])],
})
