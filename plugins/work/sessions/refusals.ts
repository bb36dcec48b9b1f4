import { SandboxErrors } from '../../access/sandboxes/api.js'
import { LAUNCH_ERRORS } from '../../agents/agents/api.js'
import { ENVIRONMENT_ERRORS } from '../../agents/providers/api.js'
import { SidecarErrors } from '../../agents/sidecars/api.js'
import { DaemonErrors } from '../../desk/daemon/api.js'
import { CONFIG_ERRORS } from '../../desk/settings/api.js'
import { WorkspaceErrors } from '../../desk/workspaces/api.js'
import { NetworkErrors } from '../../reach/network/api.js'
import { McpErrors } from '../mcp/api.js'
import { SessionErrors } from './errors.js'

/** Errors of work that a daemon does not begin while it drains or its home is held. */
const ADMISSION_ERRORS = [DaemonErrors.draining, DaemonErrors.home_held] as const

/** Errors of a request to take part in the network. */
export const PARTICIPATION_ERRORS = [
  SessionErrors.participation_unavailable,
  SessionErrors.participation_invalid,
  SessionErrors.participation_denied,
  NetworkErrors.network_disabled,
] as const

/** Errors of the agent and the context of a session that is created or started. */
const READINESS_ERRORS = [
  ...ADMISSION_ERRORS,
  ...LAUNCH_ERRORS,
  SidecarErrors.soul_invalid,
  SessionErrors.hook_denied,
  SessionErrors.session_briefing_failed,
  SessionErrors.session_limit,
  SessionErrors.session_name_invalid,
  WorkspaceErrors.workspace_not_found,
] as const

/** Errors of creating a session, in addition to those of participation. */
export const CREATE_ERRORS = [
  ...READINESS_ERRORS,
  ...CONFIG_ERRORS,
  SandboxErrors.sandbox_unusable,
  SandboxErrors.sandbox_profile_not_found,
  SessionErrors.model_hidden,
] as const

/** Errors of a prompt that begins a turn, which may start the agent of the session. */
export const TURN_ERRORS = [
  ...READINESS_ERRORS,
  WorkspaceErrors.workspace_root_missing,
  SessionErrors.session_not_found,
  SessionErrors.session_archived,
  SessionErrors.session_stopped,
  SessionErrors.session_journal_damaged,
] as const

/** Errors of a prompt without a text, whose reply waits for the start of the agent. */
export const RESUME_ERRORS = [
  SessionErrors.session_start_failed,
  SessionErrors.agent_unguarded,
  SessionErrors.sandbox_unavailable,
  SandboxErrors.sandbox_unusable,
  SandboxErrors.sandbox_profile_not_found,
  McpErrors.mcp_file_invalid,
  McpErrors.mcp_server_required,
  ...ENVIRONMENT_ERRORS,
] as const

/** Errors of a repeated prompt, which is recognised by its key or its message ID. */
export const REPETITION_ERRORS = [
  SessionErrors.session_prompts_damaged,
  SessionErrors.prompt_idempotency_conflict,
] as const

/** Errors of a prompt that sets or changes the goal of a session. */
export const GOAL_ERRORS = [
  SessionErrors.goal_not_active,
  SessionErrors.goal_replace_required,
  SessionErrors.goal_objective_required,
  SessionErrors.goal_objective_too_large,
] as const
