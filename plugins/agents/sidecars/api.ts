import * as v from 'valibot'
import { defineErrors, event, hookTable, notify, type TapsOf, token } from '../../../kernel/plugin.js'
import type { Heartbeat, Soul } from '../../../schemas/agents/sidecars.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { HeartbeatConfig } from './settings.js'

export { cutText } from './fields.js'
export { AgentHeartbeatKind, AgentSoulKind, SidecarSpec, sidecarProblem } from './kinds.js'
export type { HeartbeatConfig } from './settings.js'

/** The hooks of personas and policies. */
export const points = hookTable({
  policyResolved: notify<[policy: Heartbeat, agent: string, workspace?: Workspace]>(
    'heartbeat.policy.resolved',
    'A policy was read or changed on request, or a file that is followed was changed by hand.',
  ),
  configured: notify<[config: HeartbeatConfig]>('heartbeat.configured', 'The configuration of heartbeats was changed.'),
  soulResolved: notify<[soul: Soul, session: { readonly id: string; readonly agentName: string }]>(
    'soul.snapshot.resolved',
    'A session is about to start with a persona, or was given another one.',
  ),
  soulChanged: notify<[soul: Soul, agent: string, workspace?: Workspace]>(
    'soul.mutation.after',
    'A persona was changed on request, or a file that is followed was changed by hand.',
  ),
})

/** Personas (SOUL.md) and heartbeat policies (HEARTBEAT.md) of agents. */
export interface SidecarsApi extends TapsOf<typeof points> {
  /** Current persona; an invalid one is returned as an invalid snapshot. Throws `agent_not_found` (404). */
  soul(agent: string, workspace?: Workspace): Promise<Soul>
  /** Validates a text as if it were the agent's file. Throws `agent_not_found` (404). */
  validateSoul(agent: string, text: string, workspace?: Workspace): Promise<Soul>
  heartbeat(agent: string, workspace?: Workspace): Promise<Heartbeat>
  /** The effective configuration of heartbeats; durations in milliseconds. */
  readonly heartbeatConfig: HeartbeatConfig
  /** Id of a policy's newest revision, if any. */
  heartbeatRevision(policy: Heartbeat): string | undefined
  /**
   * Follows manual changes of the files beside an agent's definition and reports them by {@link policyResolved} and
   * {@link soulChanged}; without a definition file there is nothing to follow. Returns a function that stops it.
   */
  follow(policy: Heartbeat, agent: string, workspace?: Workspace): () => void
}

export const Sidecars = token<SidecarsApi>('sidecars@1')

export const SidecarErrors = defineErrors({
  sidecar_changed: {
    status: 409,
    message: 'the file has changed since expected_digest; read it again and repeat',
  },
  sidecar_read_only: {
    status: 409,
    message: 'this file is built in or comes from a package and cannot be changed',
  },
  sidecar_missing: { status: 404, message: 'there is no such file' },
  sidecar_unwritable: { status: 409, message: 'the file cannot be written there' },
  sidecar_revision_not_found: { status: 404, message: 'no such revision' },
  sidecar_revision_empty: { status: 409, message: 'this revision deleted the file; there is no text to restore' },
  sidecar_revision_unnamed: { status: 400, message: 'name the revision: revision_id, or target_digest' },
  sidecar_cursor_invalid: {
    status: 400,
    message: 'the cursor does not belong to this history; start again without it',
  },
  sidecar_idempotency_conflict: { status: 409, message: 'this idempotency key was used for another change' },
  heartbeat_if_match_header_unsupported: {
    status: 400,
    message: 'the header If-Match is not supported; send expected_digest in the body',
  },
  soul_invalid: { status: 422, message: 'the persona of this agent is not valid' },
})

/** A session got the current persona of its agent; without a digest it has none from then on. */
export const SoulRefreshed = event(
  'agent.soul.refreshed',
  v.object({ session_id: v.string(), agent_name: v.string(), digest: v.optional(v.string()) }),
)

/** A request changed a sidecar. */
export const SidecarChanged = event(
  'agent.sidecar.changed',
  v.object({
    agent_name: v.string(),
    sidecar: v.picklist(['soul', 'heartbeat']),
    operation: v.picklist(['write', 'delete', 'rollback']),
    revision_id: v.string(),
  }),
)
