import { isOfKernel } from '../contract/kernel-tokens.js'
import type { Plugin } from '../contract/plugin.js'
import type { MaybeToken, Token } from '../contract/token.js'

/** The start order of plugins, and the plugins that cannot start, each with the reason as a path. */
export interface Plan {
  readonly order: readonly Plugin[]
  /**
   * Length of the longest chain of requirements, by plugin name. The order is by depth, then by name, so that loading or unloading
   * an unrelated plugin changes no depth and no relative order.
   */
  readonly depths: ReadonlyMap<string, number>
  /** Paths from a plugin to a token without provider; the plugin starts when the token appears. */
  readonly waiting: ReadonlyMap<string, readonly string[]>
  /** Reasons that waiting does not cure: a cycle, or a token that is already provided. */
  readonly failed: ReadonlyMap<string, string>
}

/** The requirements of a plugin: the name of the need, the id of the token, and whether it is mandatory. */
export function needsOf(plugin: Plugin): { readonly name: string; readonly id: string; readonly hard: boolean }[] {
  const needs = Object.entries(plugin.requires as Record<string, Token<unknown> | MaybeToken<unknown>>)
  return needs.map(([name, need]) =>
    'maybe' in need ? { name, id: need.maybe.id, hard: false } : { name, id: need.id, hard: true },
  )
}

/** Ids of the mandatory tokens of other plugins. */
export function hardNeeds(plugin: Plugin): string[] {
  return needsOf(plugin).flatMap(({ id, hard }) => (hard && !isOfKernel(id) ? [id] : []))
}

/** A plugin and all of `others` that require it, directly or not, dependents first. */
export function dependentsOf(root: Plugin, others: readonly Plugin[]): Plugin[] {
  const found = new Set<Plugin>([root])
  for (let grew = true; grew; ) {
    grew = false
    const ids = new Set([...found].flatMap(plugin => (plugin.provides ? [plugin.provides.id] : [])))
    for (const plugin of others) {
      if (found.has(plugin) || !hardNeeds(plugin).some(id => ids.has(id))) continue
      found.add(plugin)
      grew = true
    }
  }
  const { order } = makePlan(others)
  return [...found].sort((a, b) => order.indexOf(b) - order.indexOf(a))
}

/**
 * Orders plugins with distinct names by their requirements; nothing runs. A token belongs to the first plugin that provides it.
 * `lost` explains unavailable tokens: `of things, which is disabled`.
 */
export function makePlan(plugins: readonly Plugin[], lost: ReadonlyMap<string, string> = new Map()): Plan {
  const failed = new Map<string, string>()
  const provider = new Map<string, Plugin>()
  for (const plugin of plugins) {
    const { name, provides } = plugin
    const taken = provides && (isOfKernel(provides.id) ? 'the kernel' : provider.get(provides.id)?.name)
    if (taken) failed.set(name, `${provides.id} is provided by ${taken} already`)
    else if (provides) provider.set(provides.id, plugin)
  }

  const waiting = new Map<string, string[]>()
  const order: Plugin[] = []
  const depths = new Map<string, number>()
  const started = new Set<string>()
  let rest = plugins.filter(({ name }) => !failed.has(name)).sort((a, b) => (a.name < b.name ? -1 : 1))
  for (let depth = 0; ; depth++) {
    const next = rest.filter(plugin => hardNeeds(plugin).every(id => started.has(id)))
    if (next.length === 0) break
    for (const plugin of next) {
      order.push(plugin)
      depths.set(plugin.name, depth)
      if (plugin.provides) started.add(plugin.provides.id)
    }
    rest = rest.filter(plugin => !next.includes(plugin))
  }
  for (const plugin of rest) {
    const path = blockingPath(plugin, provider, started, lost)
    if (path.at(-1) === plugin.name) failed.set(plugin.name, `the plugins require each other: ${path.join(' → ')}`)
    else waiting.set(plugin.name, path)
  }
  return { order, depths, waiting, failed }
}

/** Follows unmet needs from a plugin to the unavailable token, or around a cycle. */
function blockingPath(
  from: Plugin,
  provider: ReadonlyMap<string, Plugin>,
  started: ReadonlySet<string>,
  lost: ReadonlyMap<string, string>,
): string[] {
  const path = [from.name]
  for (let plugin = from; ; ) {
    const id = hardNeeds(plugin).find(need => !started.has(need)) as string
    const next = provider.get(id)
    if (!next) return [...path, lost.has(id) ? `${id} ${lost.get(id)}` : id]
    const round = path.includes(next.name)
    path.push(next.name)
    if (round) return path
    plugin = next
  }
}
