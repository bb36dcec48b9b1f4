import * as v from 'valibot'
import type { Clock, Timer } from '../clock.js'
import { messageOf } from '../errors.js'
import type { Report } from '../hooks/index.js'
import type { Ids } from '../ids.js'
import { issueText } from '../issue-text.js'
import type { StoredRecord } from '../records/index.js'
import type { RecordStore } from '../records/store.js'
import { backoff } from './backoff.js'
import type { KindHealth, Reconcile, RecordKey } from './types.js'

const PAGE = 1000
const BOOT_PASS_MS = 5000
const DEGRADED_AFTER = 3

/** A reconciler with its service bound and its types erased. */
export interface BoundReconciler {
  readonly owner: string
  readonly kind: string
  readonly after: readonly string[]
  readonly watches: readonly { readonly kind: string; readonly keys: (record: StoredRecord) => readonly string[] }[]
  readonly run: (
    batch: {
      first: boolean
      records: readonly StoredRecord[]
      removed: readonly string[]
      fail(id: string, error: unknown): void
    },
    signal: AbortSignal,
  ) => unknown
}

interface Quarantine {
  error: string
  attempts: number
  retryAt: number
  timer: Timer
}

interface KindState {
  readonly reconciler: BoundReconciler
  readonly marked: Set<string>
  readonly running: Set<string>
  readonly quarantine: Map<string, Quarantine>
  readonly abort: AbortController
  /** The tail of the kind's passes: one at a time. */
  tail: Promise<void>
  scheduled: boolean
  fruitless: number
  stuck: boolean
}

/**
 * Projects records into the runtime, level-triggered: a mark is a key, a pass reads the record as it is then. One pass at a
 * time for a kind; marks coalesce; a mark during a pass runs once more; a poison record is put aside and tried again later.
 */
export class ReconcileLoop implements Reconcile {
  readonly #kinds = new Map<string, KindState>()
  readonly #waiters = new Set<() => void>()

  constructor(
    private readonly records: RecordStore,
    private readonly clock: Clock,
    private readonly ids: Ids,
    private readonly report: Report,
  ) {}

  /** Starts reconciling a kind; every record of it is handed over in pages with `first` set. Resolves when done or after 5 s. */
  async add(reconciler: BoundReconciler): Promise<void> {
    const state: KindState = {
      reconciler,
      marked: new Set(),
      running: new Set(),
      quarantine: new Map(),
      abort: new AbortController(),
      tail: Promise.resolve(),
      scheduled: false,
      fruitless: 0,
      stuck: false,
    }
    this.#kinds.set(reconciler.kind, state)
    state.tail = this.#boot(state)
    let timer: Timer | undefined
    const late = new Promise<'late'>(resolve => {
      timer = this.clock.timeout(BOOT_PASS_MS, () => resolve('late'))
    })
    const first = await Promise.race([state.tail.then(() => 'done' as const), late])
    timer?.cancel()
    if (first === 'late') {
      state.stuck = true
      void state.tail.then(() => {
        state.stuck = false
      })
    }
  }

  /** Ends the passes of a kind; its records stay. */
  async remove(kind: string): Promise<void> {
    const state = this.#kinds.get(kind)
    if (!state) return
    this.#kinds.delete(kind)
    state.abort.abort()
    for (const { timer } of state.quarantine.values()) timer.cancel()
    state.quarantine.clear()
    await state.tail
    this.#wake()
  }

  mark(keys: readonly RecordKey[]): void {
    for (const key of keys) {
      const state = this.#kinds.get(key.kind)
      if (state) this.#markOne(state, key.id)
      this.#markDependents(key)
    }
  }

