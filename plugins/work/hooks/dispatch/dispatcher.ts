import { AsyncLocalStorage } from 'node:async_hooks'
import { clip } from '../../../../kernel/kit/text.js'
import { type Awaitable, type Clock, messageOf, within } from '../../../../kernel/plugin.js'
import type { HookEvent } from '../../../../schemas/hooks.js'
import type { Dispatched, HookPayload, Whom } from '../api.js'
import type { DeclaredHook } from '../declared.js'
import { Cutoff } from '../executors/cutoff.js'
import { judge } from '../patch.js'
import type { HookOutcome, HookRun } from '../runs.js'
import { AsyncQueue } from './async-queue.js'

/** Maximum depth of nested hook dispatch, including the first level. */
export const MAX_DEPTH = 3
const WORKERS = 4
const WAITING = 64
/** Number of hooks whose latest subject is remembered. */
const KEPT_LATEST = 1000

/** The plugin as the dispatcher sees it. */
export interface DispatchHost {
  readonly clock: Clock
  /** The enabled hooks of an event, in execution order. */
  hooksOf(event: HookEvent, whom: Whom): readonly DeclaredHook[]
  /** Runs a hook and returns its answer; rejects when it fails. The caller enforces the timeout. */
  execute(hook: DeclaredHook, payload: HookPayload, cutoff: Cutoff): Awaitable<unknown>
  record(run: HookRun): void
  warn(text: string, fields: Readonly<Record<string, unknown>>): void
}

/** Runs the hooks of events. */
export class Dispatcher {
  /** Current nesting depth, including requests from other processes. */
  readonly #depth = new AsyncLocalStorage<number>()
  readonly #queue = new AsyncQueue(WORKERS, WAITING)
  /** Runs in progress with their depth. */
  readonly #running = new Set<{ readonly hook: DeclaredHook; readonly depth: number; readonly whom: Whom }>()
  /** By name, the latest runs of programs: processes they started may outlive them. */
  readonly #latest = new Map<string, { readonly hook: DeclaredHook; readonly whom: Whom }>()
  #hasLeft = false

  constructor(private readonly host: DispatchHost) {}

  /** Handles a request of a hook program: hooks that it triggers are one level deeper. */
  within<T>(depth: number, work: () => T): T {
    return this.#depth.run(depth, work)
  }

