import type { HooksOf, Setting } from '../../../../kernel/plugin.js'
import type { SessionInfo } from '../../sessions/api.js'
import { type CoordinatorNote, type CoordinatorWish, type points, TaskErrors } from '../api.js'
import type { TaskCore } from '../core.js'
import { TaskSettings } from '../settings.js'
import { showHint } from '../tasks/task-row.js'
import type { WorkerRow } from './worker-row.js'

/** The requested properties of a session for a run. */
export interface CoordinatorRequest {
  readonly agentName: string | undefined
  readonly provider?: string | undefined
  readonly model?: string | undefined
}
type Run = { readonly id: string; readonly task_id: string; readonly kind: string; readonly place: string }

/** The maximum runtime of a session for a kind of run, and its setting; 0: no limit. */
export function runtimeOf(config: { get(setting: Setting<number>): number }, kind: string) {
  const all = [TaskSettings.maxRuntime, ...(kind === 'coordinator' ? [TaskSettings.coordinatorLife] : [])]
  const set = all.map(setting => ({ ms: config.get(setting), path: setting.path })).filter(({ ms }) => ms > 0)
  return set.sort((a, b) => a.ms - b.ms)[0] ?? { ms: 0, path: TaskSettings.maxRuntime.path }
}

/** Hooks of coordinator sessions: a gate before their creation, and notifications. Other runs are ignored. */
export class Coordinators {
  constructor(
    private readonly core: TaskCore,
    private readonly hooks: HooksOf<typeof points>,
  ) {}

  /** The requested properties after the hooks. @throws Fault `task_conflict` when a hook refuses the session */
  async wished(run: Run, request: CoordinatorRequest, byDefault: string): Promise<CoordinatorRequest> {
    const hook = this.hooks.coordinatorPreSpawn
    if (run.kind !== 'coordinator' || !hook.isUsed()) return request
    const { provider, model, agentName = byDefault } = request
    const wish: CoordinatorWish = await hook.run({ ...noteOf(run, agentName), provider, model })
    if (wish.deny !== undefined)
      throw TaskErrors.task_conflict(`a hook refused the coordinator: ${wish.deny}`, showHint(run.task_id))
    return { agentName: wish.agentName, provider: wish.provider, model: wish.model }
  }

  /** The default properties of a coordinator. */
  asConfigured(): CoordinatorRequest {
    const { config } = this.core.kernel
    return {
      agentName: config.get(TaskSettings.coordinatorAgent) || undefined,
      provider: config.get(TaskSettings.coordinatorProvider) || undefined,
      model: config.get(TaskSettings.coordinatorModel) || undefined,
    }
  }

  spawned(run: Run, session: SessionInfo): void {
    const hook = this.hooks.coordinatorSpawned
    if (run.kind === 'coordinator' && hook.isUsed()) void hook.call(withSession(run, session))
  }

  /** The coordinator divided its task into these runs. */
  decided(run: Run, session: string, runIds: readonly string[]): void {
    const hook = this.hooks.coordinatorDecision
    if (hook.isUsed()) void hook.call(withSession(run, this.core.kernel.needs.sessions.get(session)), runIds)
  }

  /** @param error error of its session; undefined: its run has ended */
  ended({ run_id: id, session_id: session }: WorkerRow, error: string | undefined): void {
    const run = this.core.runs.get(id)
    if (run?.kind !== 'coordinator') return
    const note = withSession(run, session === null ? undefined : this.core.kernel.needs.sessions.get(session))
    if (error === undefined) void this.hooks.coordinatorStopped.call(note)
    else void this.hooks.coordinatorFailed.call(note, error)
  }
}

const noteOf = ({ id, task_id, place: workspaceId }: Run, agentName: string): CoordinatorNote => ({
  ...{ taskId: task_id, runId: id, workspaceId: workspaceId || undefined, agentName },
})

const withSession = (run: Run, session: SessionInfo | undefined): CoordinatorNote => ({
  ...noteOf(run, session?.agentName ?? ''),
  ...(session && { sessionId: session.id }),
})
