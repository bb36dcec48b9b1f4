import { backoff } from '../../../kernel/kit/backoff.js'
import { ifPossible } from '../../../kernel/kit/system-calls.js'
import {
  messageOf,
  type PluginKernel,
  type Report,
  type StoredRecord,
  type Timer,
  turn,
} from '../../../kernel/plugin.js'
import type { KindHealth, Passed } from './api.js'
import type { BoundReconciler } from './bound.js'
import { differing } from './differing.js'

/** Maximum keys of one pass. */
const PAGE = 1000
/** Records that are checked in one turn of the event loop, in about a millisecond. */
const LOOK = 50
const PASS_MS = 5000
const DEGRADED_AFTER = 3

export interface LoopContext extends Pick<PluginKernel, 'records' | 'db' | 'clock' | 'ids'> {
  readonly report: Report
  /** Called when keys are no longer pending. */
  readonly wake: () => void
  readonly passed: Passed
}

interface Quarantine {
  readonly error: string
  readonly retryAt: number
  readonly timer: Timer
  attempts: number
}

type Failures = Map<string, unknown>
/** Current records of a pass, and ids of deleted ones. */
type Handed = { readonly records: readonly StoredRecord[]; readonly removed: readonly string[] }

/**
 * The passes of one kind, with a FIFO queue of marked keys. A pass takes keys from it, reads their records and runs the reconciler;
 * one at a time. A key that is marked meanwhile is queued again. A failed key is quarantined with its error and marked again later.
 */
export class KindLoop {
  readonly #marked = new Set<string>()
  readonly #running = new Set<string>()
  readonly #quarantine = new Map<string, Quarantine>()
  readonly #abort = new AbortController()
  /** Number of keys at the head of the queue that belong to the boot. */
  #first = 0
  #booted = () => {}
  #busy = false
  #passes: Promise<void> = Promise.resolve()
  #looked: Promise<void> | undefined
  #fruitless = 0
  #stuck = false

  constructor(
    readonly reconciler: BoundReconciler,
    private readonly context: LoopContext,
  ) {}

