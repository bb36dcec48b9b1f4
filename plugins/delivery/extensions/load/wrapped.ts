import type { Plugin, Surface } from '../../../../kernel/plugin.js'

/** Marks what is of the package; by its name, for extensions have a copy of their own of these modules. */
const IN_TREE: unique symbol = Symbol.for('svc.in-tree') as never

type Marked = { readonly [IN_TREE]?: string }

/** Marks the surfaces of the package's own plugins, so that {@link wrappedPlugin} knows them when an extension shows them. */
export function markInTree(plugins: readonly Plugin[]): void {
  for (const { name, surface } of plugins)
    for (const part of [surface, ...(surface.routes ?? [])]) Object.assign(part, { [IN_TREE]: name })
}

/**
 * Name of the plugin whose surface, or whose routes, an extension shows as its own. Such routes call a service of the package in
 * ways that no version promises: past a wrapper where it calls itself, and with an error where a private member is used.
 */
export function wrappedPlugin(surface: Surface<never>): string | undefined {
  const parts: readonly Marked[] = [surface, ...((surface.routes ?? []) as readonly object[])]
  return parts.map(part => part[IN_TREE]).find(name => name !== undefined)
}
