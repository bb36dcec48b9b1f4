import { within } from '../clock.js'
import { Fault, messageOf } from '../contract/errors.js'
import type { Change } from '../contract/kernel-hooks.js'
import { isDropIn, type Plugin, type PluginState, reasonOf } from '../contract/plugin.js'
import { Redactors } from '../contract/redact.js'
import { kernelTapper } from '../hooks/kernel-hooks.js'
import { Serial } from '../kit/serial.js'
import { OwnedScope } from '../scope.js'
import { conflictOf, lackOf } from './claims.js'
import { HeldWrites } from './held-writes.js'
import { OptionalTaps } from './optional-taps.js'
import type { HostOptions } from './options.js'
import { dependentsOf, needsOf } from './plan.js'
import { quiesce } from './quiesce.js'
import { MissingHook, register } from './register.js'
import { Services } from './services.js'
import { type Seat, type Slot, Slots } from './slots.js'

/** A change under way: the plugins that it started, and those that taps of its stages refused, with the reason. */
class Changing implements Change {
  readonly started = new Set<string>()
  readonly refused = new Map<string, string>()

  constructor(readonly boot: boolean) {}

  fail(owner: string, error: string): void {
    this.refused.set(owner, error)
  }
}

/** Replaces a result that the caller ignores. */
const nothing = () => {}
const APPLY_MS = 30_000
const RELEASE_MS = 5000

/**
 * Runs plugins and knows none by name. A change is a sequence of stages, each a hook of the kernel: plugins are released,
 * dependents first; plugins are applied; then kinds are known, records projected, loops started and routes published.
 */
export class Host {
  readonly slots: Slots
  readonly #services: Services
  readonly #held: HeldWrites
  readonly #optional: OptionalTaps
  readonly #queue = new Serial()

  constructor(readonly options: HostOptions) {
    this.slots = new Slots(options)
    this.#held = new HeldWrites(options.hold)
    this.#services = new Services(options.clock, options.consumer)
    this.#optional = new OptionalTaps(this.#services)
    for (const one of options.kernelServices) this.#services.provide(one, one.service, options.scope)
    options.hooks.unrouted.tap(kernelTapper(options.scope), path => this.slots.whyUnrouted(path))
  }

  /** Starts every plugin whose requirements are met: apply → known → published → projected → running. */
  async boot(plugins: readonly Plugin[]): Promise<void> {
    const { hooks, report, critical, formerNames } = this.options
    // Replacements are admitted last: their place depends on the plugins that they replace.
    for (const plugin of [...plugins].sort(
      (a, b) => Number(a.replaces !== undefined) - Number(b.replaces !== undefined),
    )) {
      const error = this.slots.admit(plugin)
      if (error !== undefined) report({ owner: plugin.name, hook: 'plan', error })
    }
    const change = new Changing(true)
    await this.#settle(change)
    for (const former of critical) {
      const name = formerNames[former] ?? former
      if (name === 'kernel') continue
      const slot = this.slots.get(name)
      if (slot?.state.status === 'active' || slot?.full) continue
      const why = slot ? reasonOf(slot.state) : 'it is absent'
      throw new Error(`the required plugin ${name} did not start: ${why}`)
    }
    await this.#publish(change)
    await hooks.projected.call(change)
    this.slots.booted = true
    await hooks.running.call(change)
  }

