import { TokenBucket } from '../../../../kernel/kit/rate.js'
import type { Actor } from '../../../../kernel/plugin.js'
import type { NotifyBody, NotifyReply } from '../../../../schemas/notifications.js'
import type { SessionInfo } from '../../../work/sessions/api.js'
import { AgentNotice, type AttentionEntry, NotificationErrors } from '../api.js'
import { oneLine } from '../dispatch/happening.js'
import type { K } from '../needs.js'
import { notices } from '../tables.js'

/** Rates for notices of one session (burst of five, one per 30 s sustained) and of all sessions. */
const OF_SESSION = { burst: 5, perSecond: 1 / 30 }
const OF_ALL = { burst: 60, perSecond: 1 }
/** Kept notices, and the milliseconds for which they are kept. */
const KEPT = 1000
const KEPT_MS = 7 * 24 * 3_600_000
const BODY = 2000

/** Notices of agents for people. */
export class Notices {
  readonly #rates = new Map<string, TokenBucket>()
  readonly #rate: TokenBucket

  constructor(private readonly kernel: K) {
    this.#rate = new TokenBucket(OF_ALL, kernel.clock)
  }

  /** @throws Fault `notice_invalid` (422) */
  async notify(session: SessionInfo, { title, body = '' }: NotifyBody, actor: Actor): Promise<NotifyReply> {
    const { clock, db, ids, needs, redact } = this.kernel
    const [plainTitle, plainBody] = [oneLine(title, 200), oneLine(body, BODY)]
    if (plainTitle === '') throw NotificationErrors.notice_invalid('the title is empty')
    const wait = this.#spend(session.id)
    if (wait > 0) return { outcome: 'rate_limited', retry_after_ms: Math.ceil(wait) }
    const shown = { title: redact.text(plainTitle), body: redact.text(plainBody) }
    const id = ids.id('ntc')
    const now = clock.now()
    await db.tx(t => {
      const redacted = shown.title !== plainTitle || shown.body !== plainBody
      const { id: session_id, agentName: agent_name, workspaceId: workspace_id } = session
      notices.insert(t, { id, session_id, agent_name, workspace_id, ...shown, redacted, at: now })
      this.#prune(t, now)
      const payload = { notice_id: id, session_id, agent_name, workspace_id, title: shown.title }
      const noticePayload = { ...payload, ...(shown.body !== '' && { body: shown.body }) }
      needs.events.emit(t, AgentNotice, noticePayload, { actor, scope: workspace_id, subject: session_id })
    })
    return { outcome: 'delivered' }
  }

  entries(): AttentionEntry[] {
    return notices.all(this.kernel.db, {}, 'ORDER BY at DESC').map(notice => ({
      id: `notice:${notice.id}`,
      kind: 'notice',
      requestKind: 'read',
      isFinished: true,
      sourceId: notice.id,
      generation: 1,
      occurredAt: notice.at,
      title: notice.title,
      detail: notice.body,
      agentName: notice.agent_name,
      sessionId: notice.session_id,
      workspaceId: notice.workspace_id,
      command: `svc session recap ${notice.session_id}`,
    }))
  }

  /** Milliseconds until the session may send a notice; 0: now. */
  #spend(session: string): number {
    for (const [id, bucket] of this.#rates) if (bucket.left >= OF_SESSION.burst) this.#rates.delete(id)
    const own = this.#rates.get(session) ?? new TokenBucket(OF_SESSION, this.kernel.clock)
    this.#rates.set(session, own)
    if (own.left < 1) return ((1 - own.left) / OF_SESSION.perSecond) * 1000
    if (this.#rate.left < 1) return ((1 - this.#rate.left) / OF_ALL.perSecond) * 1000
    own.take(1)
    this.#rate.take(1)
    return 0
  }

  #prune(t: Parameters<typeof notices.insert>[0], now: number): void {
    t.run('DELETE FROM notifications_notice WHERE at < ?', [now - KEPT_MS])
    const oldest = t.row('SELECT at FROM notifications_notice ORDER BY at DESC, id DESC LIMIT 1 OFFSET +?', [KEPT])?.[0]
    if (oldest !== undefined) t.run('DELETE FROM notifications_notice WHERE at <= ?', [oldest])
  }
}
