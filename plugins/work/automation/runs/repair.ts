import { SessionCreated, type SessionInfo } from '../../sessions/api.js'
import { RunCreated } from '../api.js'
import type { CursorStore } from '../cursors.js'
import type { Dispatcher } from '../dispatch.js'
import type { K } from '../needs.js'
import { decodeTrigger, TriggerKind } from '../triggers/trigger-kind.js'
import type { RunRow } from './run-row.js'
import type { RunStore } from './runs.js'

/** Page size when searching the log for the session of a run. */
const PAGE = 1000

/**
 * Ends the runs that a previous daemon left open. A claimed run of a job is not dispatched again: the job has further
 * occurrences. A running run ends as its session did. A claimed run of a trigger is returned for dispatch, because its event
 * does not recur, unless it already has a session. Sessions have been repaired before.
 */
export async function repairRuns(kernel: K, runs: RunStore, cursors: CursorStore): Promise<readonly RunRow[]> {
  const { sessions } = kernel.needs
  // Occurrences that wait for a slot continue to wait.
  const open = runs.open().filter(run => run.wait_until === null)
  const waiting: RunRow[] = []
  for (const run of open)
    if (run.trigger_id !== null && run.status === 'scheduled' && !(await hasSession(kernel, run))) waiting.push(run)
  const left = open
    .filter(run => !waiting.includes(run))
    .map(run => ({ run, session: run.session_id === null ? undefined : sessions.get(run.session_id) }))
  if (left.length === 0) return waiting
  // A session that survived the restart has no run any more.
  for (const { session } of left) {
    if (!session || session.state === 'stopped') continue
    await sessions.stop(session.id, { reason: 'error', detail: 'its automation run has ended' })
  }
  await kernel.db.tx(t => {
    for (const { run, session } of left) {
      const [status, more] = endingOf(run, session)
      runs.move(t, run.id, status, more)
      if (run.trigger_id === null) cursors.resumed(t, run.job_id, status !== 'failed')
    }
  })
  kernel.log.warn(`ended ${left.length} runs that a previous daemon left open`)
  return waiting
}

/** Whether a session was created for a run before its id was written to the run. */
async function hasSession({ needs: { events } }: K, run: RunRow): Promise<boolean> {
  // Looked up by subject, which is indexed: there may be many such runs.
  let after = events.latest({ name: RunCreated.name, subject: run.id })?.seq
  while (after !== undefined) {
    const page = await events.list({ name: SessionCreated.name, after, limit: PAGE })
    if (page.some(({ cause }) => cause === run.event)) return true
    after = page.length < PAGE ? undefined : page.at(-1)?.seq
  }
  return false
}

function endingOf(
  run: RunRow,
  session: SessionInfo | undefined,
): ['completed' | 'failed' | 'canceled', { error?: string }] {
  if (run.status === 'scheduled') {
    return [
      'failed',
      { error: 'daemon_restarted: the daemon stopped before this run was dispatched; the run is not retried' },
    ]
  }
  if (session?.state !== 'stopped' || !session.stopReason) {
    return ['failed', { error: 'daemon_restarted: the daemon stopped during this run' }]
  }
  // The session stopped, but the daemon stopped before it updated the run.
  if (session.stopReason === 'completed') return ['completed', {}]
  const error = `${session.stopReason}: ${session.stopDetail ?? session.failure?.summary ?? 'the daemon stopped during this run'}`
  return [
    session.stopReason === 'shutdown' || session.stopReason === 'user_canceled' ? 'canceled' : 'failed',
    { error },
  ]
}

/** Dispatches claimed runs of triggers; without a dispatcher, and when the trigger was deleted, they are canceled. */
export async function resumeFires(
  kernel: K,
  runs: RunStore,
  fires: readonly RunRow[],
  dispatcher: Pick<Dispatcher, 'start'> | undefined,
): Promise<void> {
  for (const run of fires) {
    const trigger = decodeTrigger(kernel.records.get(TriggerKind.name, run.trigger_id ?? ''))
    const error = dispatcher
      ? 'trigger_not_found: the trigger was deleted'
      : 'automation_disabled: automation is disabled (automation.enabled is false)'
    if (trigger && dispatcher) dispatcher.start(run, trigger)
    else await kernel.db.tx(t => runs.move(t, run, 'canceled', { error }))
  }
}
