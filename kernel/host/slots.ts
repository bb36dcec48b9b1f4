import { type Fault, faultOf, KernelErrors, messageOf } from '../contract/errors.js'
import { isDropIn, type Plugin, type PluginState, reasonOf } from '../contract/plugin.js'
import type { KernelHooks } from '../hooks/kernel-hooks.js'
import type { OwnedScope } from '../scope.js'
import { dependentsOf, makePlan, needsOf, type Plan } from './plan.js'

/** A plugin and the name that it runs under. */
export interface Seat {
  readonly plugin: Plugin
  /** The own name of a replacement. */
  readonly by?: string
  /** The plugin that a replacement has displaced; it runs again when the replacement is removed. */
  readonly displaced?: Plugin | undefined
  /** The reason why it must not run. */
  readonly error?: string
}

/** A plugin as others see it. */
export interface PluginInfo {
  readonly name: string
  readonly version: string
  readonly state: PluginState
  readonly requires: readonly string[]
  readonly provides?: string
  /** The own name of the replacement that runs under this name. */
  readonly replacedBy?: string
  /** Labels of the resources in its scope. */
  readonly holds: readonly string[]
  /** The hooks that it made. */
  readonly hooks: OwnedScope['hooks']
}

/** A name and the plugin that runs, or cannot run, under it. */
export interface Slot extends Seat {
  state: PluginState
  /** Why it cannot start. Cleared when it, or a plugin that it requires, is loaded anew. */
  error?: string
  /** The disk was full when it started; it is retried when there is space again. */
  full?: true
  scope?: OwnedScope
  /** Argument of the functions on its surface, once it is applied. */
  service?: unknown
}

export interface SlotOptions {
  /** Names of disabled plugins. */
  readonly disabled: readonly string[]
  /** Names of plugins that are left out of this run, with the reason. */
  readonly leftOut: ReadonlyMap<string, string>
  /** Why no drop-in runs. */
  readonly safeMode?: string
  /** Names of plugins that may replace others. */
  readonly replace: readonly string[]
  /** Former names of plugins, each with the plugin that does that work now, or `kernel`. */
  readonly formerNames: Readonly<Record<string, string>>
  /** @internal */
  readonly hooks: Pick<KernelHooks, 'changed'>
}

/** All plugins of the host by the name that they run under, and the plan for them. */
export class Slots {
  readonly #slots = new Map<string, Slot>()
  /** False during the boot, when starts are not announced as changes. */
  booted = false

  /** Plugins that are left out of this run, with the reason; one whose code has changed is removed. */
  readonly leftOut: Map<string, string>

  constructor(private readonly options: SlotOptions) {
    this.leftOut = new Map(options.leftOut)
  }

  get(name: string): Slot | undefined {
    return this.#slots.get(name)
  }

