import { command } from '../../../kernel/kit/commands/command-line.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'
import { QUESTION_EXPIRED } from './dispatch.js'
import type { NoteworthyRuns } from './runs/noteworthy.js'
import type { RunRow } from './runs/run-row.js'

/** Doctor items: the scheduler, and jobs and triggers whose latest run failed. */
export function findings(
  about: { readonly running: boolean; readonly isHeld: boolean; readonly isEnabled: boolean; readonly jobs: number },
  runs: NoteworthyRuns,
  isTrigger: (id: string) => boolean,
): DiagnosticItem[] {
  const { running, isHeld, isEnabled, jobs } = about
  const paused = { code: 'scheduler_paused', title: 'scheduler is not running' }
  const scheduler = running
    ? {
        code: 'scheduler_ready',
        severity: 'info',
        title: 'scheduler is running',
        message: `enabled jobs: ${jobs}`,
      }
    : isHeld
      ? {
          ...paused,
          severity: 'warning',
          message: 'the home is held, so no job fires',
          suggested_command: command('backup confirm'),
        }
      : isEnabled
        ? {
            ...paused,
            severity: 'error',
            message: `no job fires; restart the daemon: ${command('daemon restart')}`,
          }
        : {
            ...paused,
            severity: 'warning',
            title: 'automation is disabled',
            message: 'automation.enabled is false in config.json; no job or trigger fires',
          }

  const fired = runs.latestTriggerFailures(100).filter(run => isTrigger(run.trigger_id ?? ''))
  const troubled = [...runs.latestFailures(20), ...fired.slice(0, 20)]
  return [finding({ id: 'scheduler', category: 'automation', ...scheduler }), ...troubled.map(trouble)]
}

/** Hint about the permission mode of unattended runs, which an upgrade or a setting may have made stricter. */
const UNATTENDED = `. In unattended runs, \`permissions\` of the agent decides what needs approval, else the setting permissions.mode (${command('config get', 'permissions.mode')})`

/** Doctor item for the latest run of a job or trigger. */
function trouble(run: RunRow): DiagnosticItem {
  const [noun, of] = run.trigger_id === null ? ['job', run.job_id] : ['trigger', run.trigger_id]
  const expired = run.error?.startsWith(`${QUESTION_EXPIRED}:`) ?? false
  return finding({
    id: noun === 'job' ? `scheduler:${of}` : `trigger:${of}`,
    code: expired ? 'automation_question_expired' : 'automation_run_failed',
    category: 'automation',
    severity: 'warning',
    title: expired
      ? `the latest run of ${noun} ${of} asked a question that was not answered in time`
      : `the latest run of ${noun} ${of} failed`,
    message: `${run.error ?? 'no error message was recorded'}${expired ? UNATTENDED : ''}`,
    suggested_command: command(noun === 'job' ? 'automation jobs history' : 'automation triggers history', of),
    evidence: { run_id: run.id, ...(run.session_id === null ? {} : { session_id: run.session_id }) },
  })
}
