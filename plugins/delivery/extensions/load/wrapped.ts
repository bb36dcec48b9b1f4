import type { Plugin, Surface } from '../../../../kernel/plugin.js'

/** Marks parts of the package by a global symbol, because extensions have their own copies of these modules. */
const IN_TREE: unique symbol = Symbol.for('svc.in-tree') as never

type Marked = { readonly [IN_TREE]?: string }

/** Marks the surfaces of the package's plugins, so that {@link wrappedPlugin} recognizes them in an extension. */
export function markInTree(plugins: readonly Plugin[]): void {
  for (const { name, surface } of plugins)
    for (const part of [surface, ...(surface.routes ?? [])]) Object.assign(part, { [IN_TREE]: name })
}

/**
 * Name of the package's plugin whose surface or routes an extension uses as its own. Such routes call a service of the
 * package in unsupported ways: they bypass a wrapper for the service's own calls, and fail on private members.
 */
export function wrappedPlugin(surface: Surface<never>): string | undefined {
  const parts: readonly Marked[] = [surface, ...((surface.routes ?? []) as readonly object[])]
  return parts.map(part => part[IN_TREE]).find(name => name !== undefined)
}
