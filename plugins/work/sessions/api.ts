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
import type { EventContent } from './events.js'
import type { SessionWorktree, SessionWorktrees, WorktreeInUse } from './fork/api.js'
import type { SessionUses } from './journal/uses.js'
import type { IdleSession, SessionPoints, SessionTaps } from './points.js'
import type { SessionPast } from './read/past.js'
import type { Sight } from './requests/paths.js'
import type { AskedQuestion, SessionQuestion } from './requests/session-question.js'
import type { SessionRights } from './rights.js'

export { SessionErrors } from './errors.js'
export type * from './fork/api.js'
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
export * from './requests/session-question.js'
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
  /** Undefined: nothing was said of a sandbox when it was made. */
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
  /** Default: the workspace's, else `defaults.agent`. */
  readonly agentName?: string | undefined
  readonly name?: string | undefined
  readonly type?: SessionInfo['type']
  /** Instead of the definition's. */
  readonly model?: string | undefined
  readonly reasoningEffort?: string | undefined
  readonly speed?: 'normal' | 'fast' | undefined
  /** Instead of the mode of the agent. */
  readonly permissions?: PermissionMode | undefined
  /** Profile of the sandbox that it has to run in; `none`: in none. Default: as the configuration says. */
  readonly sandbox?: string | undefined
  /** No person waits for it: a job starts it. */
  readonly unattended?: boolean
  /** Id of the session whose agent starts it. */
  readonly parent?: string | undefined
  /** Where it comes from, as it is shown. */
  readonly lineage?: SessionLineage | undefined
  /** What of its workspace and of its definition it has; default: all. */
  readonly rights?: SessionRights | undefined
  /** How it takes part in the network; default: not at all. */
  readonly participation?: ParticipationRequest | null | undefined
  /** Instead of the folders of the workspace. */
  readonly worktree?: (SessionWorktree & Partial<Pick<WorktreeInUse, 'warnings'>>) | undefined
  readonly actor: Actor
  /** Id of the event or request that led to it. */
  readonly cause?: string | undefined
}

/** How a turn ended. */
export type TurnOutcome =
  | {
      readonly status: 'completed'
      readonly turnId: string
      readonly stopReason: string
      /** Questions of the agent that nobody answered in time; each was rejected once. Absent: none. */
      readonly expired?: number
    }
  | { readonly status: 'canceled'; readonly turnId: string }
  | { readonly status: 'failed'; readonly turnId: string; readonly error: string; readonly failure: SessionFailure }

/** A prompt of another plugin. */
export interface SessionPrompt {
  readonly text: string
  /** Who prompts, as the turn says: `automation`. */
  readonly source: string
  readonly cause?: string | undefined
  /** The person outside of the daemon for whom it is prompted: the journal says so, and the agent is told. */
  readonly onBehalfOf?: PromptedFor | undefined
  /** Ids of files that were given to the session by {@link SessionsApi.attach}. */
  readonly attachments?: readonly string[] | undefined
}

/** A person as a platform knows them. */
export interface PromptedFor {
  readonly id: string
  readonly name: string
  /** By what they wrote: `slack`. */
  readonly via: string
}

/** Events of a session under their names on the wire, ascending. */
export interface FollowedPage {
  readonly events: readonly SessionEvent[]
  /** Where the next page begins. */
  readonly next: number
  /** Sequence of the newest event that is written. */
  readonly last: number
  /** The session is stopped or deleted, and all of its events were read. */
  readonly isOver: boolean
}

/** The turn of a queued prompt, and the sequence of the journal from which on it is told. */
export interface QueuedTurn {
  readonly turnId: string
  readonly from: number
}

/** What has an agent ask before each operation, whatever its permission mode, so that a plugin can refuse; the mode answers afterwards. */
export interface SessionGuard {
  /** For people: `the required hook lint`. */
  readonly by: string
  /** The process ends with the first edit for which it did not ask; otherwise the transcript alone tells of it. */
  readonly isRequired: boolean
}

