import type { Clock } from '../clock.js'
import { messageOf } from '../errors.js'
import type { Report, Tapper } from '../hooks/index.js'
import type { Transport } from '../http/transport.js'
import type { Ids } from '../ids.js'
import type { Plugin } from '../plugin.js'
import type { PluginKernel } from '../plugin-kernel.js'
import type { ReconcileLoop } from '../reconcile/loop.js'
import type { RecordStore } from '../records/store.js'
import { OwnedScope, within } from '../scope.js'
import type { Store } from '../store/index.js'
import { duplicateOf, kindOrder } from './duplicates.js'
import { dependentsOf, hardNeeds, makePlan, needsOf, resolveNeeds } from './plan.js'
import { type BoundService, Registries } from './registries.js'
import { keepRunning } from './service-loop.js'
import type { AttributedFault, PluginInfo, PluginState } from './view.js'

const APPLY_MS = 30_000
const RELEASE_MS = 5000
const DRAIN_MS = 5000
const FAULTS_KEPT = 200

interface Slot {
  readonly plugin: Plugin
  state: PluginState
  scope?: OwnedScope
  service?: unknown
}

export interface HostOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly store: Store
  readonly records: RecordStore
  readonly reconcile: ReconcileLoop
  readonly transport: Transport
  readonly disabled: readonly string[]
  /** Plugins without which the boot stops. */
  readonly critical: readonly string[]
  /** Makes what a plugin is handed. */
  readonly kernelFor: (
    plugin: Plugin,
    needs: Record<string, unknown>,
    tapper: Tapper & { scope: OwnedScope },
  ) => PluginKernel
  readonly log: (level: 'info' | 'warn' | 'error', text: string, fields: Record<string, unknown>) => void
  /** Says that a plugin changed state, for the event log. */
  readonly changed: (name: string, state: PluginState) => void
}

/** Runs plugins: plans, applies, collects what they registered, starts and ends them. It knows no plugin by name. */
export class Host {
  readonly registries: Registries
  readonly #slots = new Map<string, Slot>()
  readonly #services = new Map<string, unknown>()
  readonly #faults: AttributedFault[] = []
  #rank = 0
  #change: Promise<unknown> = Promise.resolve()

  constructor(private readonly options: HostOptions) {
    this.registries = new Registries(this.report)
  }

