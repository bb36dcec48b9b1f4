import { faultOf, messageOf } from '../contract/errors.js'
import { isDropIn, type Plugin, type PluginState, reasonOf } from '../contract/plugin.js'
import type { KernelHooks } from '../hooks/kernel-hooks.js'
import type { OwnedScope } from '../scope.js'
import { dependentsOf, makePlan, needsOf, type Plan } from './plan.js'

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

/** A plugin as others see it. */
export interface PluginInfo {
  readonly name: string
  readonly version: string
  readonly state: PluginState
  readonly requires: readonly string[]
  readonly provides?: string
  /** The plugin that runs in the place of the one of this name. */
  readonly replacedBy?: string
  /** Labels of what its scope holds. */
  readonly holds: readonly string[]
  /** The hooks that it made. */
  readonly hooks: OwnedScope['hooks']
}

/** A name and who runs, or does not run, under it. */
export interface Slot {
  readonly plugin: Plugin
  /** Own name of one that runs in the place of another. */
  readonly by?: string
  /** Whom that has displaced; it gets the place back. */
  readonly displaced?: Plugin
  state: PluginState
  /** Why it cannot start; it is not tried again before itself, or something that it requires, is loaded anew. */
  error?: string
  /** It could not start for want of room on the disk, and is tried again when there is some. */
  full?: true
  scope?: OwnedScope
  /** What the functions of its surface are called with, once it is applied. */
  self?: unknown
}

export interface SlotOptions {
  /** Names of plugins that do not run. */
  readonly disabled: readonly string[]
  /** Names of plugins that do not run this time, and why. */
  readonly leftOut: ReadonlyMap<string, string>
  /** Why no drop-in runs. */
  readonly safeMode?: string
  /** Names of plugins that may take the place of those which they replace. */
  readonly replace: readonly string[]
  /** Names that plugins had, and the plugin that does their work now, or `kernel`. */
  readonly formerNames: Readonly<Record<string, string>>
  /** @internal */
  readonly hooks: Pick<KernelHooks, 'changed'>
}

/** Every plugin that the host has been given, by the name under which it runs, and what is planned for them. */
export class Slots {
  readonly #slots = new Map<string, Slot>()
  /** What starts with the boot is no news. */
  booted = false

  readonly #leftOut: Map<string, string>

  constructor(private readonly options: SlotOptions) {
    this.#leftOut = new Map(options.leftOut)
  }

  get(name: string): Slot | undefined {
    return this.#slots.get(name)
  }

