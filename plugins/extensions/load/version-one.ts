import type { Plugin } from '../../../kernel/plugin.js'

/** The plugin of an extension of `apiVersion = 1` in the form of today. */
export function fromVersionOne(plugin: Plugin): Plugin {
  return plugin
}
