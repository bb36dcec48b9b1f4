import type { PluginKernel } from '../../../kernel/plugin.js'
import type { Events } from '../../events/api.js'
import { SessionCreated, type SessionInfo, type Sessions } from '../../sessions/api.js'
import { RunCreated } from '../api.js'
import type { CursorStore } from '../cursors.js'
import type { RunRow } from './run-row.js'
import type { RunStore } from './runs.js'

type Kernel = PluginKernel<{ sessions: typeof Sessions; events: typeof Events }>

/** Events that are read at once while the session of a run is looked for. */
const PAGE = 1000

/**
 * Ends the runs that an earlier daemon left behind: a claimed run of a job is never dispatched again, for its next occurrence
 * will come; a running one ends as its session did. A claimed run of a trigger, whose event does not come again, is handed back
 * as long as no session was made for it. Sessions have been repaired before.
 */
export async function repairRuns(kernel: Kernel, runs: RunStore, cursors: CursorStore): Promise<readonly RunRow[]> {
  const { sessions } = kernel.needs
  const open = runs.open()
  const waiting: RunRow[] = []
  for (const run of open)
    if (run.trigger_id !== null && run.status === 'scheduled' && !(await hasSession(kernel, run))) waiting.push(run)
  const left = open
    .filter(run => !waiting.includes(run))
    .map(run => ({ run, session: run.session_id === null ? undefined : sessions.get(run.session_id) }))
  if (left.length === 0) return waiting
  // One that outlived the restart has nobody who waits for it any more.
  for (const { session } of left) {
    if (!session || session.state === 'stopped') continue
    await sessions.stop(session.id, { reason: 'error', detail: 'the run that it worked for is over' })
  }
  await kernel.db.tx(t => {
    for (const { run, session } of left) {
      const [status, more] = endingOf(run, session)
      runs.move(t, run.id, status, more)
      if (run.trigger_id === null) cursors.resumed(t, run.job_id, status !== 'failed')
    }
  })
  kernel.log.warn(`${left.length} runs that an earlier daemon left were ended`)
  return waiting
}

/** Was a session made for a run before that was written into its row? */
async function hasSession({ needs: { events } }: Kernel, run: RunRow): Promise<boolean> {
  // By its subject, of which there is an index: there may be very many such runs.
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
      { error: 'daemon_restarted: the daemon ended before this run was dispatched; it is not dispatched again' },
    ]
  }
  if (session?.state !== 'stopped' || !session.stopReason) {
    return ['failed', { error: 'daemon_restarted: the daemon ended during this run' }]
  }
  // The session was stopped, and the daemon ended before that was written here.
  if (session.stopReason === 'completed') return ['completed', {}]
  const error = `${session.stopReason}: ${session.stopDetail ?? session.failure?.summary ?? 'the daemon ended during this run'}`
  return [
    session.stopReason === 'shutdown' || session.stopReason === 'user_canceled' ? 'canceled' : 'failed',
    { error },
  ]
}