/** Sessions for other plugins. */
export interface SessionsApi extends SessionTaps {
  readonly uses: SessionUses
  /** What sessions did on earlier days, for overviews. */
  readonly past: SessionPast
  /** Where others hear of the work of sessions, and have a say. */
  readonly points: SessionPoints
  get(id: string): SessionInfo | undefined
  /** The same as a reply shows it. */
  shown(id: string): Session | undefined
  /** Name of the agent where none is named: that of the workspace, else `defaults.agent`. */
  agentFor(workspaceId?: string): string
  /** Those that are not stopped, in no order. */
  unstopped(): SessionInfo[]
  /** Stopped ones that a prompt starts again, of an agent or all; in no order. */
  resumable(agent?: string): SessionInfo[]
  /** As the contract has it; nothing of it is asked of the agent. */
  healthOf(id: string): SessionHealth | undefined
  /** The command that answers the oldest pending request of a session, if one is pending. */
  answerTo(id: string): string | undefined
  /**
   * The pending requests of all sessions, and what other plugins contribute to the inbox; the oldest first.
   * @param most of each kind of other plugins; default: those that `svc inbox` shows
   */
  inbox(most?: number): readonly InboxItem[]
  /** Sessions in which something ended that nobody has seen, archived ones left out; the newest first, at most 10,000. */
  finished(): readonly FinishedSession[]
  /** Whether a viewer has it on a focused surface now. */
  isWatched(id: string): boolean
  /** Resolves when the session is stored (state active, no process yet). Throws 503 draining, 409 `session_limit`, 404/422 of workspace and agent. */
  create(request: CreateSession): Promise<SessionInfo>
  /**
   * Runs one prompt turn to its end; starts the process when there is none. A turn that fails is an outcome, not a throw;
   * what keeps it from beginning is thrown: 404, 409 `session_stopped`, `session_busy`, `session_limit`.
   */
  run(id: string, prompt: SessionPrompt): Promise<TurnOutcome>
  /** The same, resolving when the turn has begun; `outcome` never rejects unless the turn cannot be written down. */
  begin(id: string, prompt: SessionPrompt): Promise<{ readonly turnId: string; readonly outcome: Promise<TurnOutcome> }>
  /** Queues a prompt of another plugin behind what runs and waits, once for each key. Throws what a prompt of a person does. */
  queue(id: string, prompt: SessionPrompt & { readonly key: string }): Promise<QueuedTurn>
  /** Begins the next prompt that waits in a session, where a restart left it waiting. */
  continueQueue(id: string): Promise<void>
  /** Events of a session from a sequence on; resolves when there are some, when none will come, or when the signal aborts. */
  follow(id: string, from: number, signal: AbortSignal): Promise<FollowedPage>
  /** Stores a file for prompts of a session; resolves to its id. Throws 400, 413 and 415 as an upload does. */
  attach(id: string, file: { readonly name: string; readonly type: string; readonly data: Buffer }): Promise<string>
  /** The requests of a session that wait for a person, those for permission first. */
  requests(id: string): readonly InboxQuestion[]
  /** Answers a request for permission; resolves to whether it was allowed in the end. Throws `permission_not_found`. */
  answer(id: string, answer: ApproveBody, actor: Actor): Promise<boolean>
  /** Answers a question in words. Throws `clarification_not_found` (404), `clarification_answered` (409), `clarification_invalid` (400). */
  clarify(id: string, requestId: string, answer: AnswerClarificationBody): void
  /** Does something while no turn runs and none can begin. Throws 404, 409 `session_busy`, and `session_stopped` for good. */
  whileIdle<T>(id: string, work: (session: IdleSession) => Promise<T>): Promise<T>
  /** Writes into the journal of a session, if it goes on, that a hook was run; `content` has a `text` for people. */
  noteHookRun(id: string, content: EventContent): void
  /** Asks a person in the stream of the running turn; undefined where none runs, or too many questions wait. */
  ask(id: string, question: SessionQuestion): AskedQuestion | undefined
  /** Git worktrees that sessions work in. */
  readonly worktrees: SessionWorktrees
  /**
   * Puts an agent that runs under a guard of an owner, instead of the one that it has of it: it is kept asking from now on, or no longer
   * where this was the last one. What an owner wants to refuse, it refuses in `permission` and `toolPreCall`, which ask plugins in the
   * order in which they were loaded; the first refusal is the answer. Resolves when the agent has taken it; {@link unguarded} tells of
   * one that cannot be kept asking.
   */
  guard(id: string, owner: string, guard: SessionGuard | undefined): Promise<void>
  /** Sessions whose running agent cannot be kept asking by a guard of an owner that came after its start, and why. */
  unguarded(owner: string): readonly { readonly session: SessionInfo; readonly why: string }[]
  /** Cancels the turn that runs, if one does; resolves when it has ended, or after a while. */
  interrupt(id: string): Promise<void>
  /**
   * Removes the session of a run that was removed, with its history. `kept`: it went on after the end of the run, or a person
   * archived it. `referred`: something refers to it for now, as a fork, a person who is attached or a task.
   */
  retire(id: string, endedAt: number): Promise<'removed' | 'kept' | 'referred'>
  /** Idempotent; resolves when the process group is gone and the stop is durable. */
  stop(
    id: string,
    how: { readonly reason: StopReason; readonly detail?: string; readonly cause?: string | undefined },
  ): Promise<void>
}

