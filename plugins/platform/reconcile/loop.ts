import { Feed } from '../../../kernel/kit/feed.js'
import { allowance } from '../../../kernel/kit/flood.js'
import { Collected } from '../../../kernel/platform.js'
import type { Change, Faults, Kind, PluginKernel, Report, StoredRecord, Tx, Written } from '../../../kernel/plugin.js'
import { type KindHealth, points, type ReconcileApi, ReconcileErrors, type RecordKey } from './api.js'
import { type BoundReconciler, bound } from './bound.js'
import { KindLoop } from './kind-loop.js'
import { bootOrder, watchCycle } from './order.js'

type Watched = BoundReconciler['watches'][number]

/**
 * Projects records into the runtime, level-triggered: a mark is a key, and a pass reads the current record. Every kind has a loop
 * of its own; this class connects them by watches, and waits for them.
 */
export class ReconcileLoop implements ReconcileApi {
  readonly #loops = new Map<string, KindLoop>()
  /** Tells that passes have ended. */
  readonly #ended = new Feed<never>()
  #kinds: ReadonlyMap<string, Kind> = new Map()
  readonly passed

  constructor(private readonly kernel: PluginKernel<{ report: typeof Faults }>) {
    this.passed = kernel.hooks.of(points).passed
    kernel.scope.defer('passes', async () => {
      await Promise.all([...this.#loops.keys()].map(kind => this.remove(kind)))
    })
  }

  /** Kinds are set. Records of new or changed kinds are decoded differently, so they are marked. */
  known(change: Change): void {
    const before = this.#kinds
    this.#kinds = new Map(this.kernel.collect(Collected.kinds).map(({ entry }) => [entry.name, entry]))
    for (const [name, kind] of this.#kinds) if (before.get(name) !== kind) this.#loops.get(name)?.markAll()
    const cycle = watchCycle(this.#reconcilers(), change.started)
    if (cycle) change.fail(cycle.owner, `its reconciler creates a cycle of watches: ${cycle.path.join(' → ')}`)
  }

  /** A record was written. When that is durable, its key is marked, with those that watch the old or the new record. */
  written(t: Tx, { change }: Written): void {
    const record = change.verb === 'put' ? change.after : change.before
    const versions = change.verb === 'put' && change.before ? [change.before, change.after] : [record]
    this.kernel.db.onDurable(t, () => this.#spread(record.kind, record.id, () => versions))
  }

  /**
   * Starts the loops of new kinds; every record of one is passed to its reconciler in pages with `first` set. Resolves when that is
   * done, without waiting for a kind whose pass takes over 5 s.
   */
  async projected(): Promise<void> {
    for (const reconciler of bootOrder(this.#reconcilers().filter(({ kind }) => !this.#loops.has(kind)))) {
      reconciler.scope.defer(`reconciler ${reconciler.kind}`, () => this.remove(reconciler.kind))
      const { records, db, clock, ids } = this.kernel
      const own = { report: this.#report, wake: () => this.#ended.wake(), passed: this.passed }
      const loop = new KindLoop(reconciler, { records, db, clock, ids, ...own })
      this.#loops.set(reconciler.kind, loop)
      await loop.boot()
    }
  }

  /** Everything that started is running. */
  async running(): Promise<void> {
    for (const loop of this.#loops.values()) loop.lookForDamage()
  }

  /** The API for one consumer. */
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
    this.#ended.wake()
    await loop?.end()
  }

  mark(keys: readonly RecordKey[]): void {
    for (const { kind, id } of keys) this.#spread(kind, id, () => this.#stored(kind, id))
  }

  async settled(keys: readonly RecordKey[], options: { readonly timeoutMs?: number } = {}): Promise<boolean> {
    // A key is pending until its pass has ended. One that changes during its pass is queued again and stays pending.
    const open = () => keys.some(({ kind, id }) => this.#loops.get(kind)?.isPending(id))
    let isLate = false
    const timer = this.kernel.clock.timeout(options.timeoutMs ?? 5000, () => {
      isLate = true
      this.#ended.wake()
    })
    while (open() && !isLate) await this.#ended.next()
    timer.cancel()
    return !open()
  }

  health(): KindHealth[] {
    return [...this.#loops.values()].map(loop => loop.health())
  }

  /** Marks a key and its dependents. The recursion ends because watches have no cycles. */
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

  #reconcilers(): BoundReconciler[] {
    return this.kernel.collect(Collected.reconcilers).map(bound)
  }

  readonly #report: Report = ({ owner, hook, error }) => this.kernel.needs.report(owner, hook, error)
}
