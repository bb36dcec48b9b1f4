import { type BoundReconciler, Collected } from '../contract/bound.js'
import type { Clock } from '../contract/clock.js'
import type { Db } from '../contract/db.js'
import type { Report } from '../contract/hook.js'
import type { Ids } from '../contract/ids.js'
import type { Kind } from '../contract/kind.js'
import type { KindHealth, Reconcile, RecordKey } from '../contract/reconcile.js'
import type { StoredRecord } from '../contract/record.js'
import type { Scope } from '../contract/scope.js'
import { allowance } from '../flood.js'
import { collected, type KernelHooks, kernelTapper } from '../hooks/kernel-hooks.js'
import type { RecordStore } from '../records/store.js'
import { KindLoop } from './kind-loop.js'
import { bootOrder, watchCycle } from './order.js'

/**
 * Projects records into the runtime, level-triggered: a mark is a key, a pass reads the record as it is then. Every kind has a
 * loop of its own; here is what lies between them: who depends on whom, and who waits for what.
 */
export class ReconcileLoop implements Reconcile {
  readonly #kinds = new Map<string, KindLoop>()
  readonly #waiters = new Set<() => void>()

  constructor(
    private readonly records: RecordStore,
    private readonly clock: Clock,
    private readonly ids: Ids,
    private readonly report: Report,
  ) {}

  /** Taps the stages at which the loop has something to do. `onDurable` calls back when a transaction is on the disk. */
  attach(hooks: KernelHooks, scope: Scope, onDurable: Db['onDurable']): void {
    const tapper = kernelTapper(scope)
    let kinds: ReadonlyMap<string, Kind> = new Map()
    hooks.known.tap(tapper, change => {
      const before = kinds
      kinds = new Map(collected(hooks, Collected.kinds).map(({ entry }) => [entry.name, entry]))
      for (const [name, kind] of kinds) if (before.get(name) !== kind) this.recoded(name)
      const cycle = watchCycle(
        collected(hooks, Collected.reconcilers).map(({ entry }) => entry),
        change.started,
      )
      if (cycle) change.fail(cycle.owner, `its reconciler closes a cycle of watches: ${cycle.path.join(' → ')}`)
    })
    hooks.written.tap(tapper, (t, { change }) => {
      const record = change.verb === 'put' ? change.after : change.before
      const versions = change.verb === 'put' && change.before ? [change.before, change.after] : [record]
      onDurable(t, () => this.changed(record.kind, record.id, versions))
    })
    hooks.projected.tap(tapper, async () => {
      const running = new Set(this.health().map(({ kind }) => kind))
      const all = collected(hooks, Collected.reconcilers).map(({ entry }) => entry)
      for (const reconciler of bootOrder(all.filter(({ kind }) => !running.has(kind)))) {
        reconciler.scope.defer(`reconciler ${reconciler.kind}`, () => this.remove(reconciler.kind))
        await this.add(reconciler)
      }
    })
  }

  /** The loop as the plugin `owner` sees it. */
  bind(owner: string): Reconcile {
    const spend = allowance('mark', owner, this.clock, this.report)
    return {
      mark: keys => {
        spend(keys.length)
        this.mark(keys)
      },
      settled: (keys, options) => this.settled(keys, options),
      health: () => this.health(),
    }
  }

  /**
   * Starts reconciling a kind; every record of it is handed over in pages with `first` set. Resolves when that is done, or when
   * a pass takes more than 5 s: the boot goes on without it.
   */
  async add(reconciler: BoundReconciler): Promise<void> {
    const { records, clock, ids, report } = this
    const loop = new KindLoop(reconciler, { records, clock, ids, report, wake: () => this.#wake() })
    this.#kinds.set(reconciler.kind, loop)
    await loop.boot()
  }

  /** Ends the passes of a kind; its records stay. */
  async remove(kind: string): Promise<void> {
    const loop = this.#kinds.get(kind)
    this.#kinds.delete(kind)
    this.#wake()
    await loop?.end()
  }

  mark(keys: readonly RecordKey[]): void {
    for (const { kind, id } of keys) this.#spread(kind, id, () => this.#stored(kind, id))
  }

  /** A record was written or removed, durably; `versions` are what it was before and is now, where there is such a one. */
  changed(kind: string, id: string, versions: readonly StoredRecord[]): void {
    this.#spread(kind, id, () => versions)
  }

  /** Records of this kind are decoded otherwise than before. */
  recoded(kind: string): void {
    this.#kinds.get(kind)?.markAll()
  }

  async settled(keys: readonly RecordKey[], options: { readonly timeoutMs?: number } = {}): Promise<boolean> {
    // A key in a pass counts until that has ended: if it changed since it was read, it is in the queue as well.
    const open = () => keys.some(({ kind, id }) => this.#kinds.get(kind)?.isPending(id))
    if (!open()) return true
    return new Promise(resolve => {
      const timer = this.clock.timeout(options.timeoutMs ?? 5000, () => {
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
    return [...this.#kinds.values()].map(loop => loop.health())
  }

  /** Marks a key and what depends on it; it ends, for watches have no cycles. */
  #spread(kind: string, id: string, versions: () => readonly StoredRecord[]): void {
    this.#kinds.get(kind)?.mark(id)
    for (const { reconciler } of this.#kinds.values()) {
      for (const watch of reconciler.watches) {
        if (watch.kind !== kind) continue
        for (const key of this.#keysOf(reconciler, watch, versions()))
          this.#spread(reconciler.kind, key, () => this.#stored(reconciler.kind, key))
      }
    }
  }

  #keysOf(
    { owner }: BoundReconciler,
    watch: BoundReconciler['watches'][number],
    versions: readonly StoredRecord[],
  ): ReadonlySet<string> {
    const keys = new Set<string>()
    try {
      for (const record of versions) for (const key of watch.keys(record)) keys.add(key)
    } catch (error) {
      this.report({ owner, hook: `watch ${watch.kind}`, error })
    }
    return keys
  }

  #stored(kind: string, id: string): readonly StoredRecord[] {
    const record = this.records.get(kind, id) as StoredRecord | undefined
    return record ? [record] : []
  }

  #wake(): void {
    for (const look of [...this.#waiters]) look()
  }
}
