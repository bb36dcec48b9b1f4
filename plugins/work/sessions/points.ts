import { gate, type HooksOf, hookTable, notify, pipeline, type TapsOf, type Tx } from '../../../kernel/plugin.js'
import type { SessionHealth } from '../../../schemas/sessions.js'
import type { ClientCall, EventContent, OperationAsked } from '../acp/api.js'
import type { NewSession, SessionInfo, SessionLaunch, SessionStart, StopReason } from './api.js'
import type { SessionEventType } from './events.js'
import type { SessionUse } from './journal/uses.js'

export type { ClientCall, OperationAsked }

/** A value that taps pass on; `deny` refuses the operation, with the reason in words. */
export interface Deniable {
  readonly deny?: string
}

/** The properties of a session before it is stored. */
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
  /** Source of the prompt: `user`, `automation`, `goal` … */
  readonly source?: string
  /** Texts for the agent before the message, in this order. */
  readonly contextBlocks?: readonly string[]
}

/** The texts for an agent: instructions first, the prompt itself last. */
export interface AssembledPrompt extends Deniable {
  readonly texts: readonly string[]
  /** Source of the prompt, as in {@link Input}. */
  readonly source?: string
  /** Texts inserted before the last of {@link texts}. */
  readonly contextBlocks?: readonly string[]
  /** Members of `_meta` of the prompt request. */
  readonly meta?: Readonly<Record<string, string>>
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
   * Descriptions of guards for people, by the plugin that answers. With a guard the agent is made to ask in every permission mode,
   * and the mode decides afterwards; an agent that cannot be made to ask is not started.
   */
  readonly guardedBy?: Readonly<Record<string, string>>
  /** A guard may be set later: an agent that can be set to ask only at its start is started in that way. */
  readonly isGuardable?: true
}

/** A permission before it is granted, or before a person is asked. */
export interface PermissionAsked extends OperationAsked {
  readonly sessionId: string
  /** Allows this request once where the mode would ask a person; a refusal by another tap wins. */
  allow(): void
  /** Adds a second tool kind; the request is granted only if the mode allows both kinds. */
  judgeAs(toolKind: string): void
}

/** A worktree before it is made for a fork. */
export interface WorktreeWish extends Deniable {
  /** Root of the repository. */
  readonly root: string
  readonly name: string
}

/** The worktree of a session that continues there. */
export interface WorktreeTold {
  readonly name: string
  readonly folder: string
}

/** An event written to the journal of a session; texts are whole, not the chunks of the agent. */
export interface Recorded {
  readonly sessionId: string
  readonly type: SessionEventType
  /** Empty outside of turns. */
  readonly turnId: string
  readonly content: EventContent
  /** Source of the turn, at its start and end: `user`, `automation`, `goal` … */
  readonly source?: string
  /** Sequence in the journal, for stored events. */
  readonly sequence?: number
  /** At the start of a turn: ID of the event or request that led to it. */
  readonly cause?: string
  /** The turn failed because the agent process failed. */
  readonly isCrash?: true
}

/** Events of a journal, ascending, and the position of the next page. */
export interface RecordedPage {
  readonly events: readonly { readonly type: string; readonly turnId: string; readonly content: EventContent }[]
  readonly next: number
}

/** A session without a running or starting turn. */
export interface IdleSession {
  /** Replaces a part of its briefing; the agent gets the new text with the next prompt. */
  brief(t: Tx, name: string, text: string): void
}

/** Milliseconds for a decision about a sandbox: the first one probes whether a sandbox works. */
const confine = { deadlineMs: 30_000 }
/** Milliseconds for decisions of hook programs; the plugin that runs them limits each one. */
const decide = { deadlineMs: 600_000 }

