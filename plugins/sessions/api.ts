import * as v from 'valibot'
import { type Actor, defineErrors, event, type Fault, type Hook, registry, token } from '../../kernel/plugin.js'
import type { InspectSessionReply, SessionHealth } from '../../schemas/sessions.js'

export { redactText } from './redact.js'
export { isRestartable } from './states.js'
export { LineSplitter } from './stdout-lines.js'

export type SessionState = 'starting' | 'active' | 'stopping' | 'stopped'

export type StopReason =
  | 'completed'
  | 'user_canceled'
  | 'max_iterations'
  | 'loop_detected'
  | 'timeout'
  | 'budget_exceeded'
  | 'error'
  | 'agent_crashed'
  | 'hook_stopped'
  | 'shutdown'

export type FailureKind =
  | 'startup_failure'
  | 'handshake_failure'
  | 'load_session_failure'
  | 'protocol_failure'
  | 'prompt_failure'
  | 'cancellation'
  | 'permission_failure'
  | 'process_exit'
  | 'transport_failure'
  | 'timeout'
  | 'unknown_failure'

export interface SessionFailure {
  readonly kind: FailureKind
  readonly summary: string
  readonly crashBundlePath?: string
}

/** A session as other plugins see it. */
export interface SessionInfo {
  /** `ses_` and 16 hex. */
  readonly id: string
  readonly name: string
  readonly type: 'user' | 'dream' | 'system' | 'coordinator' | 'spawned'
  readonly agentName: string
  readonly workspaceId: string
  readonly state: SessionState
  readonly stopReason?: StopReason
  readonly stopDetail?: string
  readonly failure?: SessionFailure
  readonly createdAt: number
  readonly updatedAt: number
}

/** A new session (Behaviour 6.2). */
export interface CreateSession {
  readonly workspaceId: string
  /** Default: the workspace's, else `defaults.agent`. */
  readonly agentName?: string | undefined
  readonly name?: string | undefined
  readonly type?: SessionInfo['type']
  /** Instead of the definition's. */
  readonly model?: string | undefined
  readonly reasoningEffort?: string | undefined
  readonly speed?: 'normal' | 'fast' | undefined
  readonly actor: Actor
  /** Id of the event or request that led to it. */
  readonly cause?: string | undefined
}

/** How a turn ended. */
export type TurnOutcome =
  | { readonly status: 'completed'; readonly turnId: string; readonly stopReason: string }
  | { readonly status: 'canceled'; readonly turnId: string }
  | { readonly status: 'failed'; readonly turnId: string; readonly error: string; readonly failure: SessionFailure }

/** A prompt of another plugin. */
export interface SessionPrompt {
  readonly text: string
  /** Who prompts, as the turn says: `automation`. */
  readonly source: string
  readonly cause?: string | undefined
}

/** Sessions for other plugins. */
export interface SessionsApi {
  get(id: string): SessionInfo | undefined
  /** Those that are not stopped, in no order. */
  unstopped(): SessionInfo[]
  /** As the contract has it; nothing of it is asked of the agent. */
  healthOf(id: string): SessionHealth | undefined
  /** Resolves when the session is stored (state active, no process yet). Throws 503 draining, 409 `session_limit`, 404/422 of workspace and agent. */
  create(request: CreateSession): Promise<SessionInfo>
  /**
   * Runs one prompt turn to its end; starts the process when there is none. A turn that fails is an outcome, not a throw;
   * what keeps it from beginning is thrown: 404, 409 `session_stopped`, `session_busy`, `session_limit`.
   */
  run(id: string, prompt: SessionPrompt): Promise<TurnOutcome>
  /** The same, resolving when the turn has begun; `outcome` never rejects unless the turn cannot be written down. */
  begin(id: string, prompt: SessionPrompt): Promise<{ readonly turnId: string; readonly outcome: Promise<TurnOutcome> }>
  /** Idempotent; resolves when the process group is gone and the stop is durable. */
  stop(
    id: string,
    how: { readonly reason: StopReason; readonly detail?: string; readonly cause?: string | undefined },
  ): Promise<void>
  /** Something happened: a session is stopped, durably. */
  readonly stopped: Hook<(session: SessionInfo) => unknown>
  /** May this permission be granted, asked before a mode or a person grants it; a refusal rejects it once. */
  readonly permission: Hook<
    (request: { sessionId: string; toolKind: string; title: string }) => Promise<Fault | undefined>
  >
  /** What a process is started with; taps hand on a changed value. */
  readonly prepare: Hook<
    (value: SessionStart, session: SessionInfo) => SessionStart | undefined | Promise<SessionStart | undefined>
  >
}

