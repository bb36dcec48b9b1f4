import { clip } from '../../../../kernel/kit/text.js'
import type { SessionInfo, WorktreeInUse } from '../../sessions/api.js'
import type { TaskCore } from '../core.js'
import { agentFor, type Profiles } from '../profiles/profiles.js'
import { whoOf } from '../who.js'
import type { Coordinators } from './coordinators.js'
import { changeWorker, type WorkerRow } from './worker-row.js'

/** Starts the session for a run, in a worktree if the profile requires one. Cleans up when it throws. */
export async function startSession(
  core: TaskCore,
  coordinators: Coordinators,
  profiles: Profiles,
  worker: WorkerRow,
): Promise<{ readonly session: SessionInfo; readonly branch: string | undefined }> {
  const { actor, needs } = core.kernel
  const profile = profiles.partsOf(worker.task_id)
  const task = core.tasks.find(worker.task_id)
  const { mode, sandbox_ref: ref } = profile.sandbox
  const run = core.runs.find(worker.run_id)
  // Global tasks have a workspace of their own.
  const workspaceId = worker.place || (await needs.workspaces.scratch()).id
  const byDefault = needs.sessions.agentFor(workspaceId)
  const isLead = run.kind === 'coordinator'
  const configured = isLead ? coordinators.asConfigured() : undefined
  const { provider, model } = isLead ? { ...configured, ...profile.coordinator } : profile.worker
  const named = isLead ? (profile.coordinator.agent_name ?? configured?.agentName) : undefined
  const agentName = named ?? agentFor(profile, run.kind, turnOf(core, worker), byDefault)
  const request = await coordinators.wished(run, { agentName, provider, model }, byDefault)
  const worktree = await worktreeFor(core, profiles, worker, workspaceId)
  try {
    const session = await needs.sessions.create({
      workspaceId,
      agentName: request.agentName,
      ...(isLead && { type: run.kind }),
      name: clip(task.title, 200),
      model: request.model,
      sandbox: mode === 'ref' ? ref : mode === 'none' ? 'none' : undefined,
      unattended: true,
      worktree,
      actor,
    })
    const { undo: _, warnings: __, ...worktreeRecord } = worktree ?? {}
    const text = worktree ? JSON.stringify(worktreeRecord) : null
    await core.write(whoOf(actor), t => changeWorker(core, t, worker.id, { session_id: session.id, worktree: text }))
    if (request.provider === undefined || request.provider === session.provider) {
      coordinators.spawned(run, session)
      return { session, branch: worktree?.branch }
    }
    throw new Error(
      `provider_mismatch: agent ${session.agentName} uses provider ${session.provider}, ${request.provider} is required`,
    )
  } catch (error) {
    await worktree?.undo()
    throw error
  }
}

/** Index into the allowed agents: position in the fan-out plus the number of failed sessions. */
function turnOf(core: TaskCore, { run_id: run }: WorkerRow): number {
  const [failed] = core.kernel.db.row('SELECT count(*) FROM tasks_worker WHERE run_id = ? AND failed = 1', [run]) ?? [0]
  return (core.runs.get(run)?.designation_index ?? 0) + Number(failed)
}

async function worktreeFor(
  core: TaskCore,
  profiles: Profiles,
  { run_id: run, task_id: task }: WorkerRow,
  workspaceId: string,
): Promise<WorktreeInUse | undefined> {
  const { worktrees } = core.kernel.needs.sessions
  const { mode, worktree_ref: ref = '' } = profiles.partsOf(task).worktree
  if (mode === 'ref') return worktrees.of(workspaceId, { use: ref })
  if (mode !== 'per_run') return undefined
  // Among them this worker, and one whose daemon was killed while it made the worktree: it has neither an error nor a worktree.
  const [count] = core.kernel.db.row(
    'SELECT count(*) FROM tasks_worker WHERE run_id = ? AND (worktree IS NOT NULL OR error IS NULL)',
    [run],
  ) ?? [1]
  // The previous session may still write into its worktree, so a new session gets a new one.
  return worktrees.of(workspaceId, { create: count === 1 ? run : `${run}-${count}` })
}
