import type { JobTask } from '../../../../schemas/automation.js'
import type { DefinitionRecord } from '../definitions.js'
import type { K } from '../needs.js'
import { type Ending, unsupported } from './ending.js'
import type { RunRow } from './run-row.js'

/**
 * Delegates a run to a new task, which ends the run. The task id is derived from the run id, so a daemon that was killed
 * before it recorded the delegation does not create a second task.
 */
export async function delegate(
  kernel: K,
  run: RunRow,
  { spec, scope }: DefinitionRecord,
  wish: JobTask,
): Promise<Ending> {
  const tasks = kernel.needs.tasks.current
  if (!tasks) return unsupported('tasks_unavailable: task-backed jobs require the tasks plugin')
  const body = {
    id: `task_of_${run.id}`,
    title: wish.title ?? spec.name,
    description: wish.description ?? (spec.prompt || undefined),
    owner: wish.owner ?? undefined,
    network_participation: wish.network_participation ?? undefined,
    ...(scope.id === undefined ? { scope: 'global' as const } : { scope: 'workspace' as const, workspace: scope.id }),
  }
  const { task, run: first } = await tasks.submit(kernel.actor, body, {
    origin: `run:${run.id}`,
    key: `automation-run:${run.id}`,
    ...(spec.agent_name ? { profile: { worker: { mode: 'select', agent_name: spec.agent_name } } } : {}),
  })
  return { status: 'delegated', task: { id: task.id, run: first?.id ?? '' } }
}