  async settled(keys: readonly RecordKey[], options: { readonly timeoutMs?: number } = {}): Promise<boolean> {
    const open = () =>
      keys.some(({ kind, id }) => {
        const state = this.#kinds.get(kind)
        return state !== undefined && (state.marked.has(id) || state.running.has(id))
      })
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
    return [...this.#kinds.values()].map(state => ({
      kind: state.reconciler.kind,
      status: state.stuck
        ? 'stuck'
        : state.fruitless >= DEGRADED_AFTER
          ? 'degraded'
          : state.quarantine.size > 0
            ? 'failing'
            : 'healthy',
      pending: state.marked.size + state.running.size,
      quarantined: [...state.quarantine].map(([id, { error, attempts, retryAt }]) => ({
        kind: state.reconciler.kind,
        id,
        error,
        attempts,
        retryAt,
      })),
    }))
  }

  #markOne(state: KindState, id: string): void {
    state.marked.add(id)
    this.#schedule(state)
  }

  #markDependents(key: RecordKey): void {
    for (const state of this.#kinds.values()) {
      for (const { kind, keys } of state.reconciler.watches) {
        if (kind !== key.kind) continue
        const record = this.records.get(key.kind, key.id)
        if (!record) continue
        try {
          for (const id of keys(record)) this.#markOne(state, id)
        } catch (error) {
          this.report({ owner: state.reconciler.owner, hook: `watch ${kind}`, error })
        }
      }
    }
  }

  #schedule(state: KindState): void {
    if (state.scheduled || state.abort.signal.aborted) return
    state.scheduled = true
    // One turn later, so that the marks of one transaction make one pass.
    state.tail = state.tail.then(async () => {
      await Promise.resolve()
      state.scheduled = false
      while (state.marked.size > 0 && !state.abort.signal.aborted) await this.#pass(state)
    })
  }

  async #boot(state: KindState): Promise<void> {
    let after = ''
    for (;;) {
      const page = this.records.page(state.reconciler.kind, after, PAGE)
      const last = page.at(-1)
      if (!last || state.abort.signal.aborted) return
      await this.#project(state, page, [], true)
      after = last.id
      await new Promise(setImmediate)
    }
  }

  async #pass(state: KindState): Promise<void> {
    const ids = [...state.marked].slice(0, PAGE)
    const records: StoredRecord[] = []
    const removed: string[] = []
    for (const id of ids) {
      state.marked.delete(id)
      state.running.add(id)
      const record = this.records.get(state.reconciler.kind, id)
      if (record) records.push(record)
      else removed.push(id)
    }
    try {
      await this.#project(state, records, removed, false)
    } finally {
      for (const id of ids) state.running.delete(id)
      this.#wake()
    }
  }

  async #project(
    state: KindState,
    stored: readonly StoredRecord[],
    removed: readonly string[],
    first: boolean,
  ): Promise<void> {
    const failed = new Map<string, unknown>()
    const records = stored.flatMap(record => this.#decode(record, failed))
    await this.#run(state, records, removed, first, failed)
    const total = stored.length + removed.length
    for (const id of removed) if (!failed.has(id)) this.#clear(state, id)
    for (const { id } of stored) if (!failed.has(id)) this.#clear(state, id)
    for (const [id, error] of failed) this.#setAside(state, id, error)
    if (total > 0) state.fruitless = failed.size >= total ? state.fruitless + 1 : 0
  }

  /** A record whose codec came later may not match it: it is set aside with its bytes kept. */
  #decode(record: StoredRecord, failed: Map<string, unknown>): StoredRecord[] {
    const kind = this.records.kindOf(record.kind)
    if (!kind) return [record]
    const decoded = v.safeParse(kind.spec, record.spec)
    if (decoded.success) return [{ ...record, spec: decoded.output }]
    const issue = decoded.issues[0]
    failed.set(
      record.id,
      new Error(`the stored spec is not valid: ${v.getDotPath(issue) ?? 'spec'}: ${issueText(issue)}`),
    )
    return []
  }

  /** A throw is bisected down to the keys that cause it; the others go through. */
  async #run(
    state: KindState,
    records: readonly StoredRecord[],
    removed: readonly string[],
    first: boolean,
    failed: Map<string, unknown>,
  ): Promise<void> {
    if (records.length + removed.length === 0) return
    try {
      await state.reconciler.run(
        { first, records, removed, fail: (id, error) => failed.set(id, error) },
        state.abort.signal,
      )
    } catch (error) {
      if (records.length + removed.length === 1) {
        failed.set(records[0]?.id ?? (removed[0] as string), error)
        return
      }
      const [r, d] = [Math.ceil(records.length / 2), Math.ceil(removed.length / 2)]
      await this.#run(state, records.slice(0, r), removed.slice(0, d), first, failed)
      await this.#run(state, records.slice(r), removed.slice(d), first, failed)
    }
  }

  #setAside(state: KindState, id: string, error: unknown): void {
    const before = state.quarantine.get(id)
    before?.timer.cancel()
    const attempts = (before?.attempts ?? 0) + 1
    const delay = backoff(attempts, () => this.ids.random())
    if (state.abort.signal.aborted) return
    if (!before) this.report({ owner: state.reconciler.owner, hook: `reconcile ${state.reconciler.kind} ${id}`, error })
    state.quarantine.set(id, {
      error: messageOf(error),
      attempts,
      retryAt: this.clock.now() + delay,
      timer: this.clock.timeout(delay, () => this.#markOne(state, id)),
    })
  }

  #clear(state: KindState, id: string): void {
    state.quarantine.get(id)?.timer.cancel()
    state.quarantine.delete(id)
  }

  #wake(): void {
    for (const look of [...this.#waiters]) look()
  }
}
