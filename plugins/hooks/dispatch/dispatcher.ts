import { AsyncLocalStorage } from 'node:async_hooks'
import { type Awaitable, type Clock, messageOf, within } from '../../../kernel/plugin.js'
import type { HookEvent } from '../../../schemas/hooks.js'
import type { Dispatched, HookPayload, Whom } from '../api.js'
import type { DeclaredHook } from '../declared.js'
import { Cutoff } from '../executors/cutoff.js'
import { judge } from '../patch.js'
import type { HookOutcome, HookRun } from '../runs.js'
import { AsyncQueue } from './async-queue.js'

/** Hooks that run for what hooks do: so many levels, the first one included. */
export const MAX_DEPTH = 3
const WORKERS = 4
const WAITING = 64
/** Hooks of which it is kept what their latest run was about. */
const KEPT_LATEST = 1000

/** What dispatching needs of its plugin. */
export interface DispatchHost {
  readonly clock: Clock
  /** The enabled hooks of an event, in their order. */
  hooksOf(event: HookEvent, whom: Whom): readonly DeclaredHook[]
  /** The answer of a hook. Fails with what is wrong with its program; the time is bounded by the caller. */
  execute(hook: DeclaredHook, payload: HookPayload, cutoff: Cutoff): Awaitable<unknown>
  record(run: HookRun): void
  warn(text: string, fields: Readonly<Record<string, unknown>>): void
}

/** Runs the hooks of events. */
export class Dispatcher {
  /** How deep what runs now is nested in hooks, those of other processes that asked for it included. */
  readonly #depth = new AsyncLocalStorage<number>()
  readonly #queue = new AsyncQueue(WORKERS, WAITING)
  /** Runs that are under way, and how deep each is. */
  readonly #running = new Set<{ readonly hook: DeclaredHook; readonly depth: number; readonly whom: Whom }>()
  /** By name, the latest runs outside of this process: what they started may outlive them. */
  readonly #latest = new Map<string, { readonly hook: DeclaredHook; readonly whom: Whom }>()
  #hasLeft = false

  constructor(private readonly host: DispatchHost) {}

  /** Does what the program of a hook asks the daemon for: hooks that run for it are one deeper. */
  within<T>(depth: number, work: () => T): T {
    return this.#depth.run(depth, work)
  }

  /** Never rejects: a hook that fails is a run that failed, and refuses where it is required. */
  async dispatch(event: HookEvent, whom: Whom, given: HookPayload): Promise<Dispatched> {
    const hooks = this.host.hooksOf(event, whom)
    if (hooks.length === 0) return { payload: given }
    const depth = (this.#depth.getStore() ?? 0) + 1
    let payload: HookPayload = { ...given, event, dispatch_depth: depth }
    for (const hook of hooks) {
      if (hook.mode !== 'sync' || !hook.matches(payload)) continue
      if (depth > MAX_DEPTH) {
        const error = `hooks run for what hooks do, more than ${MAX_DEPTH} deep`
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

  /** Runs the async hooks of an event one after the other, outside of the queue: whoever waits for them holds nothing up. */
  async deliver(event: HookEvent, whom: Whom, given: HookPayload): Promise<void> {
    const payload: HookPayload = { ...given, event, dispatch_depth: 1 }
    for (const hook of this.host.hooksOf(event, whom))
      if (hook.mode === 'async' && hook.matches(payload)) await this.#run(hook, whom, 1, payload)
  }

  /** Runs of hooks of that name that are under way. */
  running(name: string): number {
    return [...this.#running].filter(({ hook }) => hook.name === name).length
  }

  /** How deep the deepest run is that is under way, of such hooks; 0 without one. */
  depthOf(wanted: (hook: DeclaredHook) => boolean): number {
    return Math.max(0, ...[...this.#running].map(({ hook, depth }) => (wanted(hook) ? depth : 0)))
  }

  /** What the runs of such hooks are about that are under way; without one, what the latest was about. */
  whomsOf(wanted: (hook: DeclaredHook) => boolean): readonly Whom[] {
    const those = (all: Iterable<{ readonly hook: DeclaredHook; readonly whom: Whom }>) =>
      [...all].filter(({ hook }) => wanted(hook)).map(({ whom }) => whom)
    const now = those(this.#running)
    return now.length > 0 ? now : those(this.#latest.values())
  }

  /** A hook has run that is not a function of this process. */
  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** Takes no more async runs; resolves when those that were taken have ended. */
  drain(): Promise<void> {
    return this.#queue.drain()
  }

  #enqueue(hook: DeclaredHook, whom: Whom, depth: number, payload: HookPayload): void {
    if (depth > MAX_DEPTH) {
      this.#record(hook, whom, depth, { outcome: 'skipped', error: `nested more than ${MAX_DEPTH} deep` })
      return
    }
    const taken = this.#queue.add(async () => {
      await this.#run(hook, whom, depth, payload)
    })
    if (!taken) this.#record(hook, whom, depth, { outcome: 'dropped', error: `${WAITING} runs were waiting already` })
  }

  /** One run: what the payload is afterwards, and why not to go on. */
  async #run(
    hook: DeclaredHook,
    whom: Whom,
    depth: number,
    payload: HookPayload,
  ): Promise<{ readonly next: HookPayload; readonly deny?: string }> {
    const { clock } = this.host
    const began = clock.monotonic()
    const isNative = hook.executor.kind === 'native'
    // A function of this process cannot be told to end.
    const cutoff = isNative ? NEVER : new Cutoff()
    const run = { hook, depth, whom }
    this.#running.add(run)
    if (!isNative) this.#leave(hook, whom)
    const tell = (outcome: HookOutcome, more: { error?: string; patch?: HookPayload } = {}) =>
      this.#record(hook, whom, depth, { outcome, ms: clock.monotonic() - began, ...more })
    const failed = (outcome: 'failed' | 'rejected', error: string, patch?: HookPayload) => {
      tell(outcome, { error, ...(patch && { patch }) })
      return { next: payload, ...(hook.required && { deny: `the required hook ${hook.name} failed: ${error}` }) }
    }
    try {
      const execute = () => this.host.execute(hook, payload, cutoff)
      // Only what runs in this process can dispatch from within, and following it slows every promise of the daemon down.
      const given = isNative ? this.#depth.run(depth, execute) : execute()
      const answer = isPromise(given) ? await within(clock, hook.timeoutMs, given) : given
      const judged = judge(hook.event, payload, answer)
      if (judged.outcome === 'rejected') return failed('rejected', judged.error, judged.patch)
      const { patch } = judged
      if (hook.mode === 'async' && patch)
        return failed('rejected', 'nothing waits for what an async hook answers', patch)
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
      error: error?.slice(0, 2000),
      patch,
      cause,
    })
    if (outcome === 'applied' || outcome === 'denied') return
    this.host.warn(`a hook ended as ${outcome}`, { hook: name, event, error, ...(sessionId && { session: sessionId }) })
  }
}

const NEVER = new Cutoff()

const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