/** What a process is started with. */
export interface SessionStart {
  readonly env: Readonly<Record<string, string>>
  readonly mcpServers: readonly unknown[]
  /** Put before the text of the first prompt. */
  readonly preamble: string
}

export const Sessions = token<SessionsApi>('sessions@1')

/** Contributes what wakes a session besides prompts, for the picture of one. */
export interface WakeSource {
  readonly read: (
    sessionId: string,
    withEvents: boolean,
  ) => Promise<Partial<Omit<InspectSessionReply, 'session_id' | 'health'>>>
}

export const WakeSources = registry<WakeSource>('sessions.wakes@1')

export const SessionCreated = event(
  'session.created',
  v.object({ id: v.string(), agent_name: v.string(), workspace_id: v.string() }),
)
export const SessionStopped = event(
  'session.stopped',
  v.object({
    id: v.string(),
    agent_name: v.string(),
    workspace_id: v.string(),
    stop_reason: v.string(),
    stop_detail: v.optional(v.string()),
  }),
)
export const SessionRepaired = event('session.repaired', v.object({ id: v.string(), repaired: v.number() }))

export const SessionErrors = defineErrors({
  session_not_found: { status: 404, message: 'no such session', next: 'svc session list' },
  session_stopped: {
    status: 409,
    message: 'this session is stopped; start another one',
    next: 'svc session new',
  },
  session_busy: {
    status: 409,
    message: 'a prompt is running in this session',
    next: 'svc session wait <id>',
  },
  session_limit: {
    status: 409,
    message: 'limits.max_concurrent_agents is reached',
    next: 'stop a session with svc session stop <id>, or raise limits.max_concurrent_agents in config.json',
  },
  permission_not_found: {
    status: 404,
    message: 'no such pending permission request; it may be answered already',
    next: 'svc session interactions <id>',
  },
  session_name_invalid: {
    status: 400,
    message: 'this cannot be the name of a session',
    next: 'a name is 1 to 200 characters without control characters',
  },
  session_cursor_invalid: {
    status: 400,
    message: 'the cursor does not belong to this filter',
    next: 'start again without it',
  },
  session_start_failed: {
    status: 500,
    message: 'the agent process could not be started',
    next: 'svc session health <id>',
  },
  session_journal_damaged: {
    status: 500,
    message: 'the journal of this session is damaged and cannot be read',
    next: 'svc doctor --only sessions',
  },
  provider_fixed: {
    status: 400,
    message: 'the provider of a session is that of its agent',
    next: 'set provider in the AGENT.md of the agent',
  },
  participation_unavailable: {
    status: 503,
    message: 'sessions cannot take part in the network: that part of the daemon is absent',
    next: 'leave network_participation out',
  },
  prompt_text_missing: { status: 400, message: 'a prompt needs a text', next: "svc session prompt <id> 'text'" },
  permission_not_offered: {
    status: 400,
    message: 'the agent offers no option of that kind for this request',
    next: 'take the decision that its options allow: svc session history <id> shows them',
  },
  prompt_idempotency_conflict: {
    status: 409,
    message: 'this key or message id is bound to another prompt',
    next: 'send this prompt with a key and a message id of its own',
  },
  prompt_not_queued: {
    status: 404,
    message: 'no such prompt waits in this session; it may run already',
    next: 'svc session input list <id>',
  },
  no_active_prompt: {
    status: 409,
    message: 'no prompt is running in this session: there is nothing to steer',
    next: "svc session prompt <id> 'text'",
  },
  wait_invalid: { status: 400, message: 'this cannot be waited for', next: 'correct what the message names' },
  wait_target_unknown: {
    status: 422,
    message: 'until names a state that there is not',
    next: 'until takes states with commas: idle, prompting, active, stopped',
  },
  wait_outdated: {
    status: 409,
    message: 'the transcript of this session was replaced',
    next: 'read its transcript again, then wait with the epoch that it tells',
  },
  wait_gone: {
    status: 410,
    message: 'there is no such wait to go on with',
    next: 'start again without resume_id',
  },
  queue_full: {
    status: 409,
    message: 'the prompt queue of this session is full',
    next: 'take one out with svc session input remove <id> <entry>, or raise session.busy_input.queue_cap',
  },
  workspace_choice: {
    status: 400,
    message: 'a session needs exactly one workspace',
    next: 'give either workspace (id or name) or workspace_path (absolute)',
  },
})
