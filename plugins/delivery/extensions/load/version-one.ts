import type { Plugin } from '../../../../kernel/plugin.js'
import { annotated } from '../version-one/routes.js'

/** Hooks of the kernel that are gone. The first entry of each counted, and that was never one of an extension. */
const GONE = ['reply', 'encode']

/** The plugin of an extension of `apiVersion = 1` in the form of today. */
export function fromVersionOne(plugin: Plugin): Plugin {
  const { routes, hooks } = plugin.surface
  const surface = {
    ...plugin.surface,
    ...(routes && { routes: routes.map(annotated) }),
    ...(hooks && { hooks: Object.fromEntries(Object.entries(hooks).filter(([name]) => !GONE.includes(name))) }),
  }
  return { ...plugin, surface }
}
