import type { DiagnosticItem } from '../../schemas/kernel/diagnostic.js'
import { finding } from '../daemon/api.js'
import type { RunRow } from './runs/run-row.js'
import type { RunStore } from './runs/runs.js'

/** What doctor says of the scheduler, and of jobs and triggers whose latest run failed or had questions that nobody answered. */
export function findings(
  { running, isEnabled, jobs }: { readonly running: boolean; readonly isEnabled: boolean; readonly jobs: number },
  runs: RunStore,
  isTrigger: (id: string) => boolean,
): DiagnosticItem[] {
  const scheduler = running
    ? {
        code: 'scheduler_ready',
        severity: 'info',
        title: 'the scheduler runs',
        message: `${jobs} jobs are enabled`,
      }
    : isEnabled
      ? {
          code: 'scheduler_paused',
          severity: 'error',
          title: 'the scheduler does not run',
          message: 'nothing is fired; restart the daemon',
        }
      : {
          code: 'scheduler_paused',
          severity: 'warning',
          title: 'automation is switched off',
          message: 'automation.enabled is false in config.json; nothing is fired',
        }

  const fired = runs.latestTriggerFailures(100).filter(run => isTrigger(run.trigger_id ?? ''))
  const troubled = [...runs.latestFailures(20), ...runs.latestNoted(20), ...fired.slice(0, 20)]
  return [finding({ id: 'scheduler', category: 'automation', ...scheduler }), ...troubled.map(trouble)]
}

/** What is wrong with the latest run of a job or trigger. */
function trouble(run: RunRow): DiagnosticItem {
  const [noun, of] = run.trigger_id === null ? ['job', run.job_id] : ['trigger', run.trigger_id]
  const failed = run.status === 'failed'
  return finding({
    id: noun === 'job' ? `scheduler:${of}` : `trigger:${of}`,
    code: failed ? 'automation_run_failed' : 'automation_requests_expired',
    category: 'automation',
    severity: 'warning',
    title: `the latest run of ${noun} ${of} ${failed ? 'failed' : 'was not answered'}`,
    message: run.error ?? 'it says nothing about why',
    suggested_command: noun === 'job' ? `svc automation jobs history ${of}` : `svc automation triggers history ${of}`,
    evidence: { run_id: run.id, ...(run.session_id === null ? {} : { session_id: run.session_id }) },
  })
}
