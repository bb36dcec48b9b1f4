import type { Clock } from '../../../../kernel/plugin.js'
import { AcpErrors } from '../errors.js'
import type { PendingPermission } from './permission-context.js'
import { type Decision, optionFor } from './permission-rules.js'
import type { Verdict } from './verdict.js'

interface Waiting extends PendingPermission {
  /** Decides the question; only the first call counts. */
  settle(verdict: Verdict): void
  /** Resolves when the decision is in the journal, with whether it was allowed. */
  readonly done: Promise<boolean>
}

/** Questions of an agent that wait for a person, until an answer, a timeout or the end of their turn. */
export class WaitingQuestions {
  readonly #waiting = new Map<string, Waiting>()
  /** Expired questions of the newest turn that has any. */
  #expired = { turnId: '', count: 0 }

  constructor(private readonly context: { readonly clock: Clock; readonly timeoutMs: number }) {}

  get pending(): readonly PendingPermission[] {
    return [...this.#waiting.values()]
  }

  /** Number of questions of a turn that expired without an answer. */
  expiredIn(turnId: string): number {
    return turnId === this.#expired.turnId ? this.#expired.count : 0
  }

  expire(turnId: string): void {
    this.#expired = { turnId, count: this.expiredIn(turnId) + 1 }
  }

  /** Resolves to the result of `conclude`, which is called once with the answer. @param signal ends the wait */
  wait<T extends { readonly allowed: boolean }>(
    pending: PendingPermission,
    signal: AbortSignal,
    conclude: (verdict: Verdict) => T,
  ): Promise<T> {
    let settle: (verdict: Verdict) => void = () => {}
    const decided = new Promise<Verdict>(resolve => {
      settle = resolve
    })
    const { clock, timeoutMs } = this.context
    const timer = clock.timeout(timeoutMs, () => settle({ decision: 'reject-once', by: 'timeout' }), { unref: true })
    const abandon = () => settle({ decision: 'cancelled', by: 'cancel' })
    signal.addEventListener('abort', abandon, { once: true })
    const concluded = decided.then(verdict => {
      timer.cancel()
      signal.removeEventListener('abort', abandon)
      this.#waiting.delete(pending.requestId)
      if (verdict.by === 'timeout') this.expire(pending.turnId)
      return conclude(verdict)
    })
    const done = concluded.then(({ allowed }) => allowed)
    // Without a person's answer no caller awaits it, so a rejection must not become unhandled.
    done.catch(() => {})
    this.#waiting.set(pending.requestId, { ...pending, settle, done })
    return concluded
  }

  /** A person's answer. Resolves when it is in the journal, with whether it was allowed in the end. */
  answer(requestId: string, turnId: string, verdict: Verdict & { readonly decision: Decision }): Promise<boolean> {
    const { decision } = verdict
    const waiting = this.#waiting.get(requestId)
    if (!waiting || waiting.turnId !== turnId) throw AcpErrors.permission_not_found()
    if (decision.startsWith('allow') && !optionFor(waiting.options, decision)) {
      const offered = waiting.options.map(({ kind }) => kind).join(', ')
      throw AcpErrors.permission_not_offered(`the agent offers no option for ${decision}, only: ${offered}`)
    }
    waiting.settle(verdict)
    return waiting.done
  }

  /** Answers the pending questions of a turn that ends with `cancelled`. */
  endTurn(): void {
    for (const waiting of [...this.#waiting.values()]) waiting.settle({ decision: 'cancelled', by: 'cancel' })
  }
}
