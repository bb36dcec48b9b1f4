import { messageOf } from '../../../../kernel/plugin.js'
import type { StopReason } from '../api.js'
import type { SessionsContext } from '../context.js'
import type { StoredSessionEvent } from '../events.js'
import type { SessionLog } from '../journal/session-log.js'
import type { SessionRow } from '../table.js'
import { type PromptRow, promptEvent } from '../turn/prompts.js'
import { syntheticResult } from '../turn/tool-calls.js'
import { recordStop, type Stop, writeStop } from './stopping.js'

const BACKED_UP = 'when the backup was made'

/** Sessions that are repaired at the same time. */
const AT_ONCE = 8

/** Open items of a session's last turn after the end of an earlier daemon. */
export interface Leftover {
  /** The stop event, when the daemon died between the journal write and the row update. */
  readonly stop?: StoredSessionEvent | undefined
  /** The turn without an end. */
  readonly turnId?: string | undefined
  /** The end of the last turn, if it has one. */
  readonly end?: StoredSessionEvent | undefined
  /** Calls without a result. */
  readonly calls: readonly { readonly id: string; readonly title: string; readonly kind: string }[]
}

/**
 * Closes the sessions of an earlier daemon with their actual state. The cost depends on the sessions left running, not on all
 * stored ones: stopped sessions are skipped. Idempotent, also after a crash half way.
 */
export async function repairSessions(context: SessionsContext): Promise<void> {
  const rows = context.table.unstopped()
  const next = async (): Promise<void> => {
    for (let row = rows.shift(); row; row = rows.shift()) {
      await repair(context, row).catch(error =>
        context.kernel.log.error('a session could not be repaired', { id: row?.id, error: messageOf(error) }),
      )
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
}

async function repair(context: SessionsContext, row: SessionRow): Promise<void> {
  const { kernel, logs, prompts } = context
  const how = stopFor(row, kernel.needs.daemon.held)
  const prompt = prompts.active(row.id)
  const result = await logs
    .use(row.id, async log => {
      let left = await findLeftover(log)
      const { end } = left
      if (prompt && end?.turnId === prompt.turn_id) {
        await kernel.db.tx(t => prompts.finish(t, prompt, statusOf(end)))
      } else if (prompt && left.turnId !== prompt.turn_id && !(await isOpened(log, prompt, row))) {
        // The daemon died after the table write and before the journal write of the prompt.
        log.append(promptEvent(prompt))
        left = { turnId: prompt.turn_id, calls: [] }
      }
      const isUnsent = prompt?.status === 'starting' && left.turnId === prompt.turn_id
      // Only missing events are appended; existing events are never changed or renumbered.
      const repaired = left.stop
        ? 0
        : closeTurn(log, left, how, isUnsent) + (await writeStop(context, row.id, log, how))
      const digest = await log.digested(row.usage)
      return { how: left.stop ? stopOf(left.stop, how) : how, repaired, digest, bytes: row.journal_bytes + log.bytes }
    })
    .catch(error => {
      kernel.log.error('the journal of a session cannot be repaired', { id: row.id, error: messageOf(error) })
      return { how, repaired: 0, digest: undefined, bytes: row.journal_bytes }
    })
  await logs.close(row.id)
  await recordStop(context, row.id, result.how, result)
}

/** Closes the open items of a turn; `isUnsent`: its agent was still starting. Returns the number of events written. */
export function closeTurn(log: SessionLog, left: Leftover, how: Stop, isUnsent = false): number {
  let count = 0
  const turnId = left.turnId ?? ''
  const ended = how.detail ?? 'the daemon ended'
  const why = isUnsent ? `${ended}; the agent was not given this prompt: send it again` : ended
  for (const call of left.calls) {
    log.append(syntheticResult(turnId, call, why))
    count++
  }
  if (left.turnId !== undefined) {
    log.append({
      type: 'error',
      turnId,
      content: { error: `${how.reason}: ${why}`, synthetic: true, ...(isUnsent && { prompt_sent: false }) },
      failure: how.failure,
    })
    count++
  }
  return count
}

/** Whether the journal has this prompt: a stop may follow that only the journal has. */
async function isOpened(log: SessionLog, { turn_id }: PromptRow, { usage }: SessionRow): Promise<boolean> {
  return (await log.query({ type: 'user_message', turnId: turn_id, limit: 1 }, usage)).length > 0
}

function statusOf({ type, content }: StoredSessionEvent): 'completed' | 'failed' | 'canceled' {
  if (type === 'error') return 'failed'
  return content.status === 'canceled' ? 'canceled' : 'completed'
}

/** @param isRestored whether the session ran in the daemon that made the backup of this home */
function stopFor({ state, stop_reason }: SessionRow, isRestored: boolean): Stop {
  if (state === 'starting') {
    const summary = isRestored ? `session was starting ${BACKED_UP}` : 'daemon crashed while session was starting'
    // A session that was being restarted stays as restartable as it was.
    const reason: StopReason = stop_reason ?? 'error'
    return { reason, detail: summary, failure: { kind: 'startup_failure', summary } }
  }
  const active = isRestored ? `session was active ${BACKED_UP}` : 'daemon crashed while session active'
  const detail = state === 'stopping' ? 'stop did not complete' : active
  return { reason: 'agent_crashed', detail, failure: { kind: 'process_exit', summary: detail } }
}

function stopOf(event: StoredSessionEvent, fallback: Stop): Stop {
  if (!event.stopReason) return fallback
  return { reason: event.stopReason, detail: event.stopDetail, failure: event.failure }
}

/** The missing events of a stopped session's journal; a stop at its end is assumed. */
export async function findGaps(log: SessionLog): Promise<Leftover> {
  const [last] = await log.read(log.last, 1)
  const isStop = last?.type === 'session_stopped'
  const left = await findLeftover(log, isStop ? log.last : undefined)
  return isStop ? { ...left, stop: last } : left
}

/**
 * Reads backwards from a sequence to the begin or end of the last turn. A journal without turns is read to its beginning, because
 * it is short.
 */
async function findLeftover(log: SessionLog, before?: number): Promise<Leftover> {
  const calls = new Map<string, { id: string; title: string; kind: string }>()
  const ended = new Set<string>()
  for await (const event of log.backwards(before)) {
    const { type, content, turnId } = event
    const id = String(content.tool_call_id ?? '')
    if (type === 'session_stopped') {
      const stopIsLast = event.sequence === log.last
      return { stop: stopIsLast ? event : undefined, calls: [] }
    }
    if (type === 'done' || type === 'error') return { end: event, calls: [...calls.values()].reverse() }
    if (type === 'tool_result') ended.add(id)
    else if (type === 'tool_call' && !ended.has(id) && !calls.has(id)) {
      calls.set(id, { id, title: String(content.title ?? ''), kind: String(content.kind ?? 'other') })
    } else if (type === 'user_message') return { turnId, calls: [...calls.values()].reverse() }
  }
  return { calls: [...calls.values()].reverse() }
}
