import type { Plugin } from '../plugin.js'
import type { MaybeToken, Token } from '../token.js'

/** The order in which plugins start, and those that cannot, each with the reason as a path. */
export interface Plan {
  readonly order: readonly Plugin[]
  /** A token that nobody here provides; they start when it appears. */
  readonly waiting: ReadonlyMap<string, readonly string[]>
  /** A cycle, a name or a token taken twice: these never start. */
  readonly failed: ReadonlyMap<string, string>
}

/** What a plugin requires: the name of the need, the token's id, and whether it cannot do without. */
export function needsOf(plugin: Plugin): { readonly name: string; readonly id: string; readonly hard: boolean }[] {
  const needs = Object.entries(plugin.requires as Record<string, Token<unknown> | MaybeToken<unknown>>)
  return needs.map(([name, need]) =>
    'maybe' in need ? { name, id: need.maybe.id, hard: false } : { name, id: need.id, hard: true },
  )
}

/** Ids of the tokens that a plugin cannot do without. */
export function hardNeeds(plugin: Plugin): string[] {
  return needsOf(plugin).flatMap(({ id, hard }) => (hard ? [id] : []))
}

/** What a plugin is handed for its needs; an optional one is looked up whenever it is read. */
export function resolveNeeds(plugin: Plugin, services: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const lookUp = (id: string) => ({
    get current() {
      return services.get(id)
    },
  })
  return Object.fromEntries(needsOf(plugin).map(({ name, id, hard }) => [name, hard ? services.get(id) : lookUp(id)]))
}

/** A plugin and all of `loaded` that require it, directly or not, dependents first. */
export function dependentsOf(root: Plugin, loaded: readonly Plugin[]): Plugin[] {
  const leaving = new Set<Plugin>([root])
  for (let grew = true; grew; ) {
    grew = false
    const ids = new Set([...leaving].flatMap(plugin => (plugin.provides ? [plugin.provides.id] : [])))
    for (const plugin of loaded) {
      if (leaving.has(plugin) || !hardNeeds(plugin).some(id => ids.has(id))) continue
      leaving.add(plugin)
      grew = true
    }
  }
  const { order } = makePlan(loaded)
  return [...leaving].sort((a, b) => order.indexOf(b) - order.indexOf(a))
}

/** Orders plugins by what they require alone; ties break by name. Nothing runs. */
export function makePlan(plugins: readonly Plugin[]): Plan {
  const failed = new Map<string, string>()
  const byName = new Map<string, Plugin>()
  const provider = new Map<string, Plugin>()
  for (const plugin of plugins) {
    if (byName.has(plugin.name)) {
      failed.set(plugin.name, `two plugins are named ${plugin.name}`)
      continue
    }
    byName.set(plugin.name, plugin)
    const taken = plugin.provides && provider.get(plugin.provides.id)
    if (taken) failed.set(plugin.name, `${plugin.provides?.id} is provided by ${taken.name} already`)
    else if (plugin.provides) provider.set(plugin.provides.id, plugin)
  }

  const waiting = new Map<string, string[]>()
  const order: Plugin[] = []
  const started = new Set<string>()
  let rest = [...byName.values()].filter(p => !failed.has(p.name)).sort((a, b) => (a.name < b.name ? -1 : 1))
  for (;;) {
    const next = rest.find(plugin => hardNeeds(plugin).every(id => started.has(id)))
    if (!next) break
    order.push(next)
    if (next.provides) started.add(next.provides.id)
    rest = rest.filter(plugin => plugin !== next)
  }
  for (const plugin of rest) {
    const { path, cycle } = blockingPath(plugin, provider, started)
    if (cycle) failed.set(plugin.name, `the plugins require each other: ${path.join(' → ')}`)
    else waiting.set(plugin.name, path)
  }
  return { order, waiting, failed }
}

/** Follows unmet needs from a plugin to the token nobody provides, or around a cycle. */
function blockingPath(from: Plugin, provider: ReadonlyMap<string, Plugin>, started: ReadonlySet<string>) {
  const path = [from.name]
  let plugin = from
  for (;;) {
    const id = hardNeeds(plugin).find(need => !started.has(need))
    if (id === undefined) return { path, cycle: false }
    const next = provider.get(id)
    if (!next) return { path: [...path, id], cycle: false }
    const cycle = path.includes(next.name)
    path.push(next.name)
    if (cycle) return { path, cycle }
    plugin = next
  }
}
