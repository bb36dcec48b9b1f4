import { iso, type Reads, type Tx } from '../../../../kernel/plugin.js'
import type {
  CoordinationQuery,
  PutCoordinationBody,
  PutInvitationBody,
  Coordination as Wire,
} from '../../../../schemas/network/coordination.js'
import { TaskErrors } from '../../../work/tasks/api.js'
import { NetworkErrors } from '../api.js'
import type { K } from '../needs.js'
import { NetworkEnabled } from '../settings.js'
import { eligibilityOf } from './eligibility.js'
import { type CoordinationRow, coordinations } from './table.js'

/** States of running runs. */
const ACTIVE: ReadonlySet<string> = new Set(['claimed', 'starting', 'running'])

type Change = { readonly enabled: boolean } | { readonly dismissed: boolean }

/** Whether future runs of a workspace, or of a task, coordinate in a channel. */
export class Coordination {
  constructor(private readonly kernel: K) {}

  /** The setting of a task, else of its workspace. */
  isOn(reads: Reads, workspaceId: string, taskId: string | undefined): boolean {
    const ofTask = taskId === undefined ? undefined : coordinations.get(reads, { workspaceId, taskId })?.enabled
    return ofTask ?? coordinations.get(reads, { workspaceId, taskId: '' })?.enabled ?? false
  }

  /** @throws Fault `coordination_scope_invalid`, `coordination_scope_mismatch`, `task_not_found`, `task_run_not_found` */
  show(workspaceId: string, query: CoordinationQuery): Wire {
    const { scope, task_id: taskId = '', run_id: runId } = query
    if ((scope === 'task') !== (taskId !== ''))
      throw NetworkErrors.coordination_scope_invalid('task_id is required for scope task and not allowed otherwise')
    this.#checkTask(workspaceId, taskId)
    return this.#wire(workspaceId, taskId, runId)
  }

  /**
   * Changes the setting for future runs; existing ones keep theirs. @throws Fault as {@link show},
   * `coordination_conflict`
   */
  async put(workspaceId: string, body: PutCoordinationBody, by: string): Promise<Wire> {
    return this.#change(workspaceId, body, { enabled: body.enabled }, by)
  }

  /** Answers the invitation, which does not enable anything. @throws Fault as {@link put} */
  async invite(workspaceId: string, body: PutInvitationBody, by: string): Promise<Wire> {
    return this.#change(workspaceId, body, { dismissed: body.dismissed }, by)
  }

  async #change(
    workspaceId: string,
    body: PutCoordinationBody | PutInvitationBody,
    change: Change,
    by: string,
  ): Promise<Wire> {
    const taskId = body.scope === 'task' ? body.task_id : ''
    this.#checkTask(workspaceId, taskId)
    // The whole request is checked before any change.
    this.#runOf(workspaceId, taskId, body.run_id)
    await this.kernel.db.tx(t => this.#write(t, { workspaceId, taskId }, body.expected_revision, change, by))
    return this.#wire(workspaceId, taskId, body.run_id)
  }

  #write(
    t: Tx,
    target: { readonly workspaceId: string; readonly taskId: string },
    expected: number,
    change: Change,
    by: string,
  ): void {
    const before = coordinations.get(t, target)
    const revision = before?.revision ?? 0
    if (revision !== expected)
      throw NetworkErrors.coordination_conflict(`the record has the revision ${revision}, not ${expected}`)
    const now = this.kernel.clock.now()
    const { dismissedAt, dismissedBy, enabled } = before ?? {}
    const kept =
      'dismissed' in change
        ? change.dismissed
          ? { dismissedAt: now, dismissedBy: by }
          : {}
        : { dismissedAt, dismissedBy }
    coordinations.replace(t, {
      ...target,
      ...kept,
      revision: revision + 1,
      enabled: 'enabled' in change ? change.enabled : enabled,
      updatedAt: now,
      updatedBy: by,
    })
  }

  #checkTask(workspaceId: string, taskId: string): void {
    if (taskId === '') return
    const { current: tasks } = this.kernel.needs.tasks
    if (tasks?.titleOf(taskId) === undefined) throw TaskErrors.task_not_found(`no task ${JSON.stringify(taskId)}`)
    if (tasks.workspaceOf(taskId) !== workspaceId)
      throw NetworkErrors.coordination_scope_mismatch(`the task ${taskId} belongs to another workspace, or to none`)
  }

  /** @throws Fault `task_run_not_found`, `coordination_scope_mismatch` */
  #runOf(workspaceId: string, taskId: string, runId: string | undefined) {
    if (runId === undefined) return undefined
    const { current: tasks } = this.kernel.needs.tasks
    const run = tasks?.run(runId)
    if (!tasks || !run) throw TaskErrors.task_run_not_found(`no run ${JSON.stringify(runId)}`)
    if (tasks.workspaceOf(run.task_id) !== workspaceId || (taskId !== '' && run.task_id !== taskId))
      throw NetworkErrors.coordination_scope_mismatch(`the run ${runId} belongs to another task or workspace`)
    return { isActive: ACTIVE.has(run.status), ...tasks.crewOf(runId) }
  }

  #wire(workspaceId: string, taskId: string, runId: string | undefined): Wire {
    const { db, config } = this.kernel
    const row: CoordinationRow | undefined = coordinations.get(db, { workspaceId, taskId })
    const run = this.#runOf(workspaceId, taskId, runId)
    const reason = eligibilityOf({
      isEnabled: this.isOn(db, workspaceId, taskId === '' ? undefined : taskId),
      isDismissed: row?.dismissedAt !== undefined,
      isAvailable: config.get(NetworkEnabled),
      run,
    })
    const target = { scope: taskId === '' ? 'workspace' : 'task', ...(taskId !== '' && { task_id: taskId }) } as const
    return {
      workspace_id: workspaceId,
      ...target,
      enabled: row?.enabled ?? false,
      revision: row?.revision ?? 0,
      updated_at: row ? iso(row.updatedAt) : null,
      ...(row && { updated_by: row.updatedBy }),
      invitation: row
        ? {
            ...target,
            dismissed: row.dismissedAt !== undefined,
            dismissed_at: row.dismissedAt === undefined ? null : iso(row.dismissedAt),
            ...(row.dismissedBy !== undefined && { dismissed_by: row.dismissedBy }),
          }
        : null,
      eligibility: {
        eligible: reason === 'eligible',
        reason,
        coordinator: run?.isCoordinator ?? false,
        ...(runId !== undefined && { run_id: runId }),
        worker_count: run?.workers ?? 0,
      },
    }
  }
}
