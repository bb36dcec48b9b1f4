/** Requests of an agent about its own session and the sessions that it spawns. */
import * as v from 'valibot'
import { Integer, Timestamp } from '../kernel/common.js'
import { CoordinationKind, CoordinationMetadata } from '../network/agent.js'
import { ResolvedParticipation } from '../network.js'
import { CoordinationChannel, TaskLease, TaskSituation } from '../tasks.js'
import { PermissionPolicy, Session, SessionLineage, SessionState, SessionType, Speed } from './session.js'

const Self = v.object({
  agent_name: v.string(),
  model: v.optional(v.string()),
  provider: v.string(),
  session_id: v.string(),
})
const OwnSession = v.object({
  id: v.string(),
  name: v.optional(v.string()),
  type: v.optional(SessionType),
  state: SessionState,
  lineage: v.nullish(SessionLineage),
  resolved_network_participation: v.nullish(ResolvedParticipation),
  created_at: Timestamp,
  updated_at: Timestamp,
})
const OwnWorkspace = v.object({
  id: v.optional(v.string()),
  name: v.optional(v.string()),
  root_dir: v.optional(v.string()),
})
/** Remaining limits of the session: further children and depth. */
const Limits = v.object({
  context_section_limit: Integer,
  max_active_task_leases: Integer,
  max_children: Integer,
  max_spawn_depth: Integer,
})
const Section = v.object({ limit: Integer, returned: Integer, truncated: v.boolean() })
const capabilities = v.array(
  v.object({ id: v.string(), source: v.optional(v.string()), summary: v.optional(v.string()) }),
)
const messages = v.array(
  v.object({
    channel_id: v.string(),
    kind: CoordinationKind,
    message_id: v.string(),
    metadata: CoordinationMetadata,
    preview: v.optional(v.string()),
    timestamp: Timestamp,
  }),
)
const peers = v.array(
  v.object({
    capabilities: v.array(v.string()),
    channel_id: v.optional(v.string()),
    display_name: v.optional(v.string()),
    peer_id: v.string(),
    session_id: v.optional(v.string()),
  }),
)

/** The configuration of coordinators in a workspace. */
export const CoordinatorConfig = v.object({
  agent_name: v.string(),
  default_ttl_seconds: Integer,
  enabled: v.boolean(),
  max_active_sessions_per_workspace: Integer,
  max_children: Integer,
  model: v.optional(v.string()),
  provider: v.optional(v.string()),
  source: v.picklist(['workspace', 'global', 'default']),
  workspace_id: v.optional(v.string()),
})
export type CoordinatorConfig = v.InferOutput<typeof CoordinatorConfig>

/** GET /api/agent/coordinator/config. */
export const CoordinatorConfigQuery = v.object({ workspace: v.optional(v.string()) })
export type CoordinatorConfigQuery = v.InferOutput<typeof CoordinatorConfigQuery>
export const CoordinatorConfigReply = v.object({ coordinator: CoordinatorConfig })
export type CoordinatorConfigReply = v.InferOutput<typeof CoordinatorConfigReply>

/** GET /api/agent/me. Sessions have no capabilities yet. */
export const AgentMeReply = v.object({
  me: v.object({
    active_task_leases: v.array(TaskLease),
    capabilities,
    channels: v.array(CoordinationChannel),
    coordinator: CoordinatorConfig,
    limits: Limits,
    self: Self,
    session: OwnSession,
    workspace: OwnWorkspace,
  }),
})
export type AgentMeReply = v.InferOutput<typeof AgentMeReply>

/** GET /api/agent/context. */
export const AgentContextReply = v.object({
  context: v.object({
    capabilities: v.object({ capabilities, section: Section }),
    coordination_channel: v.object({ available: v.boolean(), channel: v.nullish(CoordinationChannel) }),
    inbox_summary: v.object({ items: messages, section: Section, unread_count: Integer }),
    limits: Limits,
    peer_roster: v.object({ peers, section: Section }),
    provenance: v.object({ generated_at: Timestamp, source: v.string() }),
    self: Self,
    session: OwnSession,
    soul: v.object({
      active: v.boolean(),
      config_digest: v.optional(v.string()),
      digest: v.optional(v.string()),
      enabled: v.boolean(),
      max_body_bytes: v.optional(Integer),
      max_bytes: v.optional(Integer),
      present: v.boolean(),
      principles: v.array(v.string()),
      role: v.optional(v.string()),
      snapshot_id: v.optional(v.string()),
      source_path: v.optional(v.string()),
      tone: v.array(v.string()),
      truncated: v.optional(v.boolean()),
      valid: v.boolean(),
      validation_status: v.optional(v.picklist(['missing', 'inactive', 'valid', 'invalid'])),
    }),
    task: TaskSituation,
    workspace: OwnWorkspace,
  }),
})
export type AgentContextReply = v.InferOutput<typeof AgentContextReply>

/** POST /api/agent/soul/validate: validates a text, or else the stored persona; agent and workspace are the caller's. */
export const ValidateOwnSoulBody = v.strictObject({
  agent_name: v.optional(v.string()),
  body: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
})
export type ValidateOwnSoulBody = v.InferOutput<typeof ValidateOwnSoulBody>

const line = v.pipe(v.string(), v.minLength(1), v.maxLength(200))
const atoms = v.pipe(v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(4096))), v.maxLength(200))

/** POST /api/agent/spawn. The child has only the listed permissions. */
export const SpawnBody = v.strictObject({
  agent_name: line,
  /** Stop the child when the caller's session stops. */
  auto_stop_on_parent: v.boolean(),
  idempotency_key: v.optional(line),
  model: v.optional(line),
  name: v.optional(line),
  permissions: v.strictObject(
    Object.fromEntries(Object.keys(PermissionPolicy.entries).map(name => [name, atoms])) as Record<
      keyof typeof PermissionPolicy.entries,
      typeof atoms
    >,
  ),
  /** Instructions for the child, placed before its first prompt. */
  prompt_overlay: v.optional(v.pipe(v.string(), v.maxLength(32_768))),
  provider: v.optional(line),
  spawn_role: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_-]{0,63}$/, 'a name of a-z, 0-9, _ and -')),
  speed: v.optional(Speed),
  ttl_seconds: v.pipe(v.number(), v.integer()),
})
export type SpawnBody = v.InferOutput<typeof SpawnBody>

/** POST /api/agent/spawn. */
export const SpawnReply = v.object({
  spawn: v.object({ lineage: SessionLineage, permissions: PermissionPolicy, session: Session }),
})
export type SpawnReply = v.InferOutput<typeof SpawnReply>
