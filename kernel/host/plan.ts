import { isOfKernel } from '../contract/kernel-tokens.js'
import type { Plugin } from '../contract/plugin.js'
import type { MaybeToken, Token } from '../contract/token.js'

/** The order in which plugins start, and those that cannot, each with the reason as a path. */
export interface Plan {
  readonly order: readonly Plugin[]
  /**
   * Of each in the order, by name, the longest chain that it requires. The order is by depth, then by name: what is loaded
   * or unloaded beside a plugin changes neither its depth nor who of two comes first.
   */
  readonly depths: ReadonlyMap<string, number>
  /** From the plugin to a token that is not to be had; they start when it appears. */
  readonly waiting: ReadonlyMap<string, readonly string[]>
  /** A cycle, or a token that is provided already. */
  readonly failed: ReadonlyMap<string, string>
}

/** What a plugin requires: the name of the need, the token's id, and whether it cannot do without. */
export function needsOf(plugin: Plugin): { readonly name: string; readonly id: string; readonly hard: boolean }[] {
  const needs = Object.entries(plugin.requires as Record<string, Token<unknown> | MaybeToken<unknown>>)
  return needs.map(([name, need]) =>
    'maybe' in need ? { name, id: need.maybe.id, hard: false } : { name, id: need.id, hard: true },
  )
}

/** Ids of the tokens of other plugins that a plugin cannot do without. */
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
 * Orders plugins, each with a name of its own, by what they require alone; nothing runs. Of two that provide one token the
 * first given has it. `lost` says of tokens why they are not to be had, `of things, which is disabled`.
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

/** Follows unmet needs from a plugin to the token that is not to be had, or around a cycle. */
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
