import { messageOf } from '../../kernel/plugin.js'
import type { StopReason } from './api.js'
import type { SessionsContext } from './context.js'
import type { StoredSessionEvent } from './events.js'
import type { SessionLog } from './session-log.js'
import { recordStop, type Stop, stopEvent } from './stopping.js'
import type { SessionRow } from './table.js'
import { syntheticResult } from './tool-calls.js'

/** Sessions that are repaired at the same time. */
const AT_ONCE = 8

/** What an earlier daemon left of a session's last turn. */
export interface Leftover {
  /** The stop is in the journal already: the daemon died between it and the row. */
  readonly stop: StoredSessionEvent | undefined
  /** The turn that did not end. */
  readonly turnId: string | undefined
  /** Calls without a result. */
  readonly calls: readonly { readonly id: string; readonly title: string; readonly kind: string }[]
}

/**
 * Brings sessions of an earlier daemon to a truthful end (Behaviour 6.11). Costs what is left over, not what is stored:
 * stopped sessions are not looked at. Doing it again after dying half way does nothing twice.
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
  const { kernel, logs } = context
  const how = stopFor(row)
  const result = await logs
    .use(row.id, async log => {
      const left = await findLeftover(log)
      const repaired = left.stop ? 0 : close(log, left, how)
      await log.sync()
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

/** Appends what is missing; never changes or renumbers what is there. Returns how many events. */
function close(log: SessionLog, left: Leftover, how: Stop): number {
  const before = log.bytes
  const count = closeTurn(log, left, how)
  log.append(stopEvent(how), { sync: true })
  return before === log.bytes ? 0 : count + 1
}

/** Ends what a turn began and did not end. Returns how many events that took. */
export function closeTurn(log: SessionLog, left: Leftover, how: Stop): number {
  let count = 0
  const turnId = left.turnId ?? ''
  const why = how.detail ?? 'the daemon ended'
  for (const call of left.calls) {
    log.append(syntheticResult(turnId, call, why))
    count++
  }
  if (left.turnId !== undefined) {
    log.append({
      type: 'error',
      turnId,
      content: { error: `${how.reason}: ${why}`, synthetic: true },
      failure: how.failure,
    })
    count++
  }
  return count
}

function stopFor({ state, stop_reason }: SessionRow): Stop {
  if (state === 'starting') {
    const summary = 'daemon crashed while session was starting'
    // One that was being started again stays as restartable as it was.
    const reason: StopReason = stop_reason ?? 'error'
    return { reason, detail: summary, failure: { kind: 'startup_failure', summary } }
  }
  const detail = state === 'stopping' ? 'stop did not complete' : 'daemon crashed while session active'
  return { reason: 'agent_crashed', detail, failure: { kind: 'process_exit', summary: detail } }
}

function stopOf(event: StoredSessionEvent, fallback: Stop): Stop {
  if (!event.stopReason) return fallback
  return { reason: event.stopReason, detail: event.stopDetail, failure: event.failure }
}

/** What the journal of a stopped session lacks; a stop at its end is taken for granted. */
export async function findGaps(log: SessionLog): Promise<Leftover> {
  const [last] = await log.read(log.last, 1)
  const isStop = last?.type === 'session_stopped'
  const left = await findLeftover(log, isStop ? log.last : undefined)
  return isStop ? { ...left, stop: last } : left
}

/**
 * Reads back, from before a sequence, to where the last turn began or ended; a journal without turns is read to its
 * beginning, which is near.
 */
async function findLeftover(log: SessionLog, before?: number): Promise<Leftover> {
  const calls = new Map<string, { id: string; title: string; kind: string }>()
  const ended = new Set<string>()
  for await (const event of log.backwards(before)) {
    const { type, content, turnId } = event
    const id = String(content.tool_call_id ?? '')
    if (type === 'session_stopped') {
      const stopIsLast = event.sequence === log.last
      return { stop: stopIsLast ? event : undefined, turnId: undefined, calls: [] }
    }
    if (type === 'done' || type === 'error') break
    if (type === 'tool_result') ended.add(id)
    else if (type === 'tool_call' && !ended.has(id) && !calls.has(id)) {
      calls.set(id, { id, title: String(content.title ?? ''), kind: String(content.kind ?? 'other') })
    } else if (type === 'user_message') return { stop: undefined, turnId, calls: [...calls.values()].reverse() }
  }
  return { stop: undefined, turnId: undefined, calls: [...calls.values()].reverse() }
}
