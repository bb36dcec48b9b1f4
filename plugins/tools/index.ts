import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { ResourceFamilies, type ResourceFamily } from '../extensions/api.js'
import { ToolKind } from './api.js'

/** How extensions have the tools of their process read. */
const family: ResourceFamily = {
  name: 'tools',
  kinds: [ToolKind],
  load: async extension => ({ records: (await import('./shipped.js')).readTools(extension) }),
}

/**
 * The kind, and how extensions ship records of it: they are checked, made canonical and kept; nothing projects them yet, and
 * the status says so.
 */
export default definePlugin({ name: 'tools', version: '0.1.0' }).surface({
  kinds: [ToolKind],
  registries: [surfaceOf().contribute(ResourceFamilies, () => [family])],
})