  /** Marks all due keys. Resolves when they have been through a pass, or when one of these passes is stuck. */
  boot(): Promise<void> {
    for (const id of this.#due()) this.#marked.add(id)
    this.#first = this.#marked.size
    if (this.#first === 0) return Promise.resolve()
    return new Promise(resolve => {
      this.#booted = resolve
      this.#work()
    })
  }

  /**
   * Looks for damaged records. A boot with a durable projection does not read unchanged records, so damage would show only when
   * they are needed. This runs after the start, which must not wait for it.
   */
  lookForDamage(): void {
    if (this.reconciler.projected) this.#looked ??= this.#lookAtAll()
  }

  /** A key has changed: it gets a pass at once, and its retries begin anew. */
  mark(id: string): void {
    const poison = this.#quarantine.get(id)
    if (poison) poison.attempts = 0
    this.#add(id)
  }

  markAll(): void {
    for (const id of this.context.records.ids(this.reconciler.kind)) this.mark(id)
  }

  isPending(id: string): boolean {
    return this.#marked.has(id) || this.#running.has(id)
  }

  /** Begins no other pass; resolves when the current one has ended. */
  async end(): Promise<void> {
    this.#abort.abort()
    for (const { timer } of this.#quarantine.values()) timer.cancel()
    this.#booted()
    await this.#passes
    await this.#looked
  }

  health(): KindHealth {
    const { kind } = this.reconciler
    const failing = this.#quarantine.size > 0 ? 'failing' : 'healthy'
    return {
      kind,
      status: this.#stuck ? 'stuck' : this.#fruitless >= DEGRADED_AFTER ? 'degraded' : failing,
      pending: this.#marked.size + [...this.#running].filter(id => !this.#marked.has(id)).length,
      quarantined: [...this.#quarantine].map(([id, { timer: _, ...failure }]) => ({ kind, id, ...failure })),
    }
  }

  /** Keys for the boot: the differing ones, or all without a projection that knows its content. */
  #due(): string[] {
    const { owner, kind, projected } = this.reconciler
    const { records, report } = this.context
    try {
      if (projected) return differing(records.versions({ kind }), projected())
    } catch (error) {
      report({ owner, hook: `projected ${kind}`, error })
    }
    return records.ids(kind)
  }

  /** One page per turn; the pass then quarantines damaged records. */
  async #lookAtAll(): Promise<void> {
    const { records, report } = this.context
    const { owner, kind } = this.reconciler
    try {
      const ids = records.ids(kind)
      for (let at = 0; at < ids.length; at += LOOK) {
        await turn()
        if (this.#abort.signal.aborted) return
        for (const stored of records.getAll(kind, ids.slice(at, at + LOOK)))
          if (!ifPossible(() => records.decoded(stored))) this.#add(stored.id)
      }
    } catch (error) {
      report({ owner, hook: `reconcile ${kind}`, error })
    }
  }

  #add(id: string): void {
    this.#marked.add(id)
    this.#work()
  }

  #work(): void {
    if (this.#busy || this.#abort.signal.aborted) return
    this.#busy = true
    this.#passes = this.#passUntilDone()
  }

  async #passUntilDone(): Promise<void> {
    // One microtask later, so that the marks of one transaction share a pass.
    await Promise.resolve()
    while (this.#marked.size > 0 && !this.#abort.signal.aborted) {
      await this.#pass()
      // A kind that is always busy, for example by marking itself, must not block the event loop.
      if (this.#marked.size > 0) await turn()
    }
    this.#busy = false
  }

  async #pass(): Promise<void> {
    const first = this.#first > 0
    const ids = this.#take(first ? Math.min(PAGE, this.#first) : PAGE)
    const { clock, passed } = this.context
    const began = clock.monotonic()
    const timer = clock.timeout(PASS_MS, () => {
      this.#stuck = true
      this.#booted()
    })
    const failures: Failures = new Map()
    try {
      const handed = this.#read(ids, failures)
      // The runtime must not be ahead of the disk.
      await this.context.db.durable()
      await this.#run(first, handed, failures)
    } catch (error) {
      for (const id of ids) failures.set(id, error)
    } finally {
      timer.cancel()
      this.#stuck = false
    }
    if (!this.#abort.signal.aborted) this.#judge(ids, failures)
    this.#running.clear()
    if (first) {
      this.#first -= ids.length
      if (this.#first === 0) this.#booted()
    }
    this.context.wake()
    void passed.call(this.reconciler.kind, ids, failures.size, clock.monotonic() - began)
  }

  #take(most: number): string[] {
    const ids: string[] = []
    for (const id of this.#marked) {
      if (ids.length === most) break
      ids.push(id)
      this.#marked.delete(id)
      this.#running.add(id)
    }
    return ids
  }

  #read(ids: readonly string[], failures: Failures) {
    const records: StoredRecord[] = []
    const removed = new Set(ids)
    for (const stored of this.context.records.getAll(this.reconciler.kind, ids)) {
      removed.delete(stored.id)
      try {
        records.push(this.context.records.decoded(stored))
      } catch (error) {
        failures.set(stored.id, error)
      }
    }
    return { records, removed: [...removed] }
  }

  /** A throw is bisected down to the keys that cause it; the others succeed. */
  async #run(first: boolean, { records, removed }: Handed, failures: Failures): Promise<void> {
    const size = records.length + removed.length
    if (size === 0 || this.#abort.signal.aborted) return
    const ids = new Set([...records.map(({ id }) => id), ...removed])
    const named: Failures = new Map()
    const fail = (id: string, error: unknown) => {
      if (ids.has(id)) named.set(id, error)
      else this.#tell(id, new Error(`it returned a key that is not in its batch: ${messageOf(error)}`))
    }
    try {
      await this.reconciler.run({ first, records, removed, fail }, this.#abort.signal)
      for (const [id, error] of named) failures.set(id, error)
    } catch (error) {
      if (size === 1) {
        for (const id of ids) failures.set(id, error)
        return
      }
      const [r, d] = [Math.ceil(records.length / 2), Math.floor(removed.length / 2)]
      await this.#run(first, { records: records.slice(0, r), removed: removed.slice(0, d) }, failures)
      await this.#run(first, { records: records.slice(r), removed: removed.slice(d) }, failures)
    }
  }

  #judge(ids: readonly string[], failures: Failures): void {
    for (const id of ids) {
      const before = this.#quarantine.get(id)
      before?.timer.cancel()
      this.#quarantine.delete(id)
      if (!failures.has(id)) continue
      const error = failures.get(id)
      if (!before) this.#tell(id, error)
      const attempts = (before?.attempts ?? 0) + 1
      const delay = backoff(attempts, () => this.context.ids.random())
      const timer = this.context.clock.timeout(delay, () => this.#add(id))
      const retryAt = this.context.clock.now() + delay
      this.#quarantine.set(id, { error: messageOf(error), attempts, retryAt, timer })
    }
    this.#fruitless = failures.size === ids.length ? this.#fruitless + 1 : 0
  }

  #tell(id: string, error: unknown): void {
    const { owner, kind } = this.reconciler
    this.context.report({ owner, hook: `reconcile ${kind} ${id}`, error })
  }
}
