import * as v from 'valibot'
import { type Actor, registry, token } from '../../../kernel/plugin.js'
import type { ParticipationRequest } from '../../../schemas/network.js'
import type {
  AnswerClarificationBody,
  ApproveBody,
  InboxItem,
  InboxQuestion,
  InspectSessionReply,
  Session,
  SessionEvent,
  SessionHealth,
  SessionLineage,
} from '../../../schemas/sessions.js'
import type { PermissionMode } from '../../agents/agents/api.js'
import type { Provider } from '../../agents/providers/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { AskedQuestion, EventContent, FailureKind, SessionGuard, SessionQuestion, Sight } from '../acp/api.js'
import type { SessionWorktree, SessionWorktrees, WorktreeInUse } from '../worktrees/api.js'
import type { SessionUses } from './journal/uses.js'
import type { IdleSession, SessionPoints, SessionTaps } from './points.js'
import type { SessionPast } from './read/past.js'
import type { SessionRights } from './rights.js'

export type { AskedQuestion, FailureKind, QuestionEnd, SessionGuard, SessionQuestion } from '../acp/api.js'
export type { SessionWorktree, SessionWorktrees, SubmoduleTree, WorktreeInUse } from '../worktrees/api.js'
export { SessionErrors } from './errors.js'
export * from './inbox-sources.js'
export { LocalTime } from './journal/local-time.js'
export type * from './journal/uses.js'
export * from './lifecycle/health-timing.js'
export * from './lifecycle/log-events.js'
export * from './mcp-servers.js'
export * from './participation.js'
export type * from './points.js'
export { points } from './points.js'
export type * from './read/past.js'
export * from './read/session-run.js'
export { CREATE_ERRORS, PARTICIPATION_ERRORS } from './refusals.js'
export type { SessionRights } from './rights.js'
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
  /** Undefined: no sandbox decision was made when the session was created. */
  readonly confinement?: SessionConfinement
  /** The mode in force at its last start; undefined in a row of an earlier version. */
  readonly permissions?: PermissionMode
  readonly provider: string
  readonly model?: string
  readonly lineage?: SessionLineage
  /** The session ID that the agent assigned; absent until the agent has started once. */
  readonly acpSessionId?: string
  readonly createdAt: number
  readonly updatedAt: number
}

/** A new session. */
export interface CreateSession {
  readonly workspaceId: string
  /** Default: the agent of the workspace, else `defaults.agent`. */
  readonly agentName?: string | undefined
  readonly name?: string | undefined
  readonly type?: SessionInfo['type']
  /** Overrides the model of the agent definition. */
  readonly model?: string | undefined
  readonly reasoningEffort?: string | undefined
  readonly speed?: 'normal' | 'fast' | undefined
  /** Overrides the permission mode of the agent. */
  readonly permissions?: PermissionMode | undefined
  /** Required sandbox profile; `none`: no sandbox. Default: the configuration. */
  readonly sandbox?: string | undefined
  /** No person waits for the session, as in the run of a job. */
  readonly unattended?: boolean
  /** ID of the session whose agent starts this one. */
  readonly parent?: string | undefined
  /** Origin of the session, shown to people. */
  readonly lineage?: SessionLineage | undefined
  /** The part of its workspace and definition that the session may use; default: all. */
  readonly rights?: SessionRights | undefined
  /** Requested participation in the network; default: none. */
  readonly participation?: ParticipationRequest | null | undefined
  /** Replaces the folders of the workspace. */
  readonly worktree?: (SessionWorktree & Partial<Pick<WorktreeInUse, 'warnings'>>) | undefined
  readonly actor: Actor
  /** ID of the event or request that led to it. */
  readonly cause?: string | undefined
}

/** The outcome of a turn. */
export type TurnOutcome =
  | {
      readonly status: 'completed'
      readonly turnId: string
      readonly stopReason: string
      /** Questions of the agent that expired without an answer; each was rejected once. Absent: none. */
      readonly expired?: number
    }
  | { readonly status: 'canceled'; readonly turnId: string }
  | {
      readonly status: 'failed'
      readonly turnId: string
      readonly error: string
      readonly failure: SessionFailure
      /** The agent failed, not only the turn: its session was stopped. A later prompt may have restarted it since. */
      readonly stopped?: true
    }

/** A prompt of another plugin. */
export interface SessionPrompt {
  readonly text: string
  /** Origin of the prompt, recorded with the turn: `automation`. */
  readonly source: string
  readonly cause?: string | undefined
  /** The person outside of the daemon who wrote the prompt. The journal records this person, and the agent sees the name. */
  readonly onBehalfOf?: PromptedFor | undefined
  /** IDs of files that {@link SessionsApi.attach} stored in the session. */
  readonly attachments?: readonly string[] | undefined
}

