import type { Plugin } from '../../../kernel/plugin.js'
import { annotated } from '../version-one/routes.js'

/** The plugin of an extension of `apiVersion = 1` in the form of today. */
export function fromVersionOne(plugin: Plugin): Plugin {
  const { routes } = plugin.surface
  return routes ? { ...plugin, surface: { ...plugin.surface, routes: routes.map(annotated) } } : plugin
}
