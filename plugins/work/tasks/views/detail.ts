import { iso, type SqlValue } from '../../../../kernel/plugin.js'
import type { Dependency, DependencyEdge, TaskDetail, TaskEvent, TaskOverview } from '../../../../schemas/tasks.js'
import type { TaskCore } from '../core.js'
import type { EventRow } from '../journal.js'
import { optionalMember } from '../rows.js'
import { activeToWire, runToWire } from '../runs/run-row.js'
import { summaryToWire, type TaskRow, taskFacts } from '../tasks/task-row.js'
import { actorToWire, refToWire } from '../who.js'
import { decidingRun, nextStepOf } from './next-step.js'

/** Maximum number of newest events and runs in a detail. */
const SHOWN = { events: 50, runs: 50 }

/** A task with all its parts. */
export class TaskDetails {
  constructor(private readonly core: TaskCore) {}

  of(id: string): TaskDetail {
    const { db } = this.core.kernel
    const row = this.core.tasks.find(id)
    const events = db.all<EventRow>(
      `SELECT * FROM tasks_event WHERE task_id = ? ORDER BY seq DESC LIMIT ${SHOWN.events}`,
      [id],
    )
    const references = this.#dependencies(id)
    const { why, next } = nextStepOf(this.core, row, decidingRun(this.core, id))
    return {
      task: this.core.tasks.toWire(row),
      ...optionalMember('why', why),
      next_action: next,
      summary: this.overview(row),
      children: this.core.tasks.children(id).map(child => this.overview(child)),
      dependencies: references.map(({ depends_on: _, ...edge }) => edge),
      dependency_references: references,
      designation_rollups: this.#rollups(id),
      events: events.reverse().map(eventToWire),
      runs: this.core.runs.list(id, { limit: SHOWN.runs }).map(runToWire),
    }
  }

  overview(row: TaskRow): TaskOverview {
    const [active] = this.core.runs.open(row.id)
    const dependencies = this.#dependencies(row.id)
    const children = this.core.kernel.db.row('SELECT count(*) FROM tasks_task WHERE parent_task_id = ?', [row.id])
    return {
      ...taskFacts(row, this.core.tasks.more(row)),
      active_run: active ? activeToWire(active, row.max_attempts) : null,
      child_count: Number(children?.[0] ?? 0),
      dependency_count: dependencies.length,
      dependencies,
      last_activity_at: iso(row.last_activity_at),
    }
  }

  #dependencies(id: string): Dependency[] {
    const rows = this.core.kernel.db.all<{ depends_on: string; created_at: number }>(
      'SELECT depends_on, created_at FROM tasks_dependency WHERE task_id = ? ORDER BY created_at, depends_on',
      [id],
    )
    return rows.flatMap(({ depends_on: on, created_at: at }) => {
      const other = this.core.tasks.get(on)
      const edge: DependencyEdge = { task_id: id, depends_on_task_id: on, kind: 'blocks', created_at: iso(at) }
      return other ? [{ ...edge, depends_on: summaryToWire(other) }] : []
    })
  }

  /** Counts of runs by status for each fan-out. */
  #rollups(id: string): NonNullable<TaskDetail['designation_rollups']> {
    const rows = this.core.kernel.db.rows(
      `SELECT designation_group_id, min(queued_at), json_group_object(status, count) FROM (
         SELECT designation_group_id, status, count(*) AS count, min(queued_at) AS queued_at FROM tasks_run
         WHERE task_id = ? AND designation_group_id IS NOT NULL GROUP BY designation_group_id, status)
       GROUP BY designation_group_id ORDER BY 2`,
      [id],
    )
    return rows.map(([group, at, counts]: SqlValue[]) => ({
      task_id: id,
      designation_group_id: String(group),
      created_at: iso(Number(at)),
      summary: JSON.parse(String(counts)),
    }))
  }
}

/** An event as the contract has it. */
export function eventToWire(row: EventRow): TaskEvent {
  return {
    id: row.event_id,
    task_id: row.task_id,
    ...optionalMember('run_id', row.run_id),
    event_type: row.name,
    actor: actorToWire(row.actor_kind, row.actor_ref),
    origin: { kind: row.origin_kind, ref: refToWire(row.origin_ref) },
    ...(row.payload === null ? {} : { payload: JSON.parse(row.payload) }),
    timestamp: iso(row.at),
  }
}