  /** The name that a plugin runs under, or would: its own, or that of the plugin that it replaces. */
  nameOf(own: string): string | undefined {
    return [...this.#slots].find(([name, { by }]) => (by ?? name) === own)?.[0]
  }

  /** The running replacement that provides a token, if its original could run again. */
  replacementOf(token: string): Slot | undefined {
    return [...this.#slots.values()].find(
      ({ plugin, by, displaced, scope }) => by && displaced && scope && plugin.provides?.id === token,
    )
  }

  loaded(): Plugin[] {
    return [...this.#slots.values()].filter(slot => slot.scope).map(slot => slot.plugin)
  }

  /** Plugins that may run and replace no other. */
  ordinary(): Plugin[] {
    return [...this.#slots.values()]
      .filter(({ by, state, error }) => !by && error === undefined && state.status !== 'disabled')
      .map(({ plugin }) => plugin)
  }

  /**
   * The seat of a plugin: under its own name, or under that of the plugin that it replaces, with the tables, schema stream, routes and
   * configuration of that one. Only the operator may allow this: a folder that was dropped in must not take over existing data. A
   * disabled plugin replaces nothing. If the original has become a part of another plugin, the replacement must provide the token of
   * that whole plugin.
   */
  seatOf(plugin: Plugin): Seat {
    const { replace, formerNames } = this.options
    const { name: by, replaces } = plugin
    const own = { plugin, displaced: this.#slots.get(by)?.displaced }
    if (replaces === undefined || this.whyNot(by) !== undefined) return own
    if (!replace.includes(by))
      return { ...own, error: `it replaces ${replaces} once plugins.replace in config.json names ${by}` }
    const name = Object.hasOwn(formerNames, replaces) ? (formerNames[replaces] as string) : replaces
    const before = this.#slots.get(name)
    if (name !== replaces) {
      const error = `it replaces ${replaces}, which is now a part of ${name === 'kernel' ? 'the kernel' : name}`
      const id = (before?.displaced ?? before?.plugin)?.provides?.id
      if (id === undefined) return { ...own, error: `${error} and cannot be replaced` }
      if (id !== plugin.provides?.id) return { ...own, error: `${error}: its replacement has to provide ${id}` }
    }
    return { plugin: namedAs(name, plugin), by, displaced: before?.by ? before.displaced : before?.plugin }
  }

  /**
   * Records why a plugin cannot start. If it is a replacement and the host still boots, the original plugin gets its name back and
   * the replacement is listed under its own.
   * @returns whether an original plugin is to start instead
   */
  stay(name: string, state: PluginState): boolean {
    const { plugin, by, displaced } = this.#slots.get(name) ?? {}
    if (this.booted || !plugin || !by || !displaced) {
      this.become(name, state)
      return false
    }
    this.seat({ plugin: displaced })
    const { state: failed } = this.seat({ plugin: namedAs(by, plugin), error: reasonOf(state) })
    this.options.hooks.changed.call(by, failed)
    return true
  }

  /** Seats a plugin of the boot; replacements come after all others. Returns the reason when its name is taken. */
  admit(plugin: Plugin): string | undefined {
    const seat = this.seatOf(plugin)
    const { name } = seat.plugin
    const holder = this.#slots.get(name)
    if (holder && (holder.by || !seat.by)) return `another plugin already has the name ${name}`
    this.seat(seat)
    return undefined
  }

  seat(seat: Seat): Slot {
    const { plugin, by, error } = seat
    const why = this.whyNot(plugin.name)
    if (by) this.#slots.delete(by)
    const slot: Slot = {
      ...seat,
      state: error
        ? { status: 'failed', error }
        : why
          ? { status: 'disabled', why }
          : { status: 'waiting', missing: [] },
    }
    this.restore(slot)
    return slot
  }

  whyNot(name: string): string | undefined {
    if (this.options.disabled.includes(name)) return 'plugins.disabled names it'
    return this.leftOut.get(name) ?? (isDropIn(name) ? this.whyNoDropIn() : undefined)
  }

  whyNoDropIn(): string | undefined {
    const { safeMode } = this.options
    return safeMode === undefined ? undefined : `safe mode: ${safeMode}`
  }

  restore(slot: Slot): void {
    this.#slots.set(slot.plugin.name, slot)
  }

  vacate(name: string): void {
    this.#slots.delete(name)
    this.options.hooks.changed.call(name, { status: 'disabled', why: 'it was unloaded' })
  }

  /** The start order of all plugins without a problem, and the states of the other plugins. */
  plan(): Pick<Plan, 'order' | 'depths'> & { readonly stuck: readonly (readonly [string, PluginState])[] } {
    const lost = new Map<string, string>()
    const stuck: [string, PluginState][] = []
    const candidates: Plugin[] = []
    for (const { plugin, state, error, full, displaced } of this.#slots.values()) {
      const owed = displaced?.provides?.id
      if (state.status !== 'disabled' && error === undefined) {
        if (owed === undefined || owed === plugin.provides?.id) candidates.push(plugin)
        else stuck.push([plugin.name, { status: 'failed', error: `it has to provide ${owed}, as ${plugin.name} does` }])
      } else if (plugin.provides) {
        const why = full ? 'waits for free disk space' : state.status === 'disabled' ? 'is disabled' : 'failed'
        lost.set(plugin.provides.id, `of ${plugin.name}, which ${why}`)
      }
    }
    const { order, depths, waiting, failed } = makePlan(candidates, lost)
    for (const [name, missing] of waiting) stuck.push([name, { status: 'waiting', missing }])
    for (const [name, error] of failed) stuck.push([name, { status: 'failed', error }])
    return { order, depths, stuck }
  }

  /** Why nothing serves a path: its route is one of a plugin that waits. */
  whyUnrouted(path: string): Fault | undefined {
    const matches = (template: string) => new RegExp(`^${template.replace(/\{[^}]+\}/g, '[^/]+')}$`).test(path)
    for (const { plugin, state } of this.#slots.values())
      if (state.status === 'waiting' && plugin.surface.routes?.some(route => matches(route.path)))
        return KernelErrors.unavailable(`${plugin.name} does not run now: ${reasonOf(state)}`, { next: 'svc doctor' })
    return undefined
  }

  /** Clears the errors of the dependents of a plugin that changes: they may have failed because of its former version. */
  forgive(root: Slot): void {
    const all = [...this.#slots.values()]
    const dependents = dependentsOf(
      root.plugin,
      all.map(slot => slot.plugin),
    )
    for (const slot of all) if (slot !== root && dependents.includes(slot.plugin)) delete slot.error
  }

  /** Records why a plugin did not start. A full disk leaves it waiting instead of failed. */
  refuse(slot: Slot, thrown: unknown): PluginState {
    const error = messageOf(thrown)
    slot.error = error
    const { next, hint } = Object(thrown) as { next?: string; hint?: string }
    const helps = next ?? hint
    if (faultOf(thrown).code !== 'disk_full') return { status: 'failed', error, ...(helps ? { next: helps } : {}) }
    slot.full = true
    return { status: 'waiting', missing: [`free disk space (disk_full): ${error}`] }
  }

  /** Allows plugins that found the disk full to start; true when there are any. */
  retryFull(): boolean {
    const found = [...this.#slots.values()].filter(({ full }) => full)
    for (const slot of found) {
      delete slot.error
      delete slot.full
    }
    return found.length > 0
  }

  become(name: string, state: PluginState): void {
    const slot = this.#slots.get(name)
    if (!slot) return
    const changed = slot.state.status !== state.status
    slot.state = state
    if (changed && (this.booted || state.status === 'failed')) this.options.hooks.changed.call(name, state)
  }

  view(): PluginInfo[] {
    return [...this.#slots.values()]
      .map(({ plugin, by, state, scope }) => ({
        name: plugin.name,
        version: plugin.version,
        state,
        requires: needsOf(plugin).map(({ id, hard }) => (hard ? id : `${id}?`)),
        ...(plugin.provides ? { provides: plugin.provides.id } : {}),
        ...(by ? { replacedBy: by } : {}),
        holds: scope?.held() ?? [],
        hooks: scope?.hooks ?? [],
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** Names in `plugins.disabled` and `plugins.replace` that belong to no plugin. */
  unknown(): string[] {
    const known = new Set([...this.#slots.values()].flatMap(({ plugin, by }) => [plugin.name, by]))
    return [...this.options.disabled, ...this.options.replace].filter(name => !known.has(name))
  }
}

/** The plugin is the prototype, not copied: it can be an instance of a class with private state. */
const namedAs = (name: string, plugin: Plugin): Plugin =>
  Object.create(plugin, { name: { value: name, enumerable: true } })
