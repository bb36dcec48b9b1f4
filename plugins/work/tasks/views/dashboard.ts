import { command } from '../../../../kernel/kit/commands/command-line.js'
import { matching } from '../../../../kernel/kit/table.js'
import { iso, type SqlValue } from '../../../../kernel/plugin.js'
import type { Dashboard, DashboardQuery, DashboardRun, TaskRunStatus, TaskStatus } from '../../../../schemas/tasks.js'
import { TaskStatus as Statuses } from '../../../../schemas/tasks.js'
import type { TaskCore } from '../core.js'
import { priorityOf } from '../limits.js'
import { optionalMember } from '../rows.js'
import type { RunRow } from '../runs/run-row.js'
import { isLive, isStuck, sinceOf } from '../runs/run-state.js'
import { ownerOf } from '../tasks/task-row.js'
import { IN_CHANNEL } from './catalog.js'
import { nextStepOf } from './next-step.js'

const MINUTE = 60_000
const BACKLOG_MS = 10 * MINUTE
const STALE_MS = 2 * MINUTE
/** Maximum number of runs that are listed, longest waiting or active first. */
const SHOWN_RUNS = 50
/** Number of newest runs in the latency statistics. */
const SAMPLES = 1000
/** Maximum number of runs per status that a filtered latency query reads. */
const LOOKED_AT = 2000

/** The condition on tasks, `1` for all of them, and its values. */
interface Filter {
  /** Set when scope is the only filter: it has maintained totals, and a run row contains its scope. */
  readonly scope?: DashboardQuery['scope'] | undefined
  readonly sql: string
  readonly params: readonly SqlValue[]
}

/** The dashboard of all tasks, or of the tasks that match the query. */
export function dashboardOf(core: TaskCore, query: DashboardQuery, workspace: string | undefined): Dashboard {
  const filter = filterOf(query, workspace)
  const isCounted = filter.sql === '1' || filter.scope !== undefined
  const tasks = isCounted
    ? core.totals.tasks.byStatus(filter.scope)
    : countsOf(core, `SELECT status, count(*) FROM tasks_task t WHERE ${filter.sql} GROUP BY status`, filter)
  const runs = isCounted
    ? core.totals.runs.byStatus(filter.scope)
    : countsOf(core, `SELECT r.status, count(*) FROM ${runsOf(filter)} GROUP BY r.status`, filter)
  const items = activeRuns(core, filter)
  const one = (sql: string, ...more: SqlValue[]) =>
    Number(core.kernel.db.row(sql, [...filter.params, ...more])?.[0] ?? 0)
  const approval = one(
    `SELECT count(*) FROM tasks_task t WHERE ${filter.sql} AND t.status = 'blocked' AND t.approval_state = 'pending'`,
  )
  const dependencies = one(
    `SELECT count(*) FROM tasks_task t WHERE ${filter.sql} AND t.status = 'blocked' AND EXISTS
       (SELECT 1 FROM tasks_dependency d JOIN tasks_task x ON x.id = d.depends_on WHERE d.task_id = t.id AND x.status <> 'completed')`,
  )
  const [queued, claimed, starting, running] = (['queued', 'claimed', 'starting', 'running'] as const).map(
    status => runs.get(status) ?? 0,
  ) as [number, number, number, number]
  const active = queued + claimed + starting + running
  const total = sum(tasks)
  const task = (status: TaskStatus) => tasks.get(status) ?? 0
  const run = (status: TaskRunStatus) => runs.get(status) ?? 0
  const now = core.now()
  const oldest = core.kernel.db.row(
    `SELECT r.queued_at FROM ${runsOf(filter)} AND r.status = 'queued' ORDER BY r.queued_at LIMIT 1`,
    filter.params,
  )?.[0]
  const since = typeof oldest === 'number' ? oldest : now
  const backlog = now - since > BACKLOG_MS
  const stuck = items.filter(item => item.stuck).length
  const orphans = items.filter(
    ({ run_status: status, session_id: session }) =>
      session !== undefined && status !== 'needs_attention' && !isLive(core, session),
  ).length
  const forced = one(
    `SELECT count(*) FROM ${runsOf(filter)} AND r.status = 'failed' AND r.failure_kind = 'operator_forced'`,
  )
  const health = (bad: boolean) => (bad ? 'degraded' : 'ok')
  return {
    totals: {
      tasks_total: total,
      draft_tasks: task('draft'),
      pending_tasks: task('pending'),
      blocked_tasks: task('blocked'),
      ready_tasks: task('ready'),
      in_progress_tasks: task('in_progress'),
      completed_tasks: task('completed'),
      failed_tasks: task('failed'),
      canceled_tasks: task('canceled'),
      awaiting_approval_tasks: approval,
      dependency_blocked_tasks: dependencies,
      runs_total: sum(runs),
      active_runs: active,
      queued_runs: queued,
      claimed_runs: claimed,
      starting_runs: starting,
      running_runs: running,
      completed_runs: run('completed'),
      failed_runs: run('failed'),
      canceled_runs: run('canceled'),
      needs_attention_tasks: task('needs_attention'),
      needs_attention_runs: run('needs_attention'),
    },
    status_breakdown: Statuses.options
      .filter(status => tasks.has(status))
      .map(status => ({ status, count: task(status), share_percent: Math.round((task(status) / total) * 100) })),
    active_runs: {
      total: active,
      queued,
      claimed,
      starting,
      running,
      items: items.slice(0, SHOWN_RUNS).map(item => explained(core, item)),
    },
    queue: {
      total: queued,
      backlog_status: backlog ? 'warning' : 'ok',
      backlog_warning: backlog,
      backlog_threshold_ms: BACKLOG_MS,
      oldest_queue_age_ms: now - since,
      oldest_queued_at: iso(since),
      depth: queued === 0 ? [] : [{ count: queued, oldest_queue_age_ms: now - since, oldest_queued_at: iso(since) }],
    },
    cards: {
      blocked: {
        tasks: task('blocked'),
        awaiting_approval: approval,
        awaiting_dependencies: dependencies,
        health_status: 'ok',
      },
      failed: {
        tasks: task('failed'),
        failed_runs: run('failed'),
        forced_stops: forced,
        health_status: health(task('failed') > 0),
      },
      in_progress: {
        tasks: task('in_progress'),
        active_runs: active,
        claimed_runs: claimed,
        queued_runs: queued,
        running_runs: running,
        starting_runs: starting,
        health_status: health(stuck > 0),
      },
      latency: {
        claim_latency_ms: latency(core, filter, 'r.claimed_at - r.queued_at'),
        start_latency_ms: latency(core, filter, 'r.started_at - r.claimed_at'),
      },
    },
    health: {
      status: health(stuck > 0 || orphans > 0 || backlog || task('needs_attention') > 0 || run('needs_attention') > 0),
      stuck_runs: stuck,
      active_orphan_runs: orphans,
      queue_backlog: backlog,
    },
    freshness: freshness(core, filter, { isEmpty: total === 0, live: active > 0 }),
  }
}

