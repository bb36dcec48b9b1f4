import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import { iso } from '../../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import type { TaskScheduler } from '../../../../schemas/tasks.js'
import { finding } from '../../../desk/daemon/api.js'
import { recoveryOf } from '../budgets/recovery.js'
import type { TaskCore } from '../core.js'
import { keeperOf } from '../kept/table.js'
import type { RunRow } from '../runs/run-row.js'
import { isLive, isStuck } from '../runs/run-state.js'
import type { Stall } from '../scheduler/stalls.js'
import type { TaskRow } from '../tasks/task-row.js'

/** Kinds of unhealthy runs; the code of a finding is `task_run_` followed by the kind. */
type Trouble = 'crashed' | 'stale_lease' | 'orphan' | 'stuck' | 'stranded'

/** A run that has been claimable for this many milliseconds is stranded. */
const STRANDED_MS = 10 * 60_000
/** Maximum number of runs per status that a check reads. */
const SEEN = 100

const TITLES: { readonly [T in Trouble]: string } = {
  crashed: 'needs attention',
  stale_lease: 'has an expired lease',
  orphan: 'is held by a session that has ended',
  stuck: 'has been active for unusually long',
  stranded: 'has not been claimed',
}

/** The problem of an open run; undefined for a healthy one. */
export function troubleOf(core: TaskCore, run: RunRow, task: TaskRow): Trouble | undefined {
  const now = core.now()
  if (run.status === 'needs_attention') return 'crashed'
  if (run.status === 'queued') {
    // The plugin that keeps the run decides itself how long it waits for an external worker.
    if (keeperOf(core.kernel.db, task.id).owner) return undefined
    return task.claimable === 1 && now - run.queued_at >= STRANDED_MS ? 'stranded' : undefined
  }
  if (run.ended_at !== null) return undefined
  if (run.lease_until !== null && run.lease_until <= now) return 'stale_lease'
  // An external worker holds the run by its lease only, without a session.
  if (run.claimed_by_kind === 'network_peer') return undefined
  if (run.session_id === null || !isLive(core, run.session_id)) return 'orphan'
  return isStuck(run, now) ? 'stuck' : undefined
}

/** The finding for a run; undefined for a healthy one. */
export function runFinding(core: TaskCore, run: RunRow): DiagnosticItem | undefined {
  const task = core.tasks.find(run.task_id)
  const trouble = troubleOf(core, run, task)
  if (trouble === undefined) return undefined
  return finding({
    id: `task_run:${run.id}`,
    code: `task_run_${trouble}`,
    category: 'tasks',
    severity: trouble === 'crashed' || trouble === 'orphan' ? 'error' : 'warning',
    title: `run ${run.id} ${TITLES[trouble]}`,
    message: messageOf(run, task, trouble),
    suggested_command: commandOf(core, run, trouble),
    evidence: {
      task_id: task.id,
      run_id: run.id,
      status: run.status,
      ...(run.session_id === null ? {} : { session_id: run.session_id }),
    },
  })
}

/** The findings for all unhealthy runs, those that need attention first. */
export function runFindings(core: TaskCore): DiagnosticItem[] {
  const rows = (['needs_attention', 'running', 'starting', 'claimed', 'queued'] as const).flatMap(status =>
    core.kernel.db.all<RunRow>(
      `SELECT * FROM tasks_run WHERE status = ?${status === 'queued' ? ' AND claimable = 1' : ''} ORDER BY queued_at LIMIT ${SEEN}`,
      [status],
    ),
  )
  return rows.flatMap(run => runFinding(core, run) ?? [])
}

function messageOf(run: RunRow, task: TaskRow, trouble: Trouble): string {
  const of = `task ${task.id}, ${shown(task.title)}`
  if (trouble === 'crashed') return `${of}: ${run.error ?? 'no reason recorded'}`
  if (trouble === 'stale_lease')
    return `${of}: the lease expired at ${iso(run.lease_until ?? 0)}; the daemon recovers the run`
  if (trouble === 'stranded')
    return `${of}: queued since ${iso(run.queued_at)}; claim it in a session: ${command('task next', ...(run.place === '' ? [] : ['--workspace-id', run.place]))}`
  return `${of}: held by session ${run.session_id ?? '-'} since ${iso(run.claimed_at ?? run.queued_at)}`
}

function commandOf(core: TaskCore, run: RunRow, trouble: Trouble): string {
  if (trouble === 'crashed') return recoveryOf(core, run)
  if (trouble === 'orphan') return command('task run cancel', run.id)
  return command('task run inspect', run.id)
}

const plural = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`

/** The finding for the task scheduler. */
export function schedulerFinding(scheduler: TaskScheduler, stall: Stall | undefined): DiagnosticItem {
  const { paused, paused_by, paused_reason, ...counts } = scheduler
  const { queued_run_count: queued, active_claim_count: held } = counts
  const because = [paused_by && `by ${paused_by}`, paused_reason].filter(text => text).join(': ')
  const base = { id: 'task_scheduler', category: 'tasks', evidence: { queued, held } }
  if (!paused && stall) {
    return finding({
      ...base,
      code: 'scheduler_stalled',
      severity: 'warning',
      title: 'the scheduler starts no sessions for queued runs',
      message: `${stall.looks} passes in a row started none of ${plural(stall.waiting, 'queued run', 'queued runs')}; each run shows the reason`,
      suggested_command: command('scheduler backlog'),
    })
  }
  if (!paused) {
    const message = `${plural(queued, 'queued run', 'queued runs')}, ${plural(held, 'active claim', 'active claims')}`
    return finding({
      ...base,
      code: 'scheduler_ready',
      severity: 'info',
      title: 'the task scheduler is running',
      message,
    })
  }
  return finding({
    ...base,
    code: 'scheduler_paused',
    severity: 'warning',
    title: 'the task scheduler is paused',
    message: `paused${because && ` ${because}`}; ${plural(queued, 'queued run', 'queued runs')}`,
    suggested_command: command('scheduler resume'),
  })
}