/** A session in which something ended that nobody has seen. */
export interface FinishedSession {
  readonly session: SessionInfo
  /** Epoch milliseconds of the first such end. */
  readonly at: number
}

/** How the processes of a session are confined, or why they are not although they should be. */
export type SessionConfinement =
  | { readonly kind: 'sandbox'; readonly backend: string; readonly profile: string; readonly network: 'host' | 'none' }
  | { readonly kind: 'none'; readonly reason: string }

/** A session that is about to be made. */
export interface NewSession {
  readonly session: SessionInfo
  readonly permissions: PermissionMode
  /** Profile that was asked for by name; `none`: no sandbox. */
  readonly sandbox: string | undefined
  readonly unattended: boolean
  /** Id of the session whose agent starts it. */
  readonly parent: string | undefined
  /** Key of the extension that brings the command of its agent. */
  readonly broughtBy: string | undefined
  /** Says how it is confined. Without a word it is not, and one for which a sandbox was asked is refused. */
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
  /** Canonical folders that the agent works in; the first one is that of the workspace. */
  readonly roots: readonly string[]
  /** Servers that the agent starts itself, as the protocol has them. */
  readonly mcpServers: readonly unknown[]
  /** As it was decided when the session was made. */
  readonly confinement: SessionConfinement | undefined
  /** Changes every command of the session before it is started, those of terminals included. */
  around(change: (command: SessionCommand) => SessionCommand): void
  /** The agent may not have the daemon write these files and folders either, which need not exist; absolute, canonical. */
  protect(paths: readonly string[]): void
  /** Tells what a sandbox shows of an absolute path: what it shows counts as inside of the workspace. */
  sees(how: (file: string) => Sight): void
  /** Runs when the process and its group have ended; a failure is logged. Terminals may run on until the session stops. */
  afterwards(work: () => Promise<void>): void
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

export const WakeSources = registry<WakeSource>('sessions.wakes@1', v.looseObject({ read: v.function() }))

/** Contributes a part of what agents are told besides their definitions. It is read when a session begins and stays with it. */
export interface Briefing {
  /** Its own among all contributors. */
  readonly name: string
  /** Of a session that is about to be made; undefined: nothing. What it throws refuses the session. */
  readonly read: (session: SessionInfo, workspace: Workspace) => Promise<string | undefined>
}

export const SessionBriefings = registry<Briefing>(
  'sessions.briefings@1',
  v.looseObject({ name: v.string(), read: v.function() }),
)