function filterOf(query: DashboardQuery, workspace: string | undefined): Filter {
  const { sql, params } = matching(
    ['t.scope = ?', query.scope],
    ['t.workspace_id = ?', workspace],
    ['t.owner_kind = ?', query.owner_kind],
    ['t.owner_ref = ?', query.owner_ref],
    ['t.origin_kind = ?', query.origin_kind],
    [`t.${IN_CHANNEL}`, query.participation_channel],
  )
  const scope = params.length === 1 ? query.scope : undefined
  // As a literal, SQLite can use the partial indexes of the scope.
  return scope === undefined ? { sql, params } : { scope, sql: `t.scope = '${scope}'`, params: [] }
}

/** FROM and WHERE for the runs of matching tasks; joins tasks only if necessary. */
function runsOf({ scope, sql }: Filter, runs = 'tasks_run'): string {
  if (sql === '1') return `${runs} r WHERE 1`
  if (scope !== undefined) return `${runs} r WHERE +r.place ${scope === 'global' ? '=' : '<>'} ''`
  return `${runs} r JOIN tasks_task t ON t.id = r.task_id WHERE ${sql}`
}

function countsOf(core: TaskCore, sql: string, { params }: Filter): Map<string, number> {
  return new Map(core.kernel.db.rows(sql, params).map(([status, count]) => [String(status), Number(count)]))
}

const sum = (counts: Map<string, number>) => [...counts.values()].reduce((all, count) => all + count, 0)

/** Runs that need attention, active runs, and the first queued runs. */
function activeRuns(core: TaskCore, filter: Filter): DashboardRun[] {
  const read = (status: string, limit: number) =>
    core.kernel.db.all<RunRow>(
      `SELECT r.* FROM ${runsOf(filter)} AND r.status = '${status}' ORDER BY r.queued_at LIMIT ${limit}`,
      filter.params,
    )
  const held = ['needs_attention', 'running', 'starting', 'claimed'].flatMap(status => read(status, SAMPLES))
  return [...held, ...read('queued', SHOWN_RUNS)].map(run => runToDashboard(core, run))
}

