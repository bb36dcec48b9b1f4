/** Execution profiles: which agent works on the runs of a task, in which sandbox and in which git worktree. */
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

/** Sessions that may claim the runs; with `select`, the daemon starts sessions of `agent_name`. */
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

/** Agents that may work on the task. */
export const ProfileParticipants = v.strictObject(participants)

/** Agents that may review the runs. */
export const ReviewProfile = v.strictObject({
  ...participants,
  agent_name: v.optional(v.string()),
  provider: v.optional(v.string()),
  model: v.optional(v.string()),
})

export const SandboxPolicy = v.strictObject({
  mode: v.picklist(['inherit', 'none', 'ref']),
  sandbox_ref: v.optional(v.pipe(v.string(), v.description('name of a sandbox profile, for mode ref'))),
})

/** Working folder of sessions started by the daemon: the workspace, one named worktree, or a new worktree per run. */
export const WorktreePolicy = v.strictObject({
  mode: v.pipe(
    v.picklist(['inherit', 'none', 'ref', 'per_run']),
    v.description(
      'inherit or none: the workspace folder; ref: a named worktree; per_run: a new worktree and branch per run',
    ),
  ),
  worktree_ref: v.optional(v.pipe(v.string(), v.description('folder or name of a worktree, for mode ref'))),
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

/** An execution profile. Without a stored profile, these are the defaults and `created_at` is that of the task. */
export const ExecutionProfile = v.object({
  ...parts,
  task_id: v.string(),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type ExecutionProfile = v.InferOutput<typeof ExecutionProfile>

/** PUT of a profile: omitted members get their defaults. A profile from a reply can be sent back unchanged. */
export const ExecutionProfileBody = v.strictObject({
  worker: v.optional(json(WorkerProfile, 'worker as JSON: {"mode":"select","agent_name":"coder"}')),
  worktree: v.optional(json(WorktreePolicy, 'worktree policy as JSON: {"mode":"per_run"}')),
  sandbox: v.optional(json(SandboxPolicy, 'sandbox policy as JSON: {"mode":"ref","sandbox_ref":"default"}')),
  participants: v.optional(json(ProfileParticipants, 'participants as JSON: {"required_capabilities":["ts"]}')),
  review: v.optional(json(ReviewProfile, 'reviewers as JSON: {"agent_name":"critic"}')),
  coordinator: v.optional(
    json(CoordinatorProfile, 'coordinator as JSON: {"mode":"guided","guidance":"…"} gives runs one'),
  ),
  runtime: v.optional(json(RuntimeProfile, 'runtime as JSON; {"mode":"evidence"} requires a result on completion')),
  network_participation: v.nullish(
    json(ParticipationRequest, 'requested network participation as JSON: {"mode":"live","channel_strategy":"run"}'),
  ),
  task_id: v.optional(v.pipe(v.string(), v.description('ID of the task; must match the path'))),
  created_at: v.optional(v.pipe(v.string(), v.description('ignored'))),
  updated_at: v.optional(v.pipe(v.string(), v.description('ignored'))),
})
export type ExecutionProfileBody = v.InferOutput<typeof ExecutionProfileBody>

export const ExecutionProfileReply = v.object({ profile: ExecutionProfile })
export type ExecutionProfileReply = v.InferOutput<typeof ExecutionProfileReply>
