import { allowance } from '../../../kernel/kit/flood.js'
import { Collected } from '../../../kernel/platform.js'
import type { Change, Faults, Kind, PluginKernel, Report, StoredRecord, Tx, Written } from '../../../kernel/plugin.js'
import { type KindHealth, points, type ReconcileApi, ReconcileErrors, type RecordKey } from './api.js'
import { type BoundReconciler, bound } from './bound.js'
import { KindLoop } from './kind-loop.js'
import { bootOrder, watchCycle } from './order.js'

type Watched = BoundReconciler['watches'][number]

/**
 * Projects records into the runtime, level-triggered: a mark is a key, a pass reads the record as it is then. Every kind has a
 * loop of its own; here is what lies between them: who depends on whom, and who waits for what.
 */
export class ReconcileLoop implements ReconcileApi {
  readonly #loops = new Map<string, KindLoop>()
  readonly #waiters = new Set<() => void>()
  #kinds: ReadonlyMap<string, Kind> = new Map()
  readonly passed

  constructor(private readonly kernel: PluginKernel<{ report: typeof Faults }>) {
    this.passed = kernel.hooks.of(points).passed
    kernel.scope.defer('passes', async () => {
      await Promise.all([...this.#loops.keys()].map(kind => this.remove(kind)))
    })
  }

  /** Kinds are set: records of those that are new or others than before are decoded otherwise. */
  known(change: Change): void {
    const before = this.#kinds
    this.#kinds = new Map(this.kernel.collect(Collected.kinds).map(({ entry }) => [entry.name, entry]))
    for (const [name, kind] of this.#kinds) if (before.get(name) !== kind) this.#loops.get(name)?.markAll()
    const cycle = watchCycle(this.#reconcilers(), change.started)
    if (cycle) change.fail(cycle.owner, `its reconciler closes a cycle of watches: ${cycle.path.join(' → ')}`)
  }

  /** A record was written: it is marked when that is on the disk, and with it what watches it, as it was and as it is. */
  written(t: Tx, { change }: Written): void {
    const record = change.verb === 'put' ? change.after : change.before
    const versions = change.verb === 'put' && change.before ? [change.before, change.after] : [record]
    this.kernel.db.onDurable(t, () => this.#spread(record.kind, record.id, () => versions))
  }

  /**
   * Starts reconciling the kinds that are new; every record of one is handed over in pages with `first` set. Resolves when that
   * is done; a kind with a pass of over 5 s is left behind.
   */
  async projected(): Promise<void> {
    for (const reconciler of bootOrder(this.#reconcilers().filter(({ kind }) => !this.#loops.has(kind)))) {
      reconciler.scope.defer(`reconciler ${reconciler.kind}`, () => this.remove(reconciler.kind))
      const { records, db, clock, ids } = this.kernel
      const own = { report: this.#report, wake: () => this.#wake(), passed: this.passed }
      const loop = new KindLoop(reconciler, { records, db, clock, ids, ...own })
      this.#loops.set(reconciler.kind, loop)
      await loop.boot()
    }
  }

  /** All that started runs. */
  async running(): Promise<void> {
    for (const loop of this.#loops.values()) loop.lookForDamage()
  }

  /** The loop as a consumer sees it. */
  for(owner: string): ReconcileApi {
    const { clock } = this.kernel
    const spend = allowance('marks', owner, { clock, report: this.#report }, ReconcileErrors.mark_flood)
    return {
      mark: keys => {
        spend(keys.length)
        this.mark(keys)
      },
      settled: (keys, options) => this.settled(keys, options),
      health: () => this.health(),
      passed: this.passed,
    }
  }

  /** Ends the passes of a kind; its records stay. */
  async remove(kind: string): Promise<void> {
    const loop = this.#loops.get(kind)
    this.#loops.delete(kind)
    this.#wake()
    await loop?.end()
  }

  mark(keys: readonly RecordKey[]): void {
    for (const { kind, id } of keys) this.#spread(kind, id, () => this.#stored(kind, id))
  }

  async settled(keys: readonly RecordKey[], options: { readonly timeoutMs?: number } = {}): Promise<boolean> {
    // A key in a pass counts until that has ended: if it changed since it was read, it is in the queue as well.
    const open = () => keys.some(({ kind, id }) => this.#loops.get(kind)?.isPending(id))
    if (!open()) return true
    return new Promise(resolve => {
      const timer = this.kernel.clock.timeout(options.timeoutMs ?? 5000, () => {
        this.#waiters.delete(look)
        resolve(false)
      })
      const look = () => {
        if (open()) return
        this.#waiters.delete(look)
        timer.cancel()
        resolve(true)
      }
      this.#waiters.add(look)
    })
  }

  health(): KindHealth[] {
    return [...this.#loops.values()].map(loop => loop.health())
  }

  /** Marks a key and what depends on it; it ends, for watches have no cycles. */
  #spread(kind: string, id: string, versions: () => readonly StoredRecord[]): void {
    this.#loops.get(kind)?.mark(id)
    for (const { reconciler } of this.#loops.values()) {
      for (const watch of reconciler.watches) {
        if (watch.kind !== kind) continue
        for (const key of this.#keysOf(reconciler, watch, versions()))
          this.#spread(reconciler.kind, key, () => this.#stored(reconciler.kind, key))
      }
    }
  }

  #keysOf({ owner }: BoundReconciler, watch: Watched, versions: readonly StoredRecord[]): ReadonlySet<string> {
    const keys = new Set<string>()
    try {
      for (const record of versions) for (const key of watch.keys(record)) keys.add(key)
    } catch (error) {
      this.#report({ owner, hook: `watch ${watch.kind}`, error })
    }
    return keys
  }

  #stored(kind: string, id: string): readonly StoredRecord[] {
    const record = this.kernel.records.get(kind, id) as StoredRecord | undefined
    return record ? [record] : []
  }

  #wake(): void {
    for (const look of [...this.#waiters]) look()
  }

  #reconcilers(): BoundReconciler[] {
    return this.kernel.collect(Collected.reconcilers).map(bound)
  }

  readonly #report: Report = ({ owner, hook, error }) => this.kernel.needs.report(owner, hook, error)
}
