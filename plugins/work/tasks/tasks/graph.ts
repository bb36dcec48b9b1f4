import { shown } from '../../../../kernel/kit/text.js'
import type { Tx } from '../../../../kernel/plugin.js'
import { TaskErrors } from '../api.js'
import type { TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import { FINAL_TASK } from '../states.js'
import type { Who } from '../who.js'
import { showHint } from './task-row.js'
import { invalid } from './write.js'

/** Dependencies between tasks. */
export class TaskGraph {
  constructor(private readonly core: TaskCore) {}

  /** Adds a dependency; has no effect if it exists. Throws `task_cycle`, `task_graph_limit` (409). */
  add(who: Who, id: string, on: string): Promise<void> {
    return this.core.write(who, (t, settle) => {
      const { tasks, journal } = this.core
      const [task, other] = [tasks.find(id, t), tasks.find(on, t)]
      if (task.workspace_id !== other.workspace_id && other.workspace_id !== null && task.workspace_id !== null)
        throw invalid(`depends_on_task_id: task ${on} belongs to another workspace`)
      if (t.row('SELECT 1 FROM tasks_dependency WHERE task_id = ? AND depends_on = ?', [id, on])) return
      if (FINAL_TASK.has(task.status))
        throw TaskErrors.task_conflict(`task ${id} is ${task.status} and cannot get dependencies`, showHint(id))
      const count = t.row('SELECT count(*) FROM tasks_dependency WHERE task_id = ?', [id])
      if (Number(count?.[0]) >= LIMITS.dependencies)
        throw TaskErrors.task_graph_limit(
          `task ${id} has ${LIMITS.dependencies} dependencies, the maximum`,
          showHint(id),
        )
      this.#refuseCycle(t, id, on)
      t.run('INSERT INTO tasks_dependency (task_id, depends_on, created_at) VALUES (?, ?, ?)', [
        id,
        on,
        this.core.now(),
      ])
      journal.write(t, who, 'task.dependency_added', { task, payload: { depends_on_task_id: on } })
      settle(id)
    })
  }

  remove(who: Who, id: string, on: string): Promise<void> {
    return this.core.write(who, (t, settle) => {
      const task = this.core.tasks.find(id, t)
      const { changes } = t.run('DELETE FROM tasks_dependency WHERE task_id = ? AND depends_on = ?', [id, on])
      if (changes === 0) throw TaskErrors.task_not_found(`task ${id} does not depend on ${shown(on)}`, showHint(id))
      this.core.journal.write(t, who, 'task.dependency_removed', { task, payload: { depends_on_task_id: on } })
      settle(id)
    })
  }

  /** Follows the dependencies of the other task, and its children, because a parent completes with them. */
  #refuseCycle(t: Tx, id: string, on: string): void {
    const visited = new Set([on])
    const waiting = [on]
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      if (at === id) {
        const why = on === id ? 'cannot depend on itself' : `is already a direct or indirect dependency of task ${on}`
        throw TaskErrors.task_cycle(`task ${id} ${why}`, showHint(id))
      }
      if (visited.size > LIMITS.graph)
        throw TaskErrors.task_graph_limit(`the dependency graph has more than ${LIMITS.graph} tasks`, showHint(id))
      const waitsFor = t.rows(
        `SELECT depends_on FROM tasks_dependency WHERE task_id = ?1
         UNION ALL SELECT id FROM tasks_task WHERE parent_task_id = ?1`,
        [at],
      )
      for (const [next] of waitsFor) {
        if (visited.has(String(next))) continue
        visited.add(String(next))
        waiting.push(String(next))
      }
    }
  }
}
