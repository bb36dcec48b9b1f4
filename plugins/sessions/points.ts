import type { Hook, Tx } from '../../kernel/plugin.js'
import type { SessionInfo, StopReason } from './api.js'
import type { EventContent, SessionEventType } from './events.js'

/** A value that taps hand on; with `deny`, the reason in words, what is asked about is refused. */
export interface Deniable {
  readonly deny?: string
}

/** What a session is made of, before it is. */
export interface SessionWish extends Deniable {
  /** Empty for none. */
  readonly sessionName: string
  readonly agentName: string
  readonly sessionType: SessionInfo['type']
  /** Cannot be changed where {@link isPlaced}. */
  readonly workspaceId: string
  /** Whether the workspace is fixed: the session continues a worktree or has its rights from another session. */
  readonly isPlaced: boolean
  /** Id of the event or request that led to it. */
  readonly cause?: string | undefined
}

/** The text of a prompt as it was sent. */
export interface Input extends Deniable {
  readonly message: string
  /** Who prompts: `user`, `automation`, `goal` … */
  readonly source?: string
  /** Texts that the agent is given before the message, in this order. */
  readonly contextBlocks?: readonly string[]
}

/** The texts that an agent is given: what it has to know first, and at the end the prompt itself. */
export interface AssembledPrompt extends Deniable {
  readonly texts: readonly string[]
  /** Who prompts, as in {@link Input}. */
  readonly source?: string
  /** Texts between the last of {@link texts} and those before it. */
  readonly contextBlocks?: readonly string[]
}

/** A stopped session that is about to start again; a tap can rename it. */
export interface ResumeWish extends Deniable {
  readonly sessionName?: string
}

/** A session that is about to be stopped. */
export interface StopWish extends Deniable {
  readonly reason: StopReason
  /** Whether a tap may refuse the stop: a request caused it, not a crash, a limit or a shutdown. */
  readonly isRefusable: boolean
}

/** The command of an agent; `cwd` stays in the folders of the session. */
export interface AgentCommandLine extends Deniable {
  readonly argv: readonly string[]
  readonly cwd: string
  /**
   * What has to be asked before each operation, for people. The agent is kept asking, whatever its permission mode, and the mode
   * answers afterwards; an agent that cannot be kept asking is not started.
   */
  readonly guardedBy?: string
}

/** What an agent has the daemon do for it: a file read or written, a command run. */
export interface ClientCall extends Deniable {
  readonly kind: 'read' | 'edit' | 'execute'
  /** The path, or the command and its arguments. */
  readonly title: string
  /** Of a command, which may become another one; it is judged afterwards as if the agent had asked for it. */
  readonly argv?: readonly string[]
}

/** A permission that is about to be granted, or that a person is about to be asked for. */
export interface PermissionAsked {
  readonly sessionId: string
  /** Of ACP: `read`, `edit`, `execute` … */
  readonly toolKind: string
  readonly title: string
  /** Of a command, as far as the agent tells it. */
  readonly command?: string
  /** Adds a second kind for the permission mode; the request is granted only if the mode allows both kinds. */
  judgeAs(toolKind: string): void
}

/** A worktree that is to be made for a fork. */
export interface WorktreeWish extends Deniable {
  /** Of the repository. */
  readonly root: string
  readonly name: string
}

/** A worktree that a session goes on in. */
export interface WorktreeTold {
  readonly name: string
  readonly folder: string
}

/** What was written into the journal of a session; texts come whole, not in the pieces that an agent sends. */
export interface Recorded {
  readonly sessionId: string
  readonly type: SessionEventType
  /** Empty outside of turns. */
  readonly turnId: string
  readonly content: EventContent
  /** Who prompted the turn, at its start and end: `user`, `automation`, `goal` … */
  readonly source?: string
  /** Of what is in the journal: its place there. */
  readonly sequence?: number
  /** The turn failed because the agent process failed. */
  readonly isCrash?: true
}

/** Events of a journal, ascending, and where the next page begins. */
export interface RecordedPage {
  readonly events: readonly { readonly type: string; readonly turnId: string; readonly content: EventContent }[]
  readonly next: number
}

/** A session of which no turn runs and none begins. */
export interface IdleSession {
  /** Replaces a part of its briefing; its agent is told with the next prompt. */
  brief(t: Tx, name: string, text: string): void
}

type Told = Hook<(event: Recorded) => unknown>