function runToDashboard(core: TaskCore, run: RunRow): DashboardRun {
  const task = core.tasks.find(run.task_id)
  const now = core.now()
  const stuck = isStuck(run, now)
  return {
    run_id: run.id,
    run_status: run.status,
    task_id: run.task_id,
    ...optionalMember('task_identifier', task.identifier),
    task_title: task.title,
    task_status: task.status,
    task_priority: priorityOf(task.priority),
    task_owner: ownerOf(task) ?? null,
    scope: task.scope,
    ...optionalMember('workspace_id', task.workspace_id),
    ...optionalMember('session_id', run.session_id),
    attempt: run.attempt,
    max_attempts: task.max_attempts,
    age_ms: now - sinceOf(run),
    stuck,
    health_status: run.status === 'needs_attention' ? run.status : stuck ? 'stuck' : 'ok',
    ...optionalMember('error', run.error),
    ...optionalMember('part', run.designation_brief),
    latest_event_seq: task.latest_event_seq,
    last_activity_at: iso(Math.max(task.last_activity_at, run.heartbeat_at ?? 0)),
  }
}

/** Adds the agent, the reason and the next step to a run. */
function explained(core: TaskCore, item: DashboardRun): DashboardRun {
  const run = core.runs.find(item.run_id)
  const step = nextStepOf(core, core.tasks.find(run.task_id), run)
  const help = step.next.startsWith('svc ') ? step.next : item.stuck ? command('task run inspect', run.id) : undefined
  const agent = run.session_id === null ? undefined : core.kernel.needs.sessions.get(run.session_id)?.agentName
  return {
    ...item,
    ...optionalMember('agent_name', agent),
    ...optionalMember('why', step.why),
    ...optionalMember('next_action', help),
  }
}

const newest = (status: string) =>
  `(SELECT task_id, place, queued_at, claimed_at, started_at FROM tasks_run WHERE status = '${status}'
     ORDER BY queued_at DESC LIMIT ${LOOKED_AT})`

/** Latency of the newest ended runs that have both timestamps. */
function latency(core: TaskCore, filter: Filter, of: string): Dashboard['cards']['latency']['claim_latency_ms'] {
  const ended = ['completed', 'failed'].map(
    status =>
      `SELECT * FROM (SELECT ${of} AS ms FROM ${runsOf(filter, newest(status))}
         ORDER BY r.queued_at DESC LIMIT ${SAMPLES / 2})`,
  )
  const row = core.kernel.db.row(`SELECT count(ms), avg(ms), max(ms) FROM (${ended.join(' UNION ALL ')})`, [
    ...filter.params,
    ...filter.params,
  ])
  const [samples, average, maximum] = (row ?? []).map(value => Math.round(Number(value ?? 0)))
  return { samples: samples ?? 0, average_ms: average ?? 0, maximum_ms: maximum ?? 0 }
}

/** Without it, SQLite sorts all tasks of a scope. */
const NEWEST_FIRST = 'INDEXED BY tasks_task_recent'

function freshness(
  core: TaskCore,
  filter: Filter,
  { isEmpty, live }: { readonly isEmpty: boolean; readonly live: boolean },
): Dashboard['freshness'] {
  const { scope, sql, params } = filter
  const now = core.now()
  // Without any match, the query would scan the whole index.
  const latest = isEmpty
    ? undefined
    : core.kernel.db.row(
        `SELECT t.last_activity_at FROM tasks_task t ${scope === undefined ? '' : NEWEST_FIRST} WHERE ${sql} ORDER BY t.last_activity_at DESC LIMIT 1`,
        params,
      )?.[0]
  // A heartbeat counts as activity here.
  const beat = live
    ? core.kernel.db.row(
        `SELECT max(r.heartbeat_at) FROM ${runsOf(filter)} AND r.status IN ('claimed', 'starting', 'running')`,
        params,
      )?.[0]
    : 0
  const at = typeof latest === 'number' ? Math.max(latest, Number(beat)) : now
  const stale = live && now - at > STALE_MS
  return {
    status: latest === undefined ? 'empty' : stale ? 'stale' : 'current',
    stale,
    stale_after_ms: STALE_MS,
    age_ms: now - at,
    has_live_work: live,
    latest_activity_at: iso(at),
    observed_at: iso(now),
  }
}
