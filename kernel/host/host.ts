import type { Clock } from '../contract/clock.js'
import { Fault, messageOf } from '../contract/errors.js'
import type { Report, Tapper } from '../contract/hook.js'
import { type AttributedFault, type PluginState, reasonOf } from '../contract/host-view.js'
import type { Ids } from '../contract/ids.js'
import type { Plugin } from '../contract/plugin.js'
import type { PluginKernel } from '../contract/plugin-kernel.js'
import type { Transport } from '../http/transport.js'
import type { ReconcileLoop } from '../reconcile/loop.js'
import type { RecordStore } from '../records/store.js'
import { OwnedScope, within } from '../scope.js'
import type { Store } from '../store/index.js'
import { duplicateOf } from './duplicates.js'
import { FaultLog } from './fault-log.js'
import { dependentsOf, needsOf, resolveNeeds } from './plan.js'
import { quiesce } from './quiesce.js'
import { startReconcilers } from './reconcilers.js'
import { Registries } from './registries.js'
import type { Seat } from './seat.js'
import { keepRunning } from './service-loop.js'
import { type Slot, type SlotOptions, Slots } from './slots.js'
import { migrateTables, type PluginTables } from './tables.js'

type LetIn = () => Promise<void>
const APPLY_MS = 30_000
const RELEASE_MS = 5000
const DRAIN_MS = 5000

export interface HostOptions extends SlotOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly store: Store
  readonly records: RecordStore
  readonly reconcile: ReconcileLoop
  readonly transport: Transport
  /** Plugins without which the boot stops. */
  readonly critical: readonly string[]
  /** Makes what a plugin is handed. */
  readonly kernelFor: (
    plugin: Plugin,
    needs: Record<string, unknown>,
    tapper: Tapper & { scope: OwnedScope; tables: PluginTables },
  ) => PluginKernel
  readonly log: (level: 'info' | 'warn' | 'error', text: string, fields: Record<string, unknown>) => void
}

/** Runs plugins and knows none by name. A change is two steps: who has to go leaves, dependents first, and all is settled. */
export class Host {
  readonly registries: Registries
  readonly slots: Slots
  readonly #services = new Map<string, unknown>()
  readonly #faults = new FaultLog()
  /** Lets in the requests that wait for routes of those who left; called when the change is over. */
  #held: LetIn[] = []
  #queue: Promise<void> = Promise.resolve()

  constructor(readonly options: HostOptions) {
    this.registries = new Registries(this.report)
    this.slots = new Slots(options)
  }

