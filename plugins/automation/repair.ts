import type { PluginKernel } from '../../kernel/plugin.js'
import type { SessionInfo, Sessions } from '../sessions/api.js'
import type { CursorStore } from './cursors.js'
import type { RunRow, RunStore } from './runs.js'

/**
 * Ends the runs that an earlier daemon left behind: a claimed run is never dispatched again, a running one
 * ends as its session did. Sessions have been repaired before. Returns the number of runs.
 */
export async function repairRuns(
  kernel: PluginKernel<{ sessions: typeof Sessions }>,
  runs: RunStore,
  cursors: CursorStore,
): Promise<number> {
  const { sessions } = kernel.needs
  const left = runs
    .open()
    .map(run => ({ run, session: run.session_id === null ? undefined : sessions.get(run.session_id) }))
  if (left.length === 0) return 0
  // One that outlived the restart has nobody who waits for it any more.
  for (const { session } of left) {
    if (!session || session.state === 'stopped') continue
    await sessions.stop(session.id, { reason: 'error', detail: 'the run that it worked for is over' })
  }
  await kernel.db.tx(t => {
    for (const { run, session } of left) {
      const [status, more] = endingOf(run, session)
      runs.move(t, run.id, status, more)
      cursors.resumed(t, run.job_id, status !== 'failed')
    }
  })
  return left.length
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
