import { clip } from '../../../../kernel/kit/text.js'
import { isRestartable, type SessionInfo, type SessionsApi } from '../../../work/sessions/api.js'
import type { ChatConversation, InboundEvent } from '../api.js'
import type { Instance } from '../instances/instances.js'
import type { K } from '../needs.js'
import { addressOf, type Conversation } from './routing.js'
import { type RouteRow, routes } from './table.js'

/** Failures of a process that never became an agent: a prompt restarts such a session. */
const NOT_STARTED: ReadonlySet<string | undefined> = new Set(['startup_failure', 'handshake_failure'])
const MAX_NAME = 120

/** The bindings of conversations to sessions. */
export class Conversations {
  constructor(private readonly kernel: K) {}

  /** The session of a conversation; a new one if it has none that can continue. Throws errors of creating a session. */
  async session(
    sessions: SessionsApi,
    instance: Instance & { readonly workspaceId: string },
    { key, dimensions }: Conversation,
    event: InboundEvent,
    cause: string,
  ): Promise<SessionInfo> {
    const { db, clock, actor } = this.kernel
    const before = routes.get(db, { key })
    const newest = { target: addressOf(event), messageId: event.message_id }
    const bound = before && sessions.get(before.sessionId)
    if (bound && bound.workspaceId === instance.workspaceId && goesOn(bound)) {
      await db.tx(t => routes.update(t, { key }, { lastActivityAt: clock.now(), ...newest }))
      return bound
    }
    const name = nameOf(instance, event)
    const session = await sessions.create({ workspaceId: instance.workspaceId, ...(name && { name }), actor, cause })
    const now = clock.now()
    await db.tx(t =>
      routes.replace(t, {
        ...{ key, bridgeId: instance.id, scope: instance.scope, workspaceId: instance.workspaceId },
        ...{ peerId: dimensions.peer_id, groupId: dimensions.group_id, threadId: dimensions.thread_id },
        ...{ sessionId: session.id, agentName: session.agentName },
        ...{ createdAt: before?.createdAt ?? now, updatedAt: now, lastActivityAt: now, ...newest },
      }),
    )
    return session
  }

  /** The most recently used conversation of an instance that is bound to a session. */
  ofSession(bridgeId: string, sessionId: string): ChatConversation | undefined {
    const where =
      'WHERE session_id = ? AND bridge_id = ? AND message_id IS NOT NULL ORDER BY last_activity_at DESC LIMIT 1'
    const [row] = routes.query(this.kernel.db, where, [sessionId, bridgeId])
    return row?.target && row.messageId !== undefined ? { target: row.target, messageId: row.messageId } : undefined
  }

  /** Whether the next event of a conversation continues this session. */
  continues(session: SessionInfo): boolean {
    return goesOn(session) && routes.query(this.kernel.db, 'WHERE session_id = ? LIMIT 1', [session.id]).length > 0
  }

  get(key: string): RouteRow | undefined {
    return routes.get(this.kernel.db, { key })
  }

  /** Unbinds a conversation, so that its next event begins a new session. */
  async unbind(key: string): Promise<void> {
    await this.kernel.db.tx(t => routes.delete(t, { key }))
  }

  /** Conversations of an instance, most recently used first. */
  list(bridgeId: string, limit: number): RouteRow[] {
    return routes.query(this.kernel.db, 'WHERE bridge_id = ? ORDER BY last_activity_at DESC, key LIMIT +?', [
      bridgeId,
      limit,
    ])
  }

  count(bridgeId: string): number {
    const sql = 'SELECT count(*) AS n FROM bridges_route WHERE bridge_id = ?'
    return this.kernel.db.get<{ n: number }>(sql, [bridgeId])?.n ?? 0
  }
}

/** Whether a person's prompt can continue a session. */
function goesOn({ state, stopReason, failure }: SessionInfo): boolean {
  if (state !== 'stopped') return true
  return isRestartable(state, stopReason) || (stopReason === 'error' && NOT_STARTED.has(failure?.kind))
}

function nameOf({ displayName }: Instance, { group_id, sender }: InboundEvent): string {
  const who = group_id ?? sender.display_name ?? sender.username ?? sender.id
  return plain(`${displayName}: ${who}`, MAX_NAME)
}

/** A bounded single-line form of an untrusted name. */
export const plain = (text: string, max: number): string =>
  clip(text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ').trim(), max)