  /** Never rejects: a failed hook becomes a failed run, and a denial when the hook is required. */
  async dispatch(event: HookEvent, whom: Whom, input: HookPayload): Promise<Dispatched> {
    const hooks = this.host.hooksOf(event, whom)
    if (hooks.length === 0) return { payload: input }
    const depth = (this.#depth.getStore() ?? 0) + 1
    let payload: HookPayload = { ...input, event, dispatch_depth: depth }
    for (const hook of hooks) {
      if (hook.mode !== 'sync' || !hook.matches(payload)) continue
      if (depth > MAX_DEPTH) {
        const error = `nested hook dispatch exceeds the maximum depth of ${MAX_DEPTH}`
        this.#record(hook, whom, depth, { outcome: 'failed', error })
        return { payload, deny: `${hook.name}: ${error}` }
      }
      const { next, deny } = await this.#run(hook, whom, depth, payload)
      payload = next
      if (deny !== undefined) return { payload, deny }
    }
    for (const hook of hooks)
      if (hook.mode === 'async' && hook.matches(payload)) this.#enqueue(hook, whom, depth, payload)
    return { payload }
  }

  /** Runs the async hooks of an event one by one, outside of the queue. */
  async deliver(event: HookEvent, whom: Whom, input: HookPayload): Promise<void> {
    const payload: HookPayload = { ...input, event, dispatch_depth: 1 }
    for (const hook of this.host.hooksOf(event, whom))
      if (hook.mode === 'async' && hook.matches(payload)) await this.#run(hook, whom, 1, payload)
  }

  /** Number of runs in progress of the hook with this name. */
  running(name: string): number {
    return [...this.#running].filter(({ hook }) => hook.name === name).length
  }

  /** Depth of the deepest run in progress of matching hooks; 0 without one. */
  depthOf(wanted: (hook: DeclaredHook) => boolean): number {
    return Math.max(0, ...[...this.#running].map(({ hook, depth }) => (wanted(hook) ? depth : 0)))
  }

  /** Subjects of the runs in progress of matching hooks, else of their latest runs. */
  whomsOf(wanted: (hook: DeclaredHook) => boolean): readonly Whom[] {
    const those = (all: Iterable<{ readonly hook: DeclaredHook; readonly whom: Whom }>) =>
      [...all].filter(({ hook }) => wanted(hook)).map(({ whom }) => whom)
    const now = those(this.#running)
    return now.length > 0 ? now : those(this.#latest.values())
  }

  /** Whether any hook program has run. */
  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** Accepts no more async runs; resolves when the accepted ones have ended. */
  drain(): Promise<void> {
    return this.#queue.drain()
  }

  #enqueue(hook: DeclaredHook, whom: Whom, depth: number, payload: HookPayload): void {
    if (depth > MAX_DEPTH) {
      this.#record(hook, whom, depth, {
        outcome: 'skipped',
        error: `nested hook dispatch exceeds the maximum depth of ${MAX_DEPTH}`,
      })
      return
    }
    const taken = this.#queue.add(async () => {
      await this.#run(hook, whom, depth, payload)
    })
    if (!taken) this.#record(hook, whom, depth, { outcome: 'dropped', error: `queue full: ${WAITING} runs waiting` })
  }

  /** One run: the patched payload, and the reason of a denial. */
  async #run(
    hook: DeclaredHook,
    whom: Whom,
    depth: number,
    payload: HookPayload,
  ): Promise<{ readonly next: HookPayload; readonly deny?: string }> {
    const { clock } = this.host
    const began = clock.monotonic()
    const isNative = hook.executor.kind === 'native'
    // A function in this process cannot be interrupted.
    const cutoff = isNative ? NEVER : new Cutoff()
    const run = { hook, depth, whom }
    this.#running.add(run)
    if (!isNative) this.#leave(hook, whom)
    const tell = (outcome: HookOutcome, more: { error?: string; patch?: HookPayload } = {}) =>
      this.#record(hook, whom, depth, { outcome, ms: clock.monotonic() - began, ...more })
    const failed = (outcome: 'failed' | 'rejected', error: string, patch?: HookPayload) => {
      tell(outcome, { error, ...(patch && { patch }) })
      return { next: payload, ...(hook.required && { deny: `required hook ${hook.name} failed: ${error}` }) }
    }
    try {
      const execute = () => this.host.execute(hook, payload, cutoff)
      // Only native hooks dispatch from within, and async context tracking slows down every promise.
      const execution = isNative ? this.#depth.run(depth, execute) : execute()
      const answer = isPromise(execution) ? await within(clock, hook.timeoutMs, execution) : execution
      const judged = judge(hook.event, payload, answer, whom.fixed)
      if (judged.outcome === 'rejected') return failed('rejected', judged.error, judged.patch)
      const { patch } = judged
      if (hook.mode === 'async' && patch) return failed('rejected', 'an async hook cannot return a patch', patch)
      tell(judged.outcome, patch && { patch })
      if (judged.outcome === 'denied') return { next: payload, deny: `${judged.reason} (hook ${hook.name})` }
      return { next: judged.payload }
    } catch (error) {
      return failed('failed', messageOf(error))
    } finally {
      if (!isNative) cutoff.end()
      this.#running.delete(run)
    }
  }

  #leave(hook: DeclaredHook, whom: Whom): void {
    this.#hasLeft = true
    this.#latest.delete(hook.name)
    this.#latest.set(hook.name, { hook, whom })
    const [oldest] = this.#latest.keys()
    if (this.#latest.size > KEPT_LATEST && oldest !== undefined) this.#latest.delete(oldest)
  }

  #record(
    { name, event, source, mode, required }: DeclaredHook,
    { sessionId = '', workspaceId = '', cause }: Whom,
    depth: number,
    { outcome, ms = 0, error, patch }: { outcome: HookOutcome; ms?: number; error?: string; patch?: HookPayload },
  ): void {
    const { clock } = this.host
    this.host.record({
      hook: name,
      ...{ event, source, mode, required, sessionId, workspaceId, depth, outcome },
      at: clock.now(),
      micros: Math.round(ms * 1000),
      error: error && clip(error, 2000),
      patch,
      cause,
    })
    if (outcome === 'applied' || outcome === 'denied') return
    this.host.warn(`hook run ${outcome}`, { hook: name, event, error, ...(sessionId && { session: sessionId }) })
  }
}

const NEVER = new Cutoff()

const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
