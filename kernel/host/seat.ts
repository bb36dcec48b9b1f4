import type { Plugin } from '../contract/plugin.js'

/** A plugin under the name that it runs as. */
export interface Seat {
  readonly plugin: Plugin
  /** Its own name, where it runs in the place of another. */
  readonly by?: string
  /** Why it has no place. */
  readonly error?: string
}

/** A plugin that is looked at before it gets its place, and whose place that was. */
export interface Candidate extends Seat {
  readonly displaced?: Plugin | undefined
}

/**
 * Where a plugin belongs. One that replaces another takes its name, and with the name its tables, schema stream, routes and
 * configuration, but only when the operator names it: whoever can drop a folder in must not take over what exists.
 */
export function seatOf(plugin: Plugin, replace: readonly string[]): Seat {
  const { replaces } = plugin
  if (replaces === undefined) return { plugin }
  if (!replace.includes(plugin.name)) {
    return { plugin, error: `it replaces ${replaces} once plugins.replace in config.json names ${plugin.name}` }
  }
  return { plugin: namedAs(replaces, plugin), by: plugin.name }
}

/** A plugin can be an object of a class; what it is made of stays within its reach. */
export const namedAs = (name: string, plugin: Plugin): Plugin =>
  Object.create(plugin, { name: { value: name, enumerable: true } })
