/** How the runs of a task are worked on: by which agents, in which sandbox, in which git worktree. */
import * as v from 'valibot'
import { Timestamp } from '../kernel/common.js'
import { ParticipationRequest } from '../network.js'

const names = v.optional(v.array(v.string()))
const json = <T>(schema: v.GenericSchema<unknown, T>, example: string) => v.pipe(schema, v.description(example))

const participants = {
  allowed_agent_names: names,
  preferred_agent_names: names,
  required_capabilities: names,
  preferred_capabilities: names,
  allowed_channel_ids: names,
  preferred_channel_ids: names,
  allowed_peer_ids: names,
  preferred_peer_ids: names,
}

/** Which sessions work on the runs; `select` names the agent of those that the daemon starts. */
export const WorkerProfile = v.strictObject({
  mode: v.picklist(['inherit', 'select']),
  agent_name: v.optional(v.string()),
  provider: v.optional(v.string()),
  model: v.optional(v.string()),
  allowed_agent_names: names,
  preferred_agent_names: names,
  required_capabilities: names,
  preferred_capabilities: names,
})
export type WorkerProfile = v.InferOutput<typeof WorkerProfile>

export const CoordinatorProfile = v.strictObject({
  mode: v.picklist(['inherit', 'guided']),
  agent_name: v.optional(v.string()),
  provider: v.optional(v.string()),
  model: v.optional(v.string()),
  guidance: v.optional(v.string()),
})

/** Who may take part at all. */
export const ProfileParticipants = v.strictObject(participants)

/** Who reviews what a run has done. */
export const ReviewProfile = v.strictObject({
  ...participants,
  agent_name: v.optional(v.string()),
  provider: v.optional(v.string()),
  model: v.optional(v.string()),
})

export const SandboxPolicy = v.strictObject({
  mode: v.picklist(['inherit', 'none', 'ref']),
  sandbox_ref: v.optional(v.pipe(v.string(), v.description('a sandbox profile; for mode ref'))),
})

/** Where a session that the daemon starts works: in the workspace, in one worktree of it, or in a new one for each run. */
export const WorktreePolicy = v.strictObject({
  mode: v.pipe(v.picklist(['inherit', 'none', 'ref', 'per_run']), v.description('per_run: a branch for each run')),
  worktree_ref: v.optional(v.pipe(v.string(), v.description('the folder of a worktree, or its name; for mode ref'))),
})
export type WorktreePolicy = v.InferOutput<typeof WorktreePolicy>

export const RuntimeProfile = v.strictObject({ mode: v.picklist(['default', 'evidence']) })

const parts = {
  worker: WorkerProfile,
  worktree: WorktreePolicy,
  sandbox: SandboxPolicy,
  participants: ProfileParticipants,
  review: ReviewProfile,
  coordinator: CoordinatorProfile,
  runtime: RuntimeProfile,
  network_participation: v.nullish(ParticipationRequest),
}

/** An execution profile; `created_at` is that of the task while it has none of its own. */
export const ExecutionProfile = v.object({
  ...parts,
  task_id: v.string(),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type ExecutionProfile = v.InferOutput<typeof ExecutionProfile>

/** PUT of a profile: what is absent is as it is without a profile. A profile that was read can be sent back. */
export const ExecutionProfileBody = v.strictObject({
  worker: v.optional(json(WorkerProfile, '{"mode":"select","agent_name":"coder"}')),
  worktree: v.optional(json(WorktreePolicy, '{"mode":"per_run"}')),
  sandbox: v.optional(json(SandboxPolicy, '{"mode":"ref","sandbox_ref":"default"}')),
  participants: v.optional(json(ProfileParticipants, '{"required_capabilities":["ts"]}')),
  review: v.optional(ReviewProfile),
  coordinator: v.optional(CoordinatorProfile),
  runtime: v.optional(RuntimeProfile),
  network_participation: v.nullish(ParticipationRequest),
  task_id: v.optional(v.string()),
  created_at: v.optional(v.string()),
  updated_at: v.optional(v.string()),
})
export type ExecutionProfileBody = v.InferOutput<typeof ExecutionProfileBody>

export const ExecutionProfileReply = v.object({ profile: ExecutionProfile })
export type ExecutionProfileReply = v.InferOutput<typeof ExecutionProfileReply>
