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

/** Ids of the tokens that a plugin cannot do without, by the name of the need. */
export function hardNeeds(plugin: Plugin): string[] {
  return Object.values(plugin.requires as Record<string, Token<unknown> | MaybeToken<unknown>>).flatMap(need =>
    'maybe' in need ? [] : [need.id],
  )
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