  /** Remembers a failure and whose it is; it hurts nobody else. */
  readonly report: Report = ({ owner, hook, error }) => {
    const text = messageOf(error)
    if (this.#faults.add({ at: this.options.clock.now(), owner, where: hook, error: text }))
      this.options.log('warn', `${owner} failed in ${hook}`, { plugin: owner, error: text })
  }

  faults = (): readonly AttributedFault[] => this.#faults.list()

  /** plan → migrate → apply → collect → publish → boot reconcile. Loops start with {@link startServices}. */
  async boot(plugins: readonly Plugin[]): Promise<void> {
    for (const plugin of plugins) {
      const refused = this.slots.admit(plugin)
      if (refused !== undefined) this.report({ owner: plugin.name, hook: 'plan', error: refused })
    }
    await this.#settle(new Set())
    for (const name of this.options.critical) {
      const slot = this.slots.get(name)
      if (slot?.state.status === 'active' || slot?.full) continue
      const why = slot ? reasonOf(slot.state) : 'it is absent'
      throw new Error(`the plugin ${name}, without which nothing works, did not start: ${why}`)
    }
    await this.#publish().catch(error => this.#failUnservable(error))
    await this.#reconcileNew()
    this.slots.booted = true
  }

  startServices(owners: ReadonlySet<string> = new Set(this.slots.names())): void {
    const { clock, ids } = this.options
    for (const { owner, entry } of this.registries.services.collect()) {
      const scope = this.slots.get(owner)?.scope
      if (scope && owners.has(owner)) keepRunning(owner, entry, scope, clock, ids, this.report)
    }
  }

  /** Loads a plugin; those that waited for it start too. One that replaces a plugin takes its place as {@link reload} does. */
  load(plugin: Plugin): Promise<PluginState> {
    return this.#change(async () => {
      const seat = this.slots.seatOf(plugin)
      const before = this.slots.get(seat.plugin.name)
      if (before?.scope && seat.by && !before.by) return this.#exchange(before, seat)
      if (before?.scope) throw new Error(`${seat.plugin.name} is loaded already`)
      const slot = this.slots.seat(seat, this.slots.displacedBy(seat))
      this.slots.forgive(slot)
      await this.#begin()
      return slot.state
    })
  }

  /**
   * Puts another version in the place of a plugin and starts its dependents on it. When it does not start, the version that
   * ran before comes back.
   * @throws Fault `reload_failed`, saying why
   */
  reload(plugin: Plugin): Promise<PluginState> {
    return this.#change(async () => {
      const seat = this.slots.seatOf(plugin)
      const before = this.slots.get(seat.plugin.name)
      if (before) return this.#exchange(before, seat)
      throw new Error(`no plugin is named ${seat.plugin.name}`)
    })
  }

  /** Unloads a plugin and those that require it, dependents first; dependents then wait for it. */
  unload(name: string): Promise<void> {
    return this.#change(async () => {
      const root = this.slots.get(name)
      if (!root) throw new Error(`no plugin is named ${name}`)
      await this.#leave(root)
      this.slots.vacate(name)
      if (root.displaced) this.slots.seat({ plugin: root.displaced })
      await this.#begin()
    })
  }

  /** There is room on the disk: the plugins that found none start. */
  async startWaiting(): Promise<void> {
    if (this.slots.booted && this.slots.retryFull()) await this.#change(() => this.#begin())
  }

  /** Releases every plugin, in reverse order of dependency. */
  async releaseAll(): Promise<Error[]> {
    const errors: Error[] = []
    for (const { name } of [...this.slots.plan().order].reverse()) {
      const slot = this.slots.get(name)
      if (slot) errors.push(...(await this.#release(slot)))
    }
    return errors
  }

  /** One change after the other. Their routes are published outside of the queue, so that a burst of them shares a generation. */
  async #change<T>(work: () => Promise<T>): Promise<T> {
    let held: LetIn[] = []
    const done = this.#queue.then(work).finally(() => {
      held = this.#held.splice(0)
    })
    this.#queue = done.then(
      () => {},
      () => {},
    )
    try {
      return await done
    } finally {
      await this.#publish(held)
    }
  }

  async #publish(held = this.#held.splice(0)): Promise<void> {
    await Promise.all([this.options.transport.publish(), ...held.map(letIn => letIn())])
  }

  /** What a change brought begins to work. */
  async #begin(): Promise<void> {
    const fresh = new Set<string>()
    await this.#settle(fresh)
    await this.#reconcileNew()
    this.startServices(fresh)
  }

  /** Applies whoever can start, until nobody can any more, and makes known what all of them registered. */
  async #settle(fresh: Set<string>): Promise<void> {
    for (;;) {
      const { order, depths, stuck } = this.slots.plan()
      // All of them are noted before anybody who takes their place is planned.
      if (stuck.map(([name, state]) => this.slots.stay(name, state)).includes(true)) continue
      const next = order.filter(({ name }) => !this.slots.get(name)?.scope)
      if (next.length === 0) break
      for (const { name } of next) {
        fresh.add(name)
        await this.#apply(this.slots.get(name) as Slot, depths.get(name) ?? 0)
      }
      await this.#failDuplicates(fresh)
    }
    const kinds = this.registries.kinds.collect()
    this.options.records.setKinds(new Map(kinds.map(({ entry }) => [entry.name, entry])))
  }

  async #apply(slot: Slot, depth: number): Promise<void> {
    const { plugin } = slot
    // What it needs may have failed since the plan was made; the next plan says so.
    if (needsOf(plugin).some(({ id, hard }) => hard && !this.#services.has(id))) return
    const scope = new OwnedScope(plugin.name, this.options.clock)
    slot.scope = scope
    try {
      // Not at boot, where it would cost: those that come with the program are described by its build.
      if (this.slots.booted || slot.by || plugin.name.includes('.')) await this.options.transport.check(plugin)
      const tables = migrateTables(this.options.store, slot)
      const needs = resolveNeeds(plugin, this.#services)
      const kernel = this.options.kernelFor(plugin, needs, { owner: plugin.name, depth, scope, tables })
      const service = await within(this.options.clock, APPLY_MS, Promise.resolve(plugin.apply(kernel)))
      if (plugin.provides) this.#services.set(plugin.provides.id, service)
      this.slots.become(plugin.name, { status: 'active' })
    } catch (error) {
      await this.#fail(slot, error)
    }
  }

  async #fail(slot: Slot, error: unknown): Promise<void> {
    const state = this.slots.refuse(slot, error)
    const name = slot.by ?? slot.plugin.name
    this.options.log('error', `plugin ${name} ${state.status}: ${reasonOf(state)}`, { plugin: name })
    await this.#leave(slot)
    this.slots.stay(slot.plugin.name, state)
  }

  /** Taking a name that is taken fails the plugin that came later. */
  async #failDuplicates(fresh: ReadonlySet<string>): Promise<void> {
    for (;;) {
      const duplicate = duplicateOf(this.registries, this.slots.booted ? fresh : this.slots.replacing())
      const slot = duplicate && this.slots.get(duplicate.owner)
      if (!slot?.scope) return
      await this.#fail(slot, duplicate?.error ?? '')
    }
  }

  /** When no generation boots with the routes of all: those whose routes are to blame. */
  async #failUnservable(error: unknown): Promise<void> {
    let blamed = false
    for (const plugin of this.slots.loaded()) {
      const slot = this.slots.get(plugin.name)
      const refused = await this.options.transport.check(plugin).then(() => undefined, messageOf)
      if (refused === undefined || !slot?.scope) continue
      await this.#fail(slot, refused)
      blamed = true
    }
    if (!blamed) throw error
    await this.#settle(new Set())
    await this.#publish()
  }

  /** A plugin and its dependents go: what runs ends, then their routes, then all they hold. */
  async #leave(root: Slot): Promise<void> {
    if (!root.scope) return
    const names = dependentsOf(root.plugin, this.slots.loaded()).map(({ name }) => name)
    for (const name of names) await quiesce(this, this.options.clock, ({ owner }) => owner === name, RELEASE_MS)
    this.#held.push(this.options.transport.hold(names))
    await Promise.all(names.map(name => this.options.transport.drain(name, DRAIN_MS)))
    for (const name of names) {
      const slot = this.slots.get(name)
      if (!slot?.scope) continue
      await this.#release(slot)
      this.slots.become(name, { status: 'waiting', missing: [] })
    }
  }

  async #release(slot: Slot): Promise<Error[]> {
    const { plugin, scope } = slot
    if (!scope) return []
    if (plugin.provides) this.#services.delete(plugin.provides.id)
    delete slot.scope
    this.options.transport.streams.end('replaced', { owner: plugin.name })
    const errors = await scope.release(RELEASE_MS)
    for (const error of errors) this.report({ owner: plugin.name, hook: 'release', error })
    return errors
  }

  async #exchange(before: Slot, seat: Seat): Promise<PluginState> {
    const ran = before.state.status === 'active'
    await this.#leave(before)
    const slot = this.slots.seat(seat, this.slots.displacedBy(seat))
    this.slots.forgive(slot)
    await this.#begin()
    const { state } = slot
    if (state.status === 'active' || !ran) return state
    const error = `${seat.plugin.name} ${seat.plugin.version} did not start, ${before.plugin.version} runs again: ${reasonOf(state)}`
    this.report({ owner: seat.by ?? seat.plugin.name, hook: 'reload', error })
    await this.#leave(slot)
    this.slots.restore(before)
    this.slots.forgive(before)
    await this.#begin()
    throw new Fault('reload_failed', 422, error)
  }

  #reconcileNew(): Promise<void> {
    return startReconcilers(this.registries, this.options.reconcile, owner => this.slots.get(owner)?.scope)
  }
}