/** Points at which other plugins hear of the work of sessions, named after the events that programs hook. No token of a text is one. */
export interface SessionPoints {
  /** `session.pre_create`: name, agent, type and workspace may be changed, and the session refused. */
  readonly preCreate: Hook<(wish: SessionWish) => SessionWish | undefined | Promise<SessionWish | undefined>>
  /** `session.post_create`: a session is stored. */
  readonly postCreate: Hook<(session: SessionInfo) => unknown>
  /** `session.pre_resume`: a stopped session is about to be started again, and may be renamed or refused. */
  readonly preResume: Hook<
    (wish: ResumeWish, session: SessionInfo) => ResumeWish | undefined | Promise<ResumeWish | undefined>
  >
  /** `session.post_resume`: its agent runs again. */
  readonly postResume: Hook<(session: SessionInfo) => unknown>
  /** `session.pre_stop`: a session is about to be stopped. A stop that somebody asks for may be refused. */
  readonly preStop: Hook<(wish: StopWish, session: SessionInfo) => StopWish | undefined | Promise<StopWish | undefined>>
  /** `session.runtime_recovery.started`: the agent of an interrupted session is started again. */
  readonly recoveryStarted: Hook<(session: SessionInfo) => unknown>
  /** `session.runtime_recovery.succeeded`: it runs. */
  readonly recoverySucceeded: Hook<(session: SessionInfo) => unknown>
  /** `session.runtime_recovery.exhausted`: it did not start. */
  readonly recoveryExhausted: Hook<(session: SessionInfo) => unknown>
  /** `session.attention.changed`: a session has begun, or ceased, to want to be looked at. */
  readonly attentionChanged: Hook<(session: SessionInfo, wanted: boolean) => unknown>
  /** `session.message_persisted`: a message of a person or of the agent is in the journal. */
  readonly messagePersisted: Told
  /** `input.pre_submit`: the text of a prompt may be changed, context added, and the prompt refused. */
  readonly inputPreSubmit: Hook<(input: Input, session: SessionInfo) => Input | undefined | Promise<Input | undefined>>
  /** `prompt.post_assemble`: what the agent is given may be changed, and the turn refused. */
  readonly promptPostAssemble: Hook<
    (
      prompt: AssembledPrompt,
      session: SessionInfo,
    ) => AssembledPrompt | undefined | Promise<AssembledPrompt | undefined>
  >
  /** `event.pre_record`: an event is about to be written into the journal. */
  readonly eventRecording: Told
  /** `event.post_record`: an event is in the journal. */
  readonly eventRecorded: Told
  /** `agent.pre_start`: command and folder may be changed, and the start refused. */
  readonly agentPreStart: Hook<
    (
      command: AgentCommandLine,
      session: SessionInfo,
    ) => AgentCommandLine | undefined | Promise<AgentCommandLine | undefined>
  >
  /** `agent.spawned`: the process of an agent runs. */
  readonly agentSpawned: Hook<(session: SessionInfo, pid: number) => unknown>
  /** `agent.crashed`: a session stopped because its agent ended. */
  readonly agentCrashed: Hook<(session: SessionInfo) => unknown>
  /** `agent.stopped`: the process of an agent has ended, for whatever reason. */
  readonly agentStopped: Hook<(session: SessionInfo) => unknown>
  /**
   * The process of a session did not pass a check: it stands still. How often in a row, and whether that was the last look
   * before the daemon ends it.
   */
  readonly healthCheckFailed: Hook<(session: SessionInfo, failures: number, isLast: boolean) => unknown>
  /** `turn.start`: the prompt of a turn is in the journal. */
  readonly turnStart: Told
  /** `turn.end`: a turn is over; type `done` or `error`. */
  readonly turnEnd: Told
  /** `message.start`: the first piece of a message of the agent is in the journal. */
  readonly messageStart: Told
  /** `message.delta`: a piece of it is. */
  readonly messageDelta: Told
  /** Reads a journal from a sequence on, once that is in the file. Throws `session_journal_damaged`. */
  readonly journal: (sessionId: string, from: number, signal: AbortSignal) => Promise<RecordedPage>
  /** `message.end`: a message of the agent is whole; the first 64 Ki characters of it. */
  readonly messageEnd: Told
  /** `tool.pre_call`: a file or a command that the agent has the daemon touch or run for it may be refused, and the command changed. */
  readonly toolPreCall: Hook<
    (call: ClientCall, session: SessionInfo) => ClientCall | undefined | Promise<ClientCall | undefined>
  >
  /** `tool.post_call`: a tool call ended well. */
  readonly toolPostCall: Told
  /** `tool.post_error`: a tool call failed. */
  readonly toolPostError: Told
  /** `permission.resolved`: a request for permission was answered. */
  readonly permissionResolved: Told
  /** `permission.denied`: the answer was no. */
  readonly permissionDenied: Told
  /** `context.post_compact`: the agent has shortened what it remembers. */
  readonly contextCompacted: Told
  /** `worktree.pre_create`: a worktree for a fork may be refused. */
  readonly worktreePreCreate: Hook<
    (wish: WorktreeWish, session: SessionInfo) => WorktreeWish | undefined | Promise<WorktreeWish | undefined>
  >
  /** `worktree.created`: a session goes on in a worktree that was made for it. */
  readonly worktreeCreated: Hook<(worktree: WorktreeTold, session: SessionInfo) => unknown>
  /** `worktree.adopted`: the same in one that was there. */
  readonly worktreeAdopted: Hook<(worktree: WorktreeTold, session: SessionInfo) => unknown>
  /** `worktree.pre_remove`: a worktree is about to be taken away again; it stays until everybody has heard. */
  readonly worktreePreRemove: Hook<
    (worktree: WorktreeTold, session: SessionInfo) => WorktreeTold | undefined | Promise<WorktreeTold | undefined>
  >
  /** `worktree.removed`: a worktree was taken away again, because the fork failed. */
  readonly worktreeRemoved: Hook<(worktree: WorktreeTold, session: SessionInfo) => unknown>
}
