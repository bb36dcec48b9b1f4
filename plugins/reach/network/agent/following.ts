import type { EncodedFrame, Frame } from '../../../../kernel/plugin.js'
import type { RunConversationQuery, WatchQuery } from '../../../../schemas/network/agent.js'
import type { ConversationUsage, TaskRun } from '../../../../schemas/tasks.js'
import { TaskErrors } from '../../../work/tasks/api.js'
import { NetworkErrors } from '../api.js'
import type { K } from '../needs.js'
import { messages } from '../tables.js'
import type { Feeds, Followed } from './feeds.js'

const RECENT = 20
/** Final states of a run. */
const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'canceled'])

/** The channel of a run; undefined if it has none. */
export function channelOfRun({ resolved_network_participation: part }: TaskRun): Followed | undefined {
  return part?.mode === 'live' ? { workspaceId: part.workspace_id, channel: part.channel_id } : undefined
}

/** Live streams of conversations. */
export class Following {
  constructor(
    private readonly kernel: K,
    private readonly feeds: Feeds,
    /** Current usage of a run in its channel. */
    private readonly usageOf: (workspaceId: string, runId: string) => ConversationUsage,
  ) {}

  /** The newest messages of a channel or workspace, then new ones. A reconnecting client continues at its position. */
  watch(
    workspaceId: string,
    { channel, recent = RECENT }: WatchQuery,
    lastEventId: string | undefined,
    signal: AbortSignal,
  ) {
    const followed = { workspaceId, channel }
    const known = lastEventId === undefined ? undefined : this.#seqOf(followed, lastEventId)
    return this.feeds.frames(followed, known ?? this.#behindNewest(followed, recent), signal)
  }

  /**
   * Usage of a run and the messages of its channel since it was queued, then new ones; ends with the run and its final
   * usage.
   * @throws Fault `task_run_not_found`, `run_not_live`, `network_position_unknown`
   */
  conversation(runId: string, { after }: RunConversationQuery, lastEventId: string | undefined, signal: AbortSignal) {
    const run = this.#run(runId)
    if (!run) throw TaskErrors.task_run_not_found(`there is no run ${JSON.stringify(runId)}`)
    const followed = channelOfRun(run)
    if (!followed) throw NetworkErrors.run_not_live(`the run ${runId} takes part in no channel`)
    const known = after === undefined ? undefined : this.#seqOf(followed, after)
    if (after !== undefined && known === undefined)
      throw NetworkErrors.network_position_unknown(
        `the conversation of ${runId} has no message ${JSON.stringify(after)}`,
      )
    const resumed = lastEventId === undefined ? undefined : this.#seqOf(followed, lastEventId)
    const from = resumed ?? known ?? this.#before(Date.parse(run.queued_at))
    return this.#conversation(runId, followed, from, signal)
  }

  async *#conversation(
    runId: string,
    followed: Followed,
    from: number,
    signal: AbortSignal,
  ): AsyncGenerator<Frame | EncodedFrame> {
    const isOver = () => ENDED.has(this.#run(runId)?.status ?? 'canceled')
    const usage = () => ({ event: 'usage', data: { usage: this.usageOf(followed.workspaceId, runId) } })
    yield usage()
    yield* this.feeds.frames(followed, from, signal, isOver)
    if (!signal.aborted) yield usage()
  }

  /** Wakes the followers of a run's conversation to check whether it ended. */
  runEnded(runId: string): void {
    if (!this.feeds.isFollowed()) return
    const run = this.#run(runId)
    const followed = run && channelOfRun(run)
    if (followed) this.feeds.wake(followed)
  }

  #run(id: string): TaskRun | undefined {
    return this.kernel.needs.tasks.current?.run(id)
  }

  #seqOf({ workspaceId, channel }: Followed, id: string): number | undefined {
    const row = messages.get(this.kernel.db, { workspaceId, id })
    return channel === undefined || row?.channel === channel ? row?.seq : undefined
  }

  #behindNewest({ workspaceId, channel }: Followed, recent: number): number {
    const sql = `SELECT seq FROM network_message WHERE workspace_id = ? ${channel === undefined ? '' : 'AND channel = ?'}
      ORDER BY seq DESC LIMIT 1 OFFSET ?`
    const params = [workspaceId, ...(channel === undefined ? [] : [channel]), recent]
    return this.kernel.db.get<{ seq: number }>(sql, params)?.seq ?? 0
  }

  /** The position before all messages since a time. */
  #before(at: number): number {
    const first = 'SELECT seq FROM network_message WHERE at >= ? ORDER BY at, seq LIMIT 1'
    const found = this.kernel.db.get<{ seq: number }>(first, [at])
    if (found) return found.seq - 1
    const newest = 'SELECT seq FROM network_message ORDER BY seq DESC LIMIT 1'
    return this.kernel.db.get<{ seq: number }>(newest)?.seq ?? 0
  }
}
