/** `svc/plugins/hooks`: programs and functions that run on events and may deny or patch them. */

import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import {
  type Awaitable,
  defineErrors,
  gate,
  guard,
  hookTable,
  notify,
  registry,
  type TapsOf,
  token,
} from '../../../kernel/plugin.js'
import { HookEvent } from '../../../schemas/hooks.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { SessionInfo } from '../sessions/api.js'
import type { PatchMember } from './hook-events.js'
import type { HookSpec } from './hook-kind.js'
import type { HookRun } from './runs.js'

export { HookKind, type HookSpec, specOf as hookSpecOf } from './hook-kind.js'
export type { HookRun } from './runs.js'

/** Hook sources in execution order. An earlier source shadows a hook of the same name and event in a later one. */
export const HOOK_SOURCES = ['native', 'config', 'extension', 'agent_definition', 'skill'] as const
export type HookSource = (typeof HOOK_SOURCES)[number]

/** The payload of an event: a JSON object. */
export type HookPayload = Readonly<Record<string, unknown>>

/** A hook implemented by a function of a plugin. It may itself trigger hooks, up to three levels deep. */
export interface NativeHook
  extends Pick<HookSpec, 'name' | 'event'>,
    Partial<Pick<HookSpec, 'mode' | 'required' | 'matcher' | 'priority' | 'timeout'>> {
  /** Returns a patch, like the output of a program, or undefined. A throw makes the run `failed`. */
  readonly run: (payload: HookPayload) => Awaitable<Readonly<Record<string, unknown>> | undefined>
}

/** Functions of plugins as hooks. */
export const NativeHooks = registry<NativeHook>(
  'hooks.native@1',
  v.looseObject({ name: v.string(), event: HookEvent, run: v.function() }),
)

/** Where hooks are looked up: globally, or for a workspace, an agent or a session. */
export interface HookPlace {
  readonly workspace?: Workspace
  /** Agent name. */
  readonly agent?: string
  readonly session?: SessionInfo
}

/** Hook declarations contributed by another plugin, such as those of skills. */
export interface HookDeclarations {
  readonly source: Extract<HookSource, 'skill'>
  /**
   * The declarations for a place. Read at the start of each session and on each {@link HooksApi.refresh}; an invalid
   * declaration is logged and ignored.
   */
  readonly read: (scope: HookPlace) => Promise<readonly HookDeclaration[]>
}

/** A hook declaration as written in its source. */
export interface HookDeclaration {
  readonly written: unknown
  /** The owner, such as the skill. */
  readonly of: string
  /** Folder that the command is relative to. */
  readonly base?: string
  /** Declared in workspace files: these must still be trusted at each run. */
  readonly isOfFiles?: boolean
  /** Key of the extension that brings it: it runs and has secrets as that extension. */
  readonly extension?: string | undefined
}

export const HookDeclarers = registry<HookDeclarations>(
  'hooks.declarations@1',
  v.looseObject({ source: v.literal('skill'), read: v.function() }),
)

/** Contributes the values that matcher fields can have now, so that a value that matches none of them gets a warning. */
export interface KnownValues {
  /** Matcher fields of open vocabularies, such as `agent_name`. */
  readonly fields: readonly string[]
  /** Noun for a value: `agent`. */
  readonly noun: string
  /** The command that lists them. */
  readonly list: string
  /** Undefined while some values are not known. */
  readonly read: () => Promise<readonly string[] | undefined>
}

export const HookValues = registry<KnownValues>(
  'hooks.values@1',
  v.looseObject({ fields: v.array(v.string()), noun: v.string(), list: v.string(), read: v.function() }),
)

/** The result of running the hooks of an event. */
export interface Dispatched {
  /** The payload with all patches applied. */
  readonly payload: HookPayload
  /** Reason of a denial, or of the failure of a required hook. The operation must be aborted. */
  readonly deny?: string
}

/** Patch fields of an event that cannot be set in one dispatch; a patch that sets one is `rejected`. */
export interface Fixed {
  readonly members: readonly PatchMember[]
  /** The reason, for the author of the hook: `the agent has already run this tool itself`. */
  readonly why: string
}

/** The subject of an event, used to find its hooks. */
export interface Whom {
  /** Patch fields that this dispatch does not accept. */
  readonly fixed?: Fixed | undefined
  readonly sessionId?: string
  readonly workspaceId?: string
  /** Id of the logged event that caused this one. */
  readonly cause?: string | undefined
}

/** A mutating request made by a hook program. */
export interface HookRequest {
  /** `req_…`: the cause of everything the request changes. */
  readonly id: string
  /** Subjects of the runs that may have made it: a warm program handles several at once. */
  readonly whoms: readonly Whom[]
}

/** The hooks of hooks. */
export const points = hookTable({
  ran: notify<[run: HookRun]>(
    'ran',
    'A hook run has ended, in the context of its session or operation. It is recorded later.',
  ),
  completed: guard<[run: HookRun]>(
    'completed',
    'A hook run was recorded, in the transaction that writes it. A refusal aborts that.',
  ),
  asking: gate<[request: HookRequest]>(
    'asking',
    'A hook program makes a mutating request; it is not handled yet. A refusal answers the request.',
  ),
})

export interface HooksApi extends TapsOf<typeof points> {
  /** Whether there is a hook for this event. A table look-up. */
  has(event: HookEvent, sessionId?: string): boolean
  /** Runs the sync hooks of an event one by one, then queues the async ones unless the event was denied. */
  dispatch(event: HookEvent, whom: Whom, payload: HookPayload): Promise<Dispatched>
  /** Dispatches an event about a session without waiting. */
  tell(event: HookEvent, session: SessionInfo, more?: HookPayload): void
  /** Dispatches an event about a workspace, or a global event, without waiting. */
  announce(event: HookEvent, workspaceId: string | undefined, payload: HookPayload, cause?: string): void
  /** Dispatches an event about a session and returns the result; undefined without hooks. */
  ask(event: HookEvent, session: SessionInfo, more?: HookPayload, fixed?: Fixed): Promise<Dispatched | undefined>
  /** Reloads the declarations. Resolves when those read from files are active. */
  refresh(): Promise<void>
  /** Number of runs in progress of the hook with this name. */
  running(name: string): number
}

export const Hooks = token<HooksApi>('hooks@1')

export const HookErrors = defineErrors({
  hook_failed_to_run: {
    status: 500,
    message: 'hook program failed',
    next: command('hooks runs', placeholder('session')),
  },
  hook_not_found: { status: 404, message: 'hook not found', next: command('hooks list') },
})
