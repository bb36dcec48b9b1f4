import { command } from '../../../../kernel/kit/commands/command-line.js'
import { iso } from '../../../../kernel/plugin.js'
import type { StatusAttention } from '../../../../schemas/daemon.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import type { InboxMishap } from '../../../../schemas/sessions.js'
import { finding } from '../../../desk/daemon/api.js'
import type { AttentionEntry } from '../api.js'
import { MISSED } from '../dispatch/events.js'
import type { Attention } from './attention.js'

/** Maximum number of doctor items in a report. */
const LISTED = 50

/** Unacknowledged mishaps: jobs that failed or were not run, and questions that expired. */
export class Mishaps {
  constructor(private readonly attention: Attention) {}

  /** Mishaps that are neither acknowledged nor resolved, newest first. */
  #unseen(): readonly (AttentionEntry & { readonly mishap: InboxMishap['kind'] })[] {
    return this.attention.unseenTroubles().flatMap(entry => {
      const mishap = mishapOf(entry)
      return mishap === undefined ? [] : { ...entry, mishap }
    })
  }

  /** Items of `GET /api/inbox`. */
  inbox(most = Number.POSITIVE_INFINITY): InboxMishap[] {
    return this.#unseen()
      .slice(0, most)
      .map(({ id, mishap, title, detail, occurredAt, workspaceId, sessionId, agentName, command: next }) => ({
        item_id: id,
        kind: mishap,
        title: detail ? `${title}: ${detail}` : title,
        ...(workspaceId !== undefined && { workspace_id: workspaceId }),
        ...(sessionId !== undefined && { session_id: sessionId }),
        ...(agentName !== undefined && { agent_name: agentName }),
        ...(next !== undefined && { show: next }),
        command: command('attention ack', id),
        created_at: iso(occurredAt),
      }))
  }

  /** Member `attention` of `GET /api/status`; kinds without an item are absent. */
  status(): StatusAttention {
    const items = this.#unseen()
    const counts = WORDS.flatMap(([mishap, one, many]) => {
      const count = items.filter(item => item.mishap === mishap).length
      return count === 0 ? [] : [[mishap, count, count === 1 ? `1 ${one}` : `${count} ${many}`] as const]
    })
    return {
      ...Object.fromEntries(counts.map(([mishap, count]) => [mishap, count])),
      ...(counts.length > 0 && { summary: `${counts.map(([, , text]) => text).join(', ')}: ${command('inbox')}` }),
    }
  }

  /**
   * Doctor items of mishaps without a probe of their own. The automation plugin reports jobs whose latest run failed.
   */
  findings(): DiagnosticItem[] {
    return this.#unseen()
      .filter(({ mishap }) => mishap !== 'failed')
      .slice(0, LISTED)
      .map(({ id, mishap, title, detail, command: next }) =>
        finding({
          id: `attention.${id}`,
          code: mishap === 'missed' ? 'automation_run_missed' : 'question_expired',
          category: 'notifications',
          severity: 'warning',
          title,
          message: `${detail ? `${title}: ${detail}` : title}; once you have seen it: ${command('attention ack', id)}`,
          ...(next !== undefined && { suggested_command: next }),
        }),
      )
  }
}

/** Text for each kind, singular and plural, in summary order. */
const WORDS = [
  ['failed', 'job failed', 'jobs failed'],
  ['missed', 'job was not run', 'jobs were not run'],
  ['expired', 'question expired', 'questions expired'],
] as const

function mishapOf({ id, detail = '' }: AttentionEntry): InboxMishap['kind'] | undefined {
  if (id.startsWith('expired:')) return 'expired'
  if (!id.startsWith('automation:')) return undefined
  return MISSED.test(detail) ? 'missed' : detail.startsWith('question_expired') ? 'expired' : 'failed'
}
