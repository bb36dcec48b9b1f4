import * as v from 'valibot'
import { type Actor, event, type Fault, type Hook, registry, type Tx, token } from '../../kernel/plugin.js'
import type { InspectSessionReply, SessionHealth } from '../../schemas/sessions.js'
import type { Workspace } from '../workspaces/api.js'

export { LineSplitter } from './acp/stdout-lines.js'
export { redactText } from './agent/redact.js'
export { SessionErrors } from './errors.js'
export { isRestartable } from './states.js'

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

/** A new session. */
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

/** A session of which no turn runs and none begins. */
export interface IdleSession {
  /** Replaces a part of its briefing; its agent is told with the next prompt. */
  brief(t: Tx, name: string, text: string): void
}

/** Sessions for other plugins. */
export interface SessionsApi {
  get(id: string): SessionInfo | undefined
  /** Those that are not stopped, in no order. */
  unstopped(): SessionInfo[]
  /** Stopped ones that a prompt starts again, of an agent or all; in no order. */
  resumable(agent?: string): SessionInfo[]
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
  /**
   * Does something to a session while no turn of it runs and none can begin. Throws 404, 409 `session_busy`, and
   * `session_stopped` for one that nothing starts again.
   */
  whileIdle<T>(id: string, work: (session: IdleSession) => Promise<T>): Promise<T>
  /** Idempotent; resolves when the process group is gone and the stop is durable. */
  stop(
    id: string,
    how: { readonly reason: StopReason; readonly detail?: string; readonly cause?: string | undefined },
  ): Promise<void>
  /** Something happened: a session is stopped, durably. */
  readonly stopped: Hook<(session: SessionInfo) => unknown>
  /** How a session is has changed; of each told at most once in the time that {@link HealthTimings} gives. */
  readonly healthUpdated: Hook<(health: SessionHealth) => unknown>
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

/** Contributes how health is judged and told of, in milliseconds; the first contributor counts. */
export interface HealthTiming {
  /** Without a sign of life for so long, a session that waits is stale. */
  readonly staleAfterMs: () => number
  /** Between two calls of `healthUpdated` for one session. */
  readonly tellEveryMs: () => number
}

export const HealthTimings = registry<HealthTiming>('sessions.health@1')

/** Contributes a part of what agents are told besides their definitions. It is read when a session begins and stays with it. */
export interface Briefing {
  /** Its own among all contributors. */
  readonly name: string
  /** Of a session that is about to be made; undefined: nothing. What it throws refuses the session. */
  readonly read: (session: SessionInfo, workspace: Workspace) => Promise<string | undefined>
}

export const SessionBriefings = registry<Briefing>('sessions.briefings@1')

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

const HealthChange = v.object({
  id: v.string(),
  agent_name: v.string(),
  workspace_id: v.string(),
  health: v.string(),
  /** In words. */
  reason: v.optional(v.string()),
})
/** Its process, or its turn, has shown no sign of life for long. */
export const SessionHung = event('session.hung', HealthChange)
/** It stopped by a failure. */
export const SessionUnhealthy = event('session.unhealthy', HealthChange)
/** It is well again after one of the two. */
export const SessionRecovered = event('session.recovered', HealthChange)
