/** `svc/plugins/hooks`: programs and functions that are run when something happens, and have a say in it. */
import {
  type Awaitable,
  defineErrors,
  type GateTap,
  type GuardTap,
  type Hook,
  registry,
  token,
} from '../../kernel/plugin.js'
import type { HookEvent } from '../../schemas/hooks.js'
import type { SessionInfo } from '../sessions/api.js'
import type { Workspace } from '../workspaces/api.js'
import type { HookSpec } from './hook-kind.js'
import type { HookRun } from './runs.js'

export { HookKind, type HookSpec, specOf as hookSpecOf } from './hook-kind.js'
export type { HookRun } from './runs.js'

/** Where hooks come from, in the order in which they run; a stronger source hides a hook of the same name and event. */
export const HOOK_SOURCES = ['native', 'config', 'extension', 'agent_definition', 'skill'] as const
export type HookSource = (typeof HOOK_SOURCES)[number]

/** What happened, or is about to: JSON, with the members that the event has. */
export type HookPayload = Readonly<Record<string, unknown>>

/** A hook that is a function of a plugin. It may dispatch in its turn, three deep at most. */
export interface NativeHook
  extends Pick<HookSpec, 'name' | 'event'>,
    Partial<Pick<HookSpec, 'mode' | 'required' | 'matcher' | 'priority' | 'timeout'>> {
  /** Returns what it changes, as a program would print it; undefined: nothing. A throw makes the run `failed`. */
  readonly run: (payload: HookPayload) => Awaitable<Readonly<Record<string, unknown>> | undefined>
}

/** Contributes functions as hooks; the owner of an entry is whose hook it is. */
export const NativeHooks = registry<NativeHook>('hooks.native@1')

/** For whom hooks are looked up: everybody, a workspace, an agent in it, or a session of that. */
export interface HookPlace {
  readonly workspace?: Workspace
  /** Name of an agent. */
  readonly agent?: string
  readonly session?: SessionInfo
}

/** Declarations that somebody keeps for a source of its own, skills say. */
export interface HookDeclarations {
  readonly source: Extract<HookSource, 'skill'>
  /**
   * Those of a place: `of` names what has one, `base` is the folder that its command is relative to. Asked at the start of each
   * session and at each {@link HooksApi.refresh}; one that is not valid is left out and named in the log.
   */
  readonly read: (place: HookPlace) => Promise<readonly HookDeclaration[]>
}

/** A hook as its source has it. */
export interface HookDeclaration {
  readonly written: unknown
  readonly of: string
  readonly base?: string
  /** It came with the files of the workspace of the place: each run needs these to be trusted still. */
  readonly isOfFiles?: boolean
}

export const HookDeclarers = registry<HookDeclarations>('hooks.declarations@1')

/** What hooks made of an event. */
export interface Dispatched {
  /** As the last hook left it. */
  readonly payload: HookPayload
  /** A hook refused, in words, or one that is required failed: what was about to happen must not. */
  readonly deny?: string
}

/** Whom an event is about; what hooks are declared for is found by it. */
export interface Whom {
  readonly sessionId?: string
  readonly workspaceId?: string
  /** Id of the event that led to it, for who follows causes. */
  readonly cause?: string | undefined
}

/** A request that changes something, which the program of a hook makes. */
export interface HookRequest {
  /** `req_…`: what it leads to has this as its cause. */
  readonly id: string
  /** What the runs are about that it may be made for: a program that stays answers several at once. */
  readonly whoms: readonly Whom[]
}

export interface HooksApi {
  /** Is there a hook for this event. Costs a look into a table. */
  has(event: HookEvent, sessionId?: string): boolean
  /** Runs the hooks of an event, the sync ones one after the other, and queues the async ones when none of those refused. */
  dispatch(event: HookEvent, whom: Whom, payload: HookPayload): Promise<Dispatched>
  /** Tells hooks of something about a session; nobody waits for them. */
  tell(event: HookEvent, session: SessionInfo, more?: HookPayload): void
  /** The same of something about a workspace, or about none. */
  announce(event: HookEvent, workspaceId: string | undefined, payload: HookPayload, cause?: string): void
  /** Asks hooks about a session; undefined when there is none. */
  ask(event: HookEvent, session: SessionInfo, more?: HookPayload): Promise<Dispatched | undefined>
  /** Collects the declarations anew: a source has others by now. Resolves when those that are read from files are in force. */
  refresh(): Promise<void>
  /** A hook was run, or was not and why: told in the transaction that writes it down. */
  readonly completed: Hook<GuardTap<[run: HookRun]>>
  /** The program of a hook asks the daemon for something: told before that is done; a refusal answers the request. */
  readonly asking: Hook<GateTap<[request: HookRequest]>>
  /** Runs of the hook of that name that are under way. */
  running(name: string): number
}

export const Hooks = token<HooksApi>('hooks@1')

export const HookErrors = defineErrors({
  hook_failed_to_run: {
    status: 500,
    message: 'the program of a hook did not answer as it should',
    next: 'svc hooks runs <session>',
  },
  hook_not_found: { status: 404, message: 'there is no hook of this name', next: 'svc hooks list' },
})