  /** Name under which a plugin runs, or would: its own, or that of the one whose place it has. */
  nameOf(own: string): string | undefined {
    return [...this.#slots].find(([name, { by }]) => (by ?? name) === own)?.[0]
  }

  /** The one that provides a token in the place of a plugin that could have it back. */
  replacementOf(token: string): Slot | undefined {
    return [...this.#slots.values()].find(
      ({ plugin, by, displaced, scope }) => by && displaced && scope && plugin.provides?.id === token,
    )
  }

  loaded(): Plugin[] {
    return [...this.#slots.values()].filter(slot => slot.scope).map(slot => slot.plugin)
  }

  /** Those that may run and take nobody's place. */
  ordinary(): Plugin[] {
    return [...this.#slots.values()]
      .filter(({ by, state, error }) => !by && error === undefined && state.status !== 'disabled')
      .map(({ plugin }) => plugin)
  }

  /** One that does not run takes nobody's place. */
  seatOf(plugin: Plugin): Seat {
    const { replace, formerNames } = this.options
    if (this.whyNot(plugin.name) !== undefined) return { plugin }
    const seat = seatOf(plugin, replace)
    const { name } = seat.plugin
    return seat.by && Object.hasOwn(formerNames, name) ? this.#seatAt(formerNames[name] as string, plugin) : seat
  }

  /** The place of one that replaces a plugin which is now a part of another: it has to do the work of the whole. */
  #seatAt(successor: string, plugin: Plugin): Seat {
    const error = `it replaces ${plugin.replaces}, which is a part of ${successor === 'kernel' ? 'the kernel' : successor} now`
    const slot = this.#slots.get(successor)
    const id = (slot?.displaced ?? slot?.plugin)?.provides?.id
    if (id === undefined) return { plugin, error: `${error} and cannot be replaced` }
    if (id !== plugin.provides?.id) return { plugin, error: `${error}: its replacement has to provide ${id}` }
    return { plugin: namedAs(successor, plugin), by: plugin.name }
  }

  /** Who gives its place up to one that gets a seat, or did so before. */
  displacedBy({ plugin, by }: Seat): Plugin | undefined {
    const before = this.#slots.get(plugin.name)
    return by && !before?.by ? before?.plugin : before?.displaced
  }

  /**
   * Notes why one cannot start. During a boot whom it was to replace has its place again, and it stands under its own name.
   * @returns whether there is one, which is to start instead
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

  /** Gives one of many a place; those that replace others come after these. Says why it has none. */
  admit(plugin: Plugin): string | undefined {
    const seat = this.seatOf(plugin)
    const { name } = seat.plugin
    const holder = this.#slots.get(name)
    if (!holder) this.seat(seat)
    else if (seat.by && !holder.by) this.seat(seat, holder.plugin)
    else return `another plugin is named ${name} already`
    return undefined
  }

  seat({ plugin, by, error }: Seat, displaced?: Plugin): Slot {
    const why = this.whyNot(plugin.name)
    if (by) this.#slots.delete(by)
    const slot: Slot = {
      plugin,
      ...(by ? { by } : {}),
      ...(displaced ? { displaced } : {}),
      ...(error ? { error } : {}),
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
    return this.#leftOut.get(name) ?? (isDropIn(name) ? this.whyNoDropIn() : undefined)
  }

  isLeftOut(name: string): boolean {
    return this.#leftOut.has(name)
  }

  retry(name: string): void {
    this.#leftOut.delete(name)
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

  /** The order of those that can start, and why others cannot. */
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
        const why = full ? 'waits for room on the disk' : state.status === 'disabled' ? 'is disabled' : 'failed'
        lost.set(plugin.provides.id, `of ${plugin.name}, which ${why}`)
      }
    }
    const { order, depths, waiting, failed } = makePlan(candidates, lost)
    for (const [name, missing] of waiting) stuck.push([name, { status: 'waiting', missing }])
    for (const [name, error] of failed) stuck.push([name, { status: 'failed', error }])
    return { order, depths, stuck }
  }

  /** Those that failed for what they require try again when that is another. */
  forgive(root: Slot): void {
    const all = [...this.#slots.values()]
    const dependents = dependentsOf(
      root.plugin,
      all.map(slot => slot.plugin),
    )
    for (const slot of all) if (slot !== root && dependents.includes(slot.plugin)) delete slot.error
  }

  /** Notes why one did not start, and that it may try again where there was no room on the disk. */
  refuse(slot: Slot, thrown: unknown): PluginState {
    const error = messageOf(thrown)
    slot.error = error
    const { next, hint } = Object(thrown) as { next?: string; hint?: string }
    const helps = next ?? hint
    if (faultOf(thrown).code !== 'disk_full') return { status: 'failed', error, ...(helps ? { next: helps } : {}) }
    slot.full = true
    return { status: 'waiting', missing: [`room on the disk (disk_full): ${error}`] }
  }

  /** Those that found the disk full may start; says whether there are any. */
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

  /** Names that the configuration has disabled, or lets take the place of others, and that no plugin has. */
  unknown(): string[] {
    const known = new Set([...this.#slots.values()].flatMap(({ plugin, by }) => [plugin.name, by]))
    return [...this.options.disabled, ...this.options.replace].filter(name => !known.has(name))
  }
}

/**
 * Where a plugin belongs. One that replaces another takes its name, and with the name its tables, schema stream, routes and
 * configuration, but only when the operator names it: whoever can drop a folder in must not take over what exists.
 */
function seatOf(plugin: Plugin, replace: readonly string[]): Seat {
  const { replaces } = plugin
  if (replaces === undefined) return { plugin }
  if (!replace.includes(plugin.name)) {
    return { plugin, error: `it replaces ${replaces} once plugins.replace in config.json names ${plugin.name}` }
  }
  return { plugin: namedAs(replaces, plugin), by: plugin.name }
}

/** A plugin can be an object of a class; what it is made of stays within its reach. */
const namedAs = (name: string, plugin: Plugin): Plugin =>
  Object.create(plugin, { name: { value: name, enumerable: true } })