  /** Remembers a failure and whose it is; it hurts nobody else. */
  readonly report: Report = ({ owner, hook, error }) => {
    this.#faults.push({ at: this.options.clock.now(), owner, where: hook, error: messageOf(error) })
    if (this.#faults.length > FAULTS_KEPT) this.#faults.shift()
    this.options.log('warn', `${owner} failed in ${hook}`, { plugin: owner, error: messageOf(error) })
  }

  faults(): readonly AttributedFault[] {
    return this.#faults
  }

  plugins(): PluginInfo[] {
    return [...this.#slots.values()]
      .map(({ plugin, state, scope }) => ({
        name: plugin.name,
        version: plugin.version,
        state,
        requires: needsOf(plugin).map(({ id, hard }) => (hard ? id : `${id}?`)),
        ...(plugin.provides ? { provides: plugin.provides.id } : {}),
        holds: scope?.held() ?? [],
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** plan → migrate → apply → collect → publish → boot reconcile. Loops start with {@link startServices}. */
  async boot(plugins: readonly Plugin[]): Promise<void> {
    const enabled = plugins.filter(plugin => !this.options.disabled.includes(plugin.name))
    for (const plugin of plugins)
      if (!enabled.includes(plugin)) this.#slots.set(plugin.name, { plugin, state: { status: 'disabled' } })
    const plan = makePlan(enabled)
    for (const plugin of enabled) {
      const failed = plan.failed.get(plugin.name)
      const missing = plan.waiting.get(plugin.name)
      if (this.#slots.has(plugin.name)) continue
      if (failed !== undefined) this.#settle({ plugin, state: { status: 'failed', error: failed } })
      else this.#settle({ plugin, state: { status: 'waiting', missing: missing ?? [] } })
    }
    for (const plugin of plan.order) {
      const slot = this.#slots.get(plugin.name)
      if (slot) await this.#apply(slot)
    }
    for (const name of this.options.critical) {
      const slot = this.#slots.get(name)
      if (slot?.state.status === 'active') continue
      const why = slot?.state.status === 'failed' ? slot.state.error : (slot?.state.status ?? 'absent')
      throw new Error(`the plugin ${name}, without which nothing works, did not start: ${why}`)
    }
    await this.#collect()
    await this.options.transport.publish()
    await this.#reconcileNew()
  }

  startServices(): void {
    for (const { owner, entry } of this.registries.services.collect()) this.#startService(owner, entry)
  }

  /** Loads a plugin into the running host; those that waited for it start too. */
  async load(plugin: Plugin): Promise<PluginState> {
    const state = await this.#serially(async () => {
      if (this.#slots.get(plugin.name)?.scope) throw new Error(`${plugin.name} is loaded already`)
      const plan = makePlan([
        ...[...this.#slots.values()].map(slot => slot.plugin).filter(p => p.name !== plugin.name),
        plugin,
      ])
      const failed = plan.failed.get(plugin.name)
      const slot: Slot = { plugin, state: { status: 'waiting', missing: plan.waiting.get(plugin.name) ?? [] } }
      this.#slots.set(plugin.name, slot)
      if (failed !== undefined) slot.state = { status: 'failed', error: failed }
      else {
        const started = plan.order.filter(p => this.#slots.get(p.name)?.state.status === 'waiting')
        for (const next of started) await this.#apply(this.#slots.get(next.name) as Slot)
        await this.#collect()
        await this.#reconcileNew()
        const names = new Set(started.map(p => p.name))
        for (const { owner, entry } of this.registries.services.collect())
          if (names.has(owner)) this.#startService(owner, entry)
      }
      this.options.changed(plugin.name, slot.state)
      return slot.state
    })
    // Not in the queue of changes: those that come meanwhile share the generation.
    await this.options.transport.publish()
    return state
  }

  /** Unloads a plugin and those that require it, dependents first; dependents then wait for it. */
  async unload(name: string): Promise<void> {
    const gone = await this.#serially(async () => {
      const root = this.#slots.get(name)
      if (!root) throw new Error(`no plugin is named ${name}`)
      const leaving = this.#dependents(root)
      for (const slot of leaving) await this.quiesce(slot.plugin.name, RELEASE_MS)
      const gone = this.options.transport.hold(leaving.map(slot => slot.plugin.name))
      for (const slot of leaving) await this.#release(slot)
      await this.#collect()
      this.#slots.delete(name)
      for (const slot of leaving)
        if (slot !== root) slot.state = { status: 'waiting', missing: [root.plugin.provides?.id ?? name] }
      this.options.changed(name, { status: 'disabled' })
      return gone
    })
    await gone()
  }

  /** Runs the quiesce entries of one plugin or of one phase; errors are reported, the rest runs. */
  async quiesce(which: string | { readonly phase: string }, ms: number): Promise<void> {
    const signal = new AbortController()
    const wanted = this.registries.quiesce
      .collect()
      .filter(({ owner, entry }) => (typeof which === 'string' ? owner === which : entry.phase === which.phase))
    await Promise.all(
      wanted.map(async ({ owner, entry }) => {
        try {
          await within(this.options.clock, ms, Promise.resolve(entry.run(signal.signal)))
        } catch (error) {
          this.report({ owner, hook: `quiesce ${entry.phase}`, error })
        }
      }),
    )
    signal.abort()
  }

  /** Phases that plugins named, for those that the order of a shutdown does not know. */
  phases(): string[] {
    return [...new Set(this.registries.quiesce.collect().map(({ entry }) => entry.phase))]
  }

  /** Releases every plugin, in reverse order of dependency. */
  async releaseAll(): Promise<Error[]> {
    const errors: Error[] = []
    const loaded = [...this.#slots.values()].filter(slot => slot.scope)
    const order = makePlan(loaded.map(slot => slot.plugin)).order
    for (const plugin of [...order].reverse())
      errors.push(...(await this.#release(this.#slots.get(plugin.name) as Slot, true)))
    return errors
  }

  #serially<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#change.then(work)
    this.#change = next.catch(() => {})
    return next
  }

  #settle(slot: Slot): void {
    this.#slots.set(slot.plugin.name, slot)
  }

  async #apply(slot: Slot): Promise<void> {
    const { plugin } = slot
    const missing = hardNeeds(plugin).filter(id => !this.#services.has(id))
    if (missing.length > 0) {
      slot.state = { status: 'waiting', missing }
      return
    }
    const scope = new OwnedScope(plugin.name, this.options.clock)
    const tapper = { owner: plugin.name, rank: this.#rank++, scope }
    slot.scope = scope
    try {
      // The document of what is in the tree is written when it is built.
      if (plugin.name.includes('.')) (await import('../http/openapi.js')).checkDescribable(plugin.surface.routes ?? [])
      if (plugin.surface.tables) this.options.store.migrate(plugin.name, plugin.surface.tables)
      const kernel = this.options.kernelFor(plugin, resolveNeeds(plugin, this.#services), tapper)
      const service = await within(this.options.clock, APPLY_MS, Promise.resolve(plugin.apply(kernel)))
      slot.service = service
      if (plugin.provides) this.#services.set(plugin.provides.id, service)
      slot.state = { status: 'active' }
    } catch (error) {
      await this.#fail(slot, messageOf(error))
    }
  }

  async #fail(slot: Slot, error: string): Promise<void> {
    slot.state = { status: 'failed', error }
    this.options.log('error', `plugin ${slot.plugin.name} failed: ${error}`, { plugin: slot.plugin.name })
    this.options.changed(slot.plugin.name, slot.state)
    await this.#release(slot, true)
  }

  /** Taking a name that is taken fails the later plugin, and all that need it. */
  async #collect(): Promise<void> {
    for (;;) {
      const duplicate = duplicateOf(this.registries)
      const slot = duplicate && this.#slots.get(duplicate.owner)
      if (!duplicate || !slot) break
      for (const dependent of this.#dependents(slot)) {
        if (dependent === slot) await this.#fail(slot, duplicate.error)
        else {
          await this.#release(dependent, true)
          dependent.state = { status: 'waiting', missing: [slot.plugin.provides?.id ?? slot.plugin.name] }
        }
      }
    }
    this.options.records.setKinds(new Map(this.registries.kinds.collect().map(({ entry }) => [entry.name, entry])))
  }

  async #reconcileNew(): Promise<void> {
    const running = new Set(this.options.reconcile.health().map(({ kind }) => kind))
    const fresh = this.registries.reconcilers
      .collect()
      .map(({ entry }) => entry)
      .filter(entry => !running.has(entry.kind))
    for (const reconciler of kindOrder(fresh)) {
      const { kind, owner } = reconciler
      this.#slots.get(owner)?.scope?.defer(`reconciler ${kind}`, () => this.options.reconcile.remove(kind))
      await this.options.reconcile.add(reconciler)
    }
  }

  async #release(slot: Slot, shuttingDown = false): Promise<Error[]> {
    const { plugin, scope } = slot
    if (!scope) return []
    if (plugin.provides) this.#services.delete(plugin.provides.id)
    delete slot.scope
    delete slot.service
    if (!shuttingDown) await this.options.transport.drain(plugin.name, DRAIN_MS)
    this.options.transport.streams.end(plugin.name)
    const errors = await scope.release(RELEASE_MS)
    for (const error of errors) this.report({ owner: plugin.name, hook: 'release', error })
    return errors
  }

  #dependents(root: Slot): Slot[] {
    const loaded = [...this.#slots.values()].filter(slot => slot.scope)
    const names = dependentsOf(
      root.plugin,
      loaded.map(slot => slot.plugin),
    )
    return names.map(plugin => this.#slots.get(plugin.name) as Slot)
  }

  #startService(owner: string, entry: BoundService): void {
    const scope = this.#slots.get(owner)?.scope
    if (scope) keepRunning(owner, entry, scope, this.options.clock, this.options.ids, this.report)
  }
}