  /**
   * Loads a plugin into the running host; plugins that waited for it start too. A replacement of a running plugin is exchanged with
   * it as by {@link reload}.
   */
  load(plugin: Plugin): Promise<PluginState> {
    return this.#change(async change => {
      const seat = this.slots.seatOf(plugin)
      const before = this.slots.get(seat.plugin.name)
      if (before?.scope && (before.by || !seat.by)) throw new Error(`${seat.plugin.name} is loaded already`)
      return this.#exchange(before, seat, change)
    })
  }

  /**
   * Replaces the running version of a plugin and restarts its dependents. Checks run before anything is released; when the new
   * version does not start, the version before runs again.
   * @throws Fault `reload_failed`, saying why
   */
  reload(plugin: Plugin): Promise<PluginState> {
    return this.#change(async change => {
      const seat = this.slots.seatOf(plugin)
      const before = this.slots.get(seat.plugin.name)
      if (!before) throw new Error(`no plugin is named ${seat.plugin.name}`)
      return this.#exchange(before, seat, change)
    })
  }

  /** Unloads a plugin. Plugins that require it are released first and then wait for it. */
  unload(name: string): Promise<void> {
    return this.#change(async change => {
      const root = this.slots.get(name)
      if (!root) throw new Error(`no plugin is named ${name}`)
      await this.#leave(root, change)
      this.slots.vacate(name)
      if (root.displaced) this.slots.seat({ plugin: root.displaced })
      await this.#begin(change)
    })
  }

  /** Starts the plugins that found the disk full; called when there is space again. */
  async startWaiting(): Promise<void> {
    if (this.slots.booted && this.slots.retryFull()) await this.#change(change => this.#begin(change))
  }

  /**
   * First pass of a shutdown: runs the quiesce phases in this order within `ms` altogether; phases that only plugins name come
   * last.
   */
  quiesce(order: readonly string[], ms: number): Promise<void> {
    return quiesce(order, this.options, ms)
  }

  /** Releases every plugin, in reverse order of dependency. */
  async releaseAll(): Promise<Error[]> {
    const errors: Error[] = []
    const owners = [...this.slots.plan().order].reverse().map(({ name }) => name)
    await this.options.hooks.leaving.call({ owners, why: 'shutdown' })
    for (const name of owners) errors.push(...(await this.#release(this.slots.get(name))))
    return errors
  }

  /** Runs one change at a time, and publishes its routes. */
  #change<T>(work: (change: Changing) => Promise<T>): Promise<T> {
    const change = new Changing(false)
    return this.#queue.run(() => work(change).finally(() => this.#publish(change)))
  }

  /** Publishes the routes. A plugin whose routes cannot be served fails, and the others are published again. */
  async #publish(change: Changing): Promise<void> {
    const { hooks } = this.options
    for (;;) {
      await hooks.published.call(change)
      if (!(await this.#failRefused(change))) return
      await this.#settle(change)
    }
  }

  /** Applies plugins, then projects records and starts loops. */
  async #begin(change: Changing): Promise<void> {
    await this.#settle(change)
    await this.options.hooks.projected.call(change)
    await this.options.hooks.running.call(change)
  }

  /**
   * Applies plugins until no other one can start, then announces the kinds of all of them. Repeated when a tap of that stage
   * refuses one, since its failure changes the plan.
   */
  async #settle(change: Changing): Promise<void> {
    do {
      for (;;) {
        const { order, depths, stuck } = this.slots.plan()
        // All failures are recorded first: one of them can give a replaced plugin its place back, which changes the plan.
        if (stuck.map(([name, state]) => this.slots.stay(name, state)).includes(true)) continue
        const next = order.filter(({ name }) => !this.slots.get(name)?.scope)
        if (next.length === 0) break
        // Plugins that check others or redact secrets start first, so that no plugin of this change escapes them.
        const judges = ({ surface: { hooks, registries = [] } }: Plugin) =>
          Number(hooks?.check !== undefined || registries.some(({ to }) => to.registry === Redactors.registry))
        for (const { name } of [...next].sort((a, b) => judges(b) - judges(a))) {
          change.started.add(name)
          await this.#apply(this.slots.get(name) as Slot, depths.get(name) ?? 0, change)
        }
      }
      this.options.hooks.known.call(change)
    } while (await this.#failRefused(change))
  }

  /** Fails the plugins that taps have refused; true when one of them was running. */
  async #failRefused(change: Changing): Promise<boolean> {
    const refused = [...change.refused]
    change.refused.clear()
    let failed = false
    for (const [owner, error] of refused) {
      const slot = this.slots.get(owner)
      if (!slot && change.boot) throw new Error(error)
      if (!slot) this.options.report({ owner, hook: 'change', error })
      if (!slot?.scope) continue
      await this.#fail(slot, error, change)
      failed = true
    }
    return failed
  }

  async #apply(slot: Slot, depth: number, change: Changing): Promise<void> {
    const { plugin } = slot
    const { name, surface } = plugin
    // A required plugin may have failed since the plan was made; the next plan gives the reason.
    if (needsOf(plugin).some(({ id, hard }) => hard && !this.#services.has(id))) return
    const scope = new OwnedScope(name, this.options.clock)
    const tapper = { owner: name, depth, scope, isDropIn: isDropIn(slot.by ?? name) }
    slot.scope = scope
    try {
      // Not for plugins of the program at boot, where it would take time: the build has checked them.
      if (this.slots.booted || slot.by || isDropIn(name)) await this.#check(slot)
      else this.#checkClaims(slot)
      const tables = this.options.migrate(slot)
      this.options.adopt(plugin, scope)
      const needs = this.#services.for(plugin, scope)
      const kernel = this.options.kernelFor(plugin, needs, { ...tapper, tables })
      const service = await within(this.options.clock, APPLY_MS, Promise.resolve(plugin.apply(kernel)))
      const required = new Map(needsOf(plugin).map(need => [need.id, needs[need.name]]))
      slot.service = service ?? kernel
      register(this.options.hooks, tapper, surface, slot.service, kernel.db, id => required.get(id))
      this.#optional.hold(plugin, tapper, slot.service, required)
      this.#services.provide(plugin, service, scope)
      const failed = plugin.provides ? this.#optional.provided(plugin.provides.id) : []
      this.slots.become(name, { status: 'active' })
      this.#held.end(name)
      for (const { holder, error } of failed) {
        if (!slot.scope) break
        const failing = this.#lacking(error) ?? this.slots.get(holder)
        if (failing?.scope) await this.#fail(failing, error, change)
      }
    } catch (error) {
      const lacking = this.#lacking(error)
      await this.#fail(lacking ?? slot, error, change)
      if (lacking) await this.#leave(slot, change)
    }
  }

  /** A hook that the replaced plugin has and its replacement lacks is the fault of the replacement, not of the plugin that taps it. */
  #lacking(error: unknown): Slot | undefined {
    return error instanceof MissingHook ? this.slots.replacementOf(error.token) : undefined
  }

  /** Runs the checks that need no start. @throws the reason for a refusal */
  async #check(slot: Seat): Promise<void> {
    this.#checkClaims(slot)
    const refused = await this.options.hooks.check.ask(slot.plugin)
    if (refused) throw refused
  }

  /** Checks claims. A boot starts replacements last, but plugins that have not started yet count as rivals of a replacement too. */
  #checkClaims({ plugin, by, displaced }: Seat): void {
    const rivals = by && !this.slots.booted ? this.slots.ordinary() : []
    const why = conflictOf(plugin, [...this.slots.loaded(), ...rivals]) ?? lackOf(plugin, displaced)
    if (why !== undefined) throw new Error(why)
  }

  async #fail(slot: Slot, error: unknown, change: Changing): Promise<void> {
    const state = this.slots.refuse(slot, error)
    const name = slot.by ?? slot.plugin.name
    change.started.delete(slot.plugin.name)
    const { log } = this.options.consumer(name, this.options.scope)
    log.error(`plugin ${name} ${state.status}: ${reasonOf(state)}`)
    await this.#leave(slot, change)
    this.slots.stay(slot.plugin.name, state)
  }

  /** Releases a plugin and its dependents: loops and work end first, then routes, then everything that their scopes hold. */
  async #leave(root: Slot, change: Changing, comesBack = false): Promise<void> {
    if (!root.scope) return
    const loaded = this.slots.loaded()
    const leaving = dependentsOf(root.plugin, loaded)
    if (comesBack) this.#held.expect(leaving, loaded)
    const owners = leaving.map(({ name }) => name)
    for (const plugin of leaving) await quiesce([], this.options, RELEASE_MS, plugin.name)
    await this.options.hooks.leaving.call({ owners, why: 'change', change })
    for (const name of owners) {
      const slot = this.slots.get(name)
      if (!slot?.scope) continue
      this.#held.begin(name)
      await this.#release(slot)
      this.slots.become(name, { status: 'waiting', missing: [] })
    }
  }

  async #release(slot: Slot | undefined): Promise<Error[]> {
    if (!slot?.scope) return []
    const { plugin, scope } = slot
    this.#services.withdraw(plugin)
    delete slot.scope
    delete slot.service
    const errors = await scope.release(RELEASE_MS)
    for (const error of errors) this.options.report({ owner: plugin.name, hook: 'release', error })
    return errors
  }

  /** @param before the plugin that has the name now */
  async #exchange(before: Slot | undefined, seat: Seat, change: Changing): Promise<PluginState> {
    const ran = before?.state.status === 'active' ? before : undefined
    const { name, version } = seat.plugin
    const failed = (why: string, next?: string) => {
      const error = `${name} ${version} did not start, ${ran?.plugin.version} runs again: ${why}`
      this.options.report({ owner: seat.by ?? name, hook: 'reload', error })
      return new Fault('reload_failed', 422, error, { next })
    }
    const why = ran && (await this.#check(seat).then(nothing, messageOf))
    if (why) throw failed(why)
    try {
      if (before) await this.#leave(before, change, true)
      const slot = this.slots.seat(seat)
      this.slots.forgive(slot)
      await this.#begin(change)
      const { state } = slot
      if (state.status === 'active' || !ran) return state
      const error = failed(reasonOf(state), 'next' in state ? state.next : undefined)
      await this.#leave(slot, change)
      this.slots.restore(ran)
      this.slots.forgive(ran)
      await this.#begin(change)
      throw error
    } finally {
      this.#held.end()
    }
  }
}
