import { type Clock, within } from '../../../../kernel/plugin.js'
import type { Launch, RunningAgent } from '../agent/launch.js'
import { type SessionFailure, type SessionInfo, SessionRepaired, SessionStopped, type StopReason } from '../api.js'
import { attentionOfEnd } from '../attention/attention.js'
import type { SessionsContext } from '../context.js'
import type { Digest } from '../journal/digest.js'
import type { SessionLog } from '../journal/session-log.js'
import { otherProviderOf } from '../runtime/selection.js'
import { RESTARTABLE, walk, wayToStopped } from '../states.js'
import type { SessionChange, SessionRow } from '../table.js'
import { droppedEvent } from '../turn/prompts.js'
import type { Turn } from '../turn/turn.js'
import { infoOf } from '../wire.js'

/** Milliseconds for a turn to end by itself when its session is stopped. */
export const STOP_CANCEL_MS = 1500
/** Milliseconds between the steps of ending a process; a whole stop fits into the ten seconds of a shutdown. */
export const STOP_PROCESS = { graceMs: 1500, termMs: 2000 }
export const END_PROCESS = { graceMs: 0, termMs: 1000 }

/** Reason and options of a stop. */
export interface Stop {
  readonly reason: StopReason
  readonly detail?: string | undefined
  readonly failure?: SessionFailure | undefined
  readonly cause?: string | undefined
  /** Whether a hook may refuse the stop: a request caused it. */
  readonly isRefusable?: boolean
}

/**
 * Ends the journal of a session durably: drops the waiting prompts when the session cannot restart, and writes the stop. Returns
 * the number of events written.
 */
export async function writeStop(
  { prompts }: SessionsContext,
  id: string,
  log: SessionLog,
  { reason, detail, failure }: Stop,
): Promise<number> {
  const dropped = RESTARTABLE.has(reason) ? [] : prompts.queued(id)
  for (const { turn_id } of dropped) log.append(droppedEvent(turn_id))
  const content = { reason, ...(detail && { detail }) }
  log.append({ type: 'session_stopped', turnId: '', content, stopReason: reason, stopDetail: detail, failure })
  await log.sync()
  return dropped.length + 1
}

/** Columns of a restarted session: the result of its last stop is cleared. */
export const NOT_STOPPED = {
  stop_reason: null,
  stop_detail: null,
  failure_kind: null,
  failure_summary: null,
  failure_bundle: null,
} as const

/** Columns of a session that stopped. */
function stopColumns(row: SessionRow, { reason, detail, failure }: Stop, now: number): SessionChange {
  return {
    state: walk(row.state, ...wayToStopped(row.state)),
    stop_reason: reason,
    stop_detail: detail ?? null,
    failure_kind: failure?.kind ?? null,
    failure_summary: failure?.summary ?? null,
    failure_bundle: failure?.crashBundlePath ?? null,
    updated_at: now,
  }
}

/**
 * Writes the row and the event of a stop, after its journal. The queue survives only a stop that a prompt can undo. Undefined when
 * the session is stopped already.
 */
export async function recordStop(
  context: SessionsContext,
  id: string,
  how: Stop,
  journal: { readonly bytes: number; readonly digest?: Digest | undefined; readonly repaired?: number },
): Promise<SessionInfo | undefined> {
  const { kernel, table, prompts } = context
  return kernel.db.tx(t => {
    const row = table.get(id)
    if (!row || row.state === 'stopped') return undefined
    const change = stopColumns(row, how, kernel.clock.now())
    const attention = how.failure ? attentionOfEnd(context, row) : {}
    const usage = journal.digest?.toString() ?? row.usage
    table.update(t, id, { ...change, ...attention, usage, journal_bytes: journal.bytes })
    prompts.abandon(t, id)
    if (!RESTARTABLE.has(how.reason)) prompts.dropQueued(t, id, 'canceled')
    const info = infoOf({ ...row, ...change })
    const payload = {
      id,
      agent_name: info.agentName,
      workspace_id: info.workspaceId,
      stop_reason: how.reason,
      ...(how.detail && { stop_detail: how.detail }),
    }
    const cause = how.cause ?? row.cause ?? undefined
    const about = { scope: info.workspaceId, subject: id }
    const stopped = kernel.needs.events.emit(t, SessionStopped, payload, { cause, ...about })
    if (journal.repaired !== undefined) {
      kernel.needs.events.emit(t, SessionRepaired, { id, repaired: journal.repaired }, { cause: stopped.id, ...about })
    }
    return info
  })
}

/** Notifies about a durable stop; resolves when all taps are done. */
export function tellStop({ points, stopped, stopsTold }: SessionsContext, info: SessionInfo): Promise<void> {
  if (info.stopReason === 'agent_crashed') void points.agentCrashed.call(info)
  const told = stopped.call(info).finally(() => stopsTold.get(info.id) === told && stopsTold.delete(info.id))
  stopsTold.set(info.id, told)
  return told
}

/** Milliseconds that the start of a process waits for the taps of the stop before. */
const TOLD_MS = 10_000

/**
 * Resolves when all plugins have handled the stop of a session. Their cleanup, such as revoking its token, must not affect the next
 * process.
 */
export function stopTold({ kernel, stopsTold }: SessionsContext, id: string): Promise<void> {
  return within(kernel.clock, TOLD_MS, stopsTold.get(id) ?? Promise.resolve()).catch(() => {})
}

/** The stop after a failed start: a new session ends, a restarted session stays as restartable as it was. */
export function stopAfterStart({ state, stop_reason }: SessionRow, failure: SessionFailure): Stop {
  const reason = state === 'starting' ? (stop_reason ?? 'error') : 'error'
  return { reason, detail: `the agent did not start: ${failure.summary}`, failure }
}

/** Milliseconds that a cancel request waits for the turn to end. */
const CANCEL_ANSWER_MS = 2000

/** Cancels the running turn and waits for its end, up to a time limit. */
export async function cancelTurn(sessionId: string, turn: Turn | undefined, clock: Clock) {
  if (!turn) return { outcome: 'no_active_prompt', session_id: sessionId }
  turn.cancel('user')
  const ended = await within(clock, CANCEL_ANSWER_MS, turn.over).then(
    () => true,
    () => false,
  )
  return { outcome: ended ? 'canceled' : 'cancel_requested', session_id: sessionId, turn_id: turn.id }
}

/** The row change for a process that has just started. */
export function startedChange(row: SessionRow, { plan }: Launch, { agent, permissions }: RunningAgent): SessionChange {
  const { state, model, provider } = row
  // The original model and provider of the session are kept besides a later choice.
  const isChosen = otherProviderOf(row) === plan.provider
  return {
    acp_session_id: agent.session.acpSessionId,
    supports_load: agent.session.supportsLoad ? 1 : 0,
    model: isChosen ? model : model || plan.model,
    provider: isChosen ? provider : plan.provider,
    permissions: permissions.mode,
    ...(state === 'starting' && { state: walk(state, 'active'), ...NOT_STOPPED }),
  }
}