/** A person as an external platform identifies them. */
export interface PromptedFor {
  readonly id: string
  readonly name: string
  /** The platform of the message: `slack`. */
  readonly via: string
}

/** Events of a session under their names on the wire, ascending. */
export interface FollowedPage {
  readonly events: readonly SessionEvent[]
  /** Position of the next page. */
  readonly next: number
  /** Sequence of the newest stored event. */
  readonly last: number
  /** The session is stopped or deleted, and all of its events were read. */
  readonly isOver: boolean
}

/** The turn of a queued prompt, and the journal sequence of its first event. */
export interface QueuedTurn {
  readonly turnId: string
  readonly from: number
}

/** The sessions API for other plugins. */
export interface SessionsApi extends SessionTaps {
  readonly uses: SessionUses
  /** Activity of sessions on earlier days, for overviews. */
  readonly past: SessionPast
  /** Hooks of sessions: notifications, and gates that can refuse. */
  readonly points: SessionPoints
  get(id: string): SessionInfo | undefined
  /** A session of the catalog or of the archive. @throws Fault `archive_missing`, `archive_damaged` */
  lookup(id: string): Promise<SessionInfo | undefined>
  /** A session in the form of a reply; undefined without it. */
  shown(id: string): Session | undefined
  /** Name of the default agent: that of the workspace, else `defaults.agent`. */
  agentFor(workspaceId?: string): string
  /** Sessions that are not stopped, in no particular order. */
  unstopped(): SessionInfo[]
  /** Stopped sessions that a prompt restarts, of one agent or all, in no particular order. */
  resumable(agent?: string): SessionInfo[]
  /** Health in the form of the contract; computed without a request to the agent. */
  healthOf(id: string): SessionHealth | undefined
  /** The CLI command that answers the oldest pending request of a session; undefined when none is pending. */
  answerTo(id: string): string | undefined
  /**
   * The pending requests of all sessions and the inbox items of other plugins, oldest first.
   * @param most maximum per kind of other plugins; default: the number that `svc inbox` shows
   */
  inbox(most?: number): readonly InboxItem[]
  /** Sessions with an unseen end of a turn, without archived ones; newest first, at most 10,000. */
  finished(): readonly FinishedSession[]
  /** Whether a viewer shows the session on a focused surface now. */
  isWatched(id: string): boolean
  /** Resolves when the session is stored (state active, no process yet). Throws 503 draining, 409 `session_limit`, 404/422 of workspace and agent. */
  create(request: CreateSession): Promise<SessionInfo>
  /**
   * Runs one prompt turn to its end; starts the process when there is none. A failed turn is an outcome, not an error. Errors that
   * prevent the start are thrown: 404, 409 `session_stopped`, `session_busy`, `session_limit`.
   */
  run(id: string, prompt: SessionPrompt): Promise<TurnOutcome>
  /** Like {@link run}, but resolves when the turn has begun; `outcome` rejects only when the turn cannot be stored. */
  begin(id: string, prompt: SessionPrompt): Promise<{ readonly turnId: string; readonly outcome: Promise<TurnOutcome> }>
  /**
   * Queues a prompt of another plugin behind the running turn and the queue, once per key. Throws the same faults as a person's
   * prompt.
   */
  queue(id: string, prompt: SessionPrompt & { readonly key: string }): Promise<QueuedTurn>
  /** Begins the next waiting prompt of a session, for a queue that a restart left waiting. */
  continueQueue(id: string): Promise<void>
  /** Events of a session from a sequence on. Resolves when there are some, when none will follow, or when the signal aborts. */
  follow(id: string, from: number, signal: AbortSignal): Promise<FollowedPage>
  /** Stores a file for prompts of a session; resolves to its ID. Throws 400, 413 and 415 as an upload does. */
  attach(id: string, file: { readonly name: string; readonly type: string; readonly data: Buffer }): Promise<string>
  /** The pending requests of a session, permission requests first. */
  requests(id: string): readonly InboxQuestion[]
  /** Answers a permission request; resolves to whether it was allowed in the end. Throws `permission_not_found`. */
  answer(id: string, answer: ApproveBody, actor: Actor): Promise<boolean>
  /**
   * Answers a question of the agent. Throws `clarification_not_found` (404), `clarification_answered` (409),
   * `clarification_invalid` (400).
   */
  clarify(id: string, requestId: string, answer: AnswerClarificationBody): void
  /**
   * Runs `work` while no turn runs and none can begin. Throws 404, 409 `session_busy`, and `session_stopped` when it cannot
   * restart.
   */
  whileIdle<T>(id: string, work: (session: IdleSession) => Promise<T>): Promise<T>
  /** Records a hook run in the journal of a session, unless it has ended; `content` has a `text` for people. */
  noteHookRun(id: string, content: EventContent): void
  /** Asks a person in the stream of the running turn; undefined without a turn, or with too many pending questions. */
  ask(id: string, question: SessionQuestion): AskedQuestion | undefined
  /** Git worktrees used by sessions. */
  readonly worktrees: SessionWorktrees
  /**
   * Sets, replaces or removes the guard of an owner on a session. While at least one guard is set, the agent is made to ask. Owners
   * refuse operations in `permission` and `toolPreCall`, which ask plugins in load order; the first refusal counts. Resolves when
   * the agent has switched; {@link unguarded} lists agents that cannot be made to ask.
   */
  guard(id: string, owner: string, guard: SessionGuard | undefined): Promise<void>
  /** Sessions whose running agent cannot be made to ask for a guard that an owner set after its start, with the reason. */
  unguarded(owner: string): readonly { readonly session: SessionInfo; readonly why: string }[]
  /** Cancels the running turn, if any; resolves when it has ended, or after a time limit. */
  interrupt(id: string): Promise<void>
  /**
   * Removes the session of a deleted run, with its history. `kept`: it continued after the end of the run, or a person archived it.
   * `referred`: a fork, an attached person or a task still refers to it.
   */
  retire(id: string, endedAt: number): Promise<'removed' | 'kept' | 'referred'>
  /** Idempotent; resolves when the process group is gone and the stop is durable. */
  stop(
    id: string,
    how: { readonly reason: StopReason; readonly detail?: string; readonly cause?: string | undefined },
  ): Promise<void>
}

