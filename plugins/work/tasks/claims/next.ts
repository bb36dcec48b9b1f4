import { Fault, type Tx } from '../../../../kernel/plugin.js'
import type { CompleteLeaseBody, CompleteLeaseReply, TaskLease } from '../../../../schemas/tasks.js'
import type { SessionInfo } from '../../sessions/api.js'
import type { TaskCore } from '../core.js'
import { leaseToWire, type RunRow, runTable } from '../runs/run-row.js'
import { checkedKey } from '../tasks/write.js'
import type { Who } from '../who.js'
import { type Claims, claimToWire, type Waiting } from './claims.js'
import type { Leases } from './leases.js'

/**
 * Completes a run and claims the next one in one request. The completion is stored separately, so that it holds when nothing can be
 * claimed. With a key, the result of the claim is stored as well: a repeated request gets the same reply.
 */
export class CompleteAndNext {
  constructor(
    private readonly core: TaskCore,
    private readonly leases: Leases,
    private readonly claims: Claims,
  ) {}

  async complete(
    session: SessionInfo,
    who: Who,
    id: string,
    { next, ...ending }: CompleteLeaseBody,
    caller: Waiting,
  ): Promise<CompleteLeaseReply> {
    if (!next) return { lease: await this.leases.complete(session, who, id, ending) }
    this.claims.check(session, next)
    const key = checkedKey(next.idempotency_key)
    const before = key === undefined ? undefined : this.#repeated(session, id, key)
    if (before && before.next_run !== null) {
      await this.core.kernel.db.durable()
      return this.#asBefore(before)
    }
    const { durable } = before
      ? { durable: Promise.resolve(leaseToWire(before)) }
      : await this.#applied(begin => this.leases.complete(session, who, id, ending, { key, begin }))
    const claiming = this.claims.next(session, who, next, caller)
    // The completion is awaited first.
    claiming.catch(() => {})
    const lease = await durable
    try {
      const claim = await claiming
      if (key !== undefined) await this.#decide(who, id, claim?.run.id ?? '')
      return { lease, next: claim ?? null }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return { lease, next: null, next_refused: { code: error.code, message: error.message } }
    }
  }

  /**
   * Returns when the completion is applied, with the promise that settles when it is durable. The claim begins in between: its
   * transaction is durable after that of the completion, and both can share one sync.
   */
  #applied(complete: (begin: () => void) => Promise<TaskLease>) {
    return new Promise<{ readonly durable: Promise<TaskLease> }>((resolve, reject) => {
      // The transaction runs before `complete` returns.
      const durable = complete(() => queueMicrotask(() => resolve({ durable })))
      durable.catch(reject)
    })
  }

  /** The run that an earlier identical request completed. */
  #repeated(session: SessionInfo, id: string, key: string): RunRow | undefined {
    const run = this.core.runs.get(id)
    return run?.status === 'completed' && run.session_id === session.id && run.next_key === key ? run : undefined
  }

  #asBefore(run: RunRow): CompleteLeaseReply {
    const next = run.next_run ? this.core.runs.get(run.next_run) : undefined
    return { lease: leaseToWire(run), next: next ? claimToWire(next, this.core.tasks.find(next.task_id)) : null }
  }

  async #decide(who: Who, id: string, next: string): Promise<void> {
    await this.core.write(who, (t: Tx) => runTable.update(t, { id }, { next_run: next }))
  }
}
