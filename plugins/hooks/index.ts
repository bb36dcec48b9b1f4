import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { ResourceFamilies, type ResourceFamily } from '../extensions/api.js'
import { HookKind } from './api.js'

/** How extensions have their hooks read. */
const family: ResourceFamily = {
  name: 'hooks',
  kinds: [HookKind],
  load: async extension => ({ records: await (await import('./shipped.js')).readHooks(extension) }),
}

/**
 * The kind, and how extensions ship records of it: they are checked, made canonical and kept; nothing projects them yet, and
 * the status says so.
 */
export default definePlugin({ name: 'hooks', version: '0.1.0' }).surface({
  kinds: [HookKind],
  registries: [surfaceOf().contribute(ResourceFamilies, () => [family])],
})