/** A session with an unseen end of a turn. */
export interface FinishedSession {
  readonly session: SessionInfo
  /** Epoch milliseconds of the first unseen end. */
  readonly at: number
}

/** Confinement of the processes of a session, or the reason for which a required one is missing. */
export type SessionConfinement =
  | { readonly kind: 'sandbox'; readonly backend: string; readonly profile: string; readonly network: 'host' | 'none' }
  | { readonly kind: 'none'; readonly reason: string }

/** A session before it is stored. */
export interface NewSession {
  readonly session: SessionInfo
  readonly permissions: PermissionMode
  /** Sandbox profile requested by name; `none`: no sandbox. */
  readonly sandbox: string | undefined
  readonly unattended: boolean
  /** ID of the session whose agent starts this one. */
  readonly parent: string | undefined
  /** Key of the extension that provides the agent's command. */
  readonly broughtBy: string | undefined
  /** Sets the confinement. Without a call there is none, and a session that requires a sandbox is refused. */
  confine(how: SessionConfinement): void
}

/** A command of a session: that of its agent, or of one of its terminals. */
export interface SessionCommand {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** The process of a session's agent before it is started. */
export interface SessionLaunch extends SessionCommand {
  readonly session: SessionInfo
  readonly provider: Provider
  /** Canonical folders in which the agent works; the first one is that of the workspace. */
  readonly roots: readonly string[]
  /** MCP servers that the agent starts itself, in the form of the protocol. */
  readonly mcpServers: readonly unknown[]
  /** The confinement that was decided when the session was made. */
  readonly confinement: SessionConfinement | undefined
  /** Changes every command of the session before its start, including those of terminals. */
  around(change: (command: SessionCommand) => SessionCommand): void
  /** Forbids writes of the daemon for the agent to these absolute, canonical paths, which need not exist. */
  protect(paths: readonly string[]): void
  /** Sets the visibility of absolute paths in the sandbox: visible paths count as inside the workspace. */
  sees(how: (file: string) => Sight): void
  /** Runs after the end of the process and its group; a failure is logged. Terminals may run on until the session stops. */
  afterwards(work: () => Promise<void>): void
}

/** The start parameters of an agent process. */
export interface SessionStart {
  readonly env: Readonly<Record<string, string>>
  readonly mcpServers: readonly unknown[]
  /** Text before the first prompt. */
  readonly preamble: string
}

export const Sessions = token<SessionsApi>('sessions@1')

/** Contributes reasons other than prompts for which a session wakes, for the session view. */
export interface WakeSource {
  readonly read: (
    sessionId: string,
    withEvents: boolean,
  ) => Promise<Partial<Omit<InspectSessionReply, 'session_id' | 'health'>>>
}

export const WakeSources = registry<WakeSource>('sessions.wakes@1', v.looseObject({ read: v.function() }))

/**
 * Contributes a part of the instructions of an agent besides its definition. It is read when a session begins and stays with it.
 */
export interface Briefing {
  /** Unique among all contributors. */
  readonly name: string
  /** Called before a session is stored; undefined: no text. An error refuses the session. */
  readonly read: (session: SessionInfo, workspace: Workspace) => Promise<string | undefined>
}

export const SessionBriefings = registry<Briefing>(
  'sessions.briefings@1',
  v.looseObject({ name: v.string(), read: v.function() }),
)
