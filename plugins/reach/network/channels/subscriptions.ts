import { iso, type Tx } from '../../../../kernel/plugin.js'
import type {
  ListSubscriptionsQuery,
  PutSubscriptionBody,
  Subscription,
  SubscriptionMode,
} from '../../../../schemas/network/channels.js'
import { NetworkErrors } from '../api.js'
import type { K } from '../needs.js'
import { containers, type SubscriptionRow, subscriptions } from '../tables.js'
import type { Channels } from './channels.js'

const LIMIT = 100

/** Subscriptions of sessions to channels and threads. */
export class Subscriptions {
  constructor(
    private readonly kernel: K,
    private readonly channels: Channels,
  ) {}

  list(
    workspaceId: string,
    channel: string,
    { session_id: sessionId, thread_id: threadId, limit = LIMIT }: ListSubscriptionsQuery,
  ): Subscription[] {
    this.channels.found(workspaceId, channel)
    const where = {
      workspaceId,
      channel,
      ...(sessionId !== undefined && { sessionId }),
      ...(threadId !== undefined && { threadId }),
    }
    return subscriptions.all(this.kernel.db, where, `ORDER BY session_id, thread_id LIMIT ${limit}`).map(wire)
  }

  /** @throws Fault `channel_not_found`, `conversation_not_found` */
  async put(
    workspaceId: string,
    channel: string,
    sessionId: string,
    { mode, thread_id: threadId = '' }: PutSubscriptionBody,
  ): Promise<Subscription> {
    const now = this.kernel.clock.now()
    const row = await this.kernel.db.tx(t => {
      this.channels.found(workspaceId, channel, t)
      if (threadId !== '' && containers.get(t, { workspaceId, channel, id: threadId })?.surface !== 'thread')
        throw NetworkErrors.conversation_not_found(`channel ${channel} has no thread ${JSON.stringify(threadId)}`)
      const before = subscriptions.get(t, { workspaceId, channel, sessionId, threadId })
      const row: SubscriptionRow = {
        ...{ workspaceId, channel, sessionId, threadId, mode },
        ...{ createdAt: before?.createdAt ?? now, updatedAt: now },
      }
      subscriptions.replace(t, row)
      return row
    })
    return wire(row)
  }

  /** @throws Fault `channel_not_found`, `network_subscription_not_found` */
  async delete(workspaceId: string, channel: string, sessionId: string, threadId: string): Promise<void> {
    await this.kernel.db.tx(t => {
      this.channels.found(workspaceId, channel, t)
      if (subscriptions.delete(t, { workspaceId, channel, sessionId, threadId }) === 0)
        throw NetworkErrors.network_subscription_not_found(`${sessionId} has no subscription for it`)
    })
  }

  /** Subscription mode of a session for a conversation: that of the thread, else of the channel, else all. */
  modeOf(
    t: Tx,
    workspaceId: string,
    channel: string,
    threadId: string | undefined,
    sessionId: string,
  ): SubscriptionMode {
    const chosen =
      threadId === undefined ? undefined : subscriptions.get(t, { workspaceId, channel, sessionId, threadId })
    return (chosen ?? subscriptions.get(t, { workspaceId, channel, sessionId, threadId: '' }))?.mode ?? 'all'
  }
}

const wire = (row: SubscriptionRow): Subscription => ({
  channel: row.channel,
  mode: row.mode,
  session_id: row.sessionId,
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
  workspace_id: row.workspaceId,
  ...(row.threadId !== '' && { thread_id: row.threadId }),
})