/** The hooks of sessions, most of them named after the events of hook programs. Single text tokens are not events. */
export const points = hookTable({
  stopped: notify<[session: SessionInfo]>('sessions.stopped', 'A session is stopped, durably.'),
  permission: gate<[request: PermissionAsked]>(
    'sessions.permission',
    'Before a permission is granted by a mode or a person. A refusal rejects it once.',
    decide,
  ),
  creating: gate<[session: NewSession]>(
    'sessions.creating',
    'Before a session is made: a tap says how it is confined. A refusal, or a tap that fails, refuses the session.',
    confine,
  ),
  launching: gate<[launch: SessionLaunch]>(
    'sessions.launching',
    'Before a process is started for a session. A refusal, or a tap that fails, keeps it from starting.',
    confine,
  ),
  prepare: pipeline<SessionStart, [session: SessionInfo]>(
    'sessions.prepare',
    'Before a process is started for a session. A tap may change what it is started with.',
  ),
  healthUpdated: notify<[health: SessionHealth]>(
    'sessions.health.updated',
    'The health of a session has changed; of each session at most once in the time that `HealthTimings` gives.',
  ),
  preCreate: pipeline<SessionWish>(
    'session.pre_create',
    'Before a session is created. A tap may change name, agent, type and workspace, and refuse the session.',
    decide,
  ),
  postCreate: notify<[session: SessionInfo]>('session.post_create', 'After a session was created.'),
  preResume: pipeline<ResumeWish, [session: SessionInfo]>(
    'session.pre_resume',
    'Before a stopped session is resumed. A tap may rename it, and refuse the start.',
    decide,
  ),
  postResume: notify<[session: SessionInfo]>('session.post_resume', 'After the agent of a resumed session started.'),
  retiring: gate<[session: SessionInfo]>(
    'sessions.retiring',
    'Before a session is removed because the run that made it was removed. A refusal keeps it for now.',
  ),
  preStop: pipeline<StopWish, [session: SessionInfo]>(
    'session.pre_stop',
    'Before a session is stopped. A tap may refuse a stop that was requested.',
    decide,
  ),
  recoveryStarted: notify<[session: SessionInfo]>(
    'session.runtime_recovery.started',
    'When the agent of an interrupted session is restarted.',
  ),
  recoverySucceeded: notify<[session: SessionInfo]>(
    'session.runtime_recovery.succeeded',
    'After the agent of an interrupted session was restarted.',
  ),
  recoveryExhausted: notify<[session: SessionInfo]>(
    'session.runtime_recovery.exhausted',
    'After the agent of an interrupted session could not be restarted.',
  ),
  attentionChanged: notify<[session: SessionInfo, wanted: boolean]>(
    'session.attention.changed',
    'After a session started or stopped requesting attention.',
  ),
  messagePersisted: notify<[event: Recorded]>(
    'session.message_persisted',
    'After a message was written to the journal of a session.',
  ),
  inputPreSubmit: pipeline<Input, [session: SessionInfo]>(
    'input.pre_submit',
    'Before the prompt of a user is submitted. A tap may change the text, add context, and refuse the prompt.',
    decide,
  ),
  promptPostAssemble: pipeline<AssembledPrompt, [session: SessionInfo]>(
    'prompt.post_assemble',
    'After the full prompt was assembled, before it is sent to the agent. A tap may change it, and refuse the turn.',
    decide,
  ),
  eventRecording: notify<[event: Recorded]>(
    'event.pre_record',
    'Before an event is written to the journal of a session.',
  ),
  eventRecorded: notify<[event: Recorded]>(
    'event.post_record',
    'After an event was written to the journal of a session.',
  ),
  used: notify<[sessionId: string, use: SessionUse]>('sessions.used', 'The agent of a session reported usage.'),
  agentPreStart: pipeline<AgentCommandLine, [session: SessionInfo]>(
    'agent.pre_start',
    'Before the process of an agent is started. A tap may change command and folder, and refuse the start.',
    decide,
  ),
  agentSpawned: notify<[session: SessionInfo, pid: number]>('agent.spawned', 'After the process of an agent started.'),
  agentCrashed: notify<[session: SessionInfo]>(
    'agent.crashed',
    'After a session stopped because its agent process ended unexpectedly.',
  ),
  agentStopped: notify<[session: SessionInfo]>('agent.stopped', 'After the process of an agent ended, for any reason.'),
  healthCheckFailed: notify<[session: SessionInfo, failures: number, isLast: boolean]>(
    'sessions.health.check_failed',
    'The process of a session is unresponsive: `failures` checks failed in a row; after the last one the daemon ends it.',
  ),
  turnStart: notify<[event: Recorded]>('turn.start', 'When a turn starts: its prompt is in the journal.'),
  turnEnd: notify<[event: Recorded]>('turn.end', 'When a turn ends, with the type `done` or `error`.'),
  messageStart: notify<[event: Recorded]>('message.start', 'When a message starts: its first piece is in the journal.'),
  messageDelta: notify<[event: Recorded]>('message.delta', 'For each part of a message of the agent.'),
  messageEnd: notify<[event: Recorded]>('message.end', 'When a message is complete; the first 64 Ki characters of it.'),
  toolPreCall: pipeline<ClientCall, [session: SessionInfo]>(
    'tool.pre_call',
    'Before a tool call: a file or a command that the agent has the daemon touch or run. A tap may refuse it, and change the command.',
    decide,
  ),
  toolPostCall: notify<[event: Recorded]>(
    'tool.post_call',
    'After a tool call succeeded: one that the agent reported, or that the daemon carried out for it, which is in no journal.',
  ),
  toolPostError: notify<[event: Recorded]>(
    'tool.post_error',
    'After a tool call failed: one that the agent reported, or that the daemon was to carry out for it.',
  ),
  permissionResolved: notify<[event: Recorded]>('permission.resolved', 'After a permission request was answered.'),
  permissionDenied: notify<[event: Recorded]>('permission.denied', 'After a permission request was denied.'),
  contextCompacted: notify<[event: Recorded]>('context.post_compact', 'After the context of an agent was compacted.'),
  worktreePreCreate: pipeline<WorktreeWish, [session: SessionInfo]>(
    'worktree.pre_create',
    'Before a worktree is created for a forked session. A tap may refuse it.',
    decide,
  ),
  worktreeCreated: notify<[worktree: WorktreeTold, session: SessionInfo]>(
    'worktree.created',
    'After a worktree was created for a session.',
  ),
  worktreeAdopted: notify<[worktree: WorktreeTold, session: SessionInfo]>(
    'worktree.adopted',
    'After a session adopted an existing worktree.',
  ),
  worktreePreRemove: pipeline<WorktreeTold, [session: SessionInfo]>(
    'worktree.pre_remove',
    'Before a worktree is removed; it stays until every tap has answered.',
    decide,
  ),
  worktreeRemoved: notify<[worktree: WorktreeTold, session: SessionInfo]>(
    'worktree.removed',
    'After a worktree was removed, because the fork failed.',
  ),
})

export type SessionHooks = HooksOf<typeof points>

/** The hooks that {@link SessionsApi} exposes directly. */
export type SessionTaps = Pick<
  TapsOf<typeof points>,
  'stopped' | 'healthUpdated' | 'permission' | 'creating' | 'launching' | 'prepare'
>

export interface SessionPoints extends TapsOf<typeof points> {
  /** Reads a journal from a sequence on, once that sequence is on disk. Throws `session_journal_damaged`. */
  readonly journal: (sessionId: string, from: number, signal: AbortSignal) => Promise<RecordedPage>
}
