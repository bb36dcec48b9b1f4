import * as v from 'valibot'
import type { RouteTool } from '../../../kernel/kit/annotations/index.js'
import {
  type Actor,
  type Awaitable,
  type Fault,
  hookTable,
  type Method,
  pipeline,
  registry,
  type TapsOf,
  token,
} from '../../../kernel/plugin.js'
import type { ReasonCode, ToolErrorCode } from '../../../schemas/tools.js'
import type { ToolSpec } from './tool-kind.js'

export type { ReasonCode, ToolErrorCode } from '../../../schemas/tools.js'
export { type OwnErrorCode, reasonsOf, ToolErrors, toolFault } from './faults.js'
export type { NativeToolsetId } from './native-toolsets.js'
export { ToolKind, type ToolSpec } from './tool-kind.js'

/** The check of values by JSON Schemas that an extension wrote: bounded in time and size. Loaded when it is first needed. */
export const loadJsonSchema = () => import('./registry/json-schema.js')

/** From what only reads to what cannot be undone. `open_world`: it reaches beyond this machine. */
export type ToolRisk = ToolSpec['risk']
/** Who sees a tool: nobody, people alone, programs in a session, and also models. Each sees what the ones behind it see. */
export type ToolVisibility = ToolSpec['visibility']
export type ToolBackendKind = ToolSpec['backend']['kind']

/** One tool, as it is told to whoever may call it. */
export interface ToolDescriptor {
  /** `service__<name>`, `ext__<extension>__<tool>` or `mcp__<server>__<tool>`. */
  readonly id: string
  readonly title?: string
  readonly description: string
  /** JSON Schema of an object; what a call gives is held to it before the backend sees it. */
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly outputSchema?: Readonly<Record<string, unknown>>
  readonly risk: ToolRisk
  readonly visibility: ToolVisibility
  readonly backend: {
    readonly kind: ToolBackendKind
    readonly extensionId?: string
    readonly handler?: string
    readonly mcpServer?: string
    readonly mcpTool?: string
    readonly nativeName?: string
    readonly requiresCapabilities?: readonly string[]
  }
  /**
   * Of everything that decides what a call does: a remembered decision counts for this digest alone. Make it with
   * {@link ToolsApi.digest} over the descriptor and, of a server, its declaration (command, URL, the layer that it comes from).
   */
  readonly digest: string
  /** Who provides it, for people: name of the extension, the server or the plugin. */
  readonly owner: string
  /** Ids of toolsets that have it by itself. */
  readonly toolsets?: readonly string[]
  readonly tags?: readonly string[]
  readonly concurrencySafe?: boolean
  readonly requiresInteraction?: boolean
  /** Milliseconds that it waits for a person, which its call may take beyond its bound. */
  readonly waitsMs?: number
  /** It calls any other tool, which is judged then: its own risk says nothing of what it can do. */
  readonly judgedInside?: true
  /** Bytes of a result that a caller is handed; more is kept as an artifact. Default 262,144. */
  readonly maxResultBytes?: number
  /** A record that tells of it. */
  readonly record?: { readonly id: string; readonly version: number }
}

/** A tool and whether it could be called now. */
export interface OfferedTool {
  readonly descriptor: ToolDescriptor
  /** Why it cannot; absent or empty: it can. */
  readonly unavailable?: readonly ReasonCode[]
  /** The same for people: `server github has not answered for 30 s`. */
  readonly why?: string
}

/** For whom tools are listed. All absent: the operator, everywhere. */
export interface ToolPlace {
  readonly workspaceId?: string
  readonly sessionId?: string
  readonly agentName?: string
}

/** For whom a tool is called. */
export interface ToolCaller extends ToolPlace {
  readonly actor: Actor
  /** Aborts when the caller gives up. */
  readonly signal: AbortSignal
  /** The rules let this call of an agent name another workspace than its own. */
  readonly mayLeave?: true
}

/** A part of a result, as the Model Context Protocol has it. */
export interface ToolContent {
  readonly type: string
  readonly text?: string
  /** Base64 of an image or audio. */
  readonly data?: unknown
  readonly mimeType?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** What a backend answers. `isError`: the tool ran and tells of a failure of its own. */
export interface ToolResult {
  readonly content: readonly ToolContent[]
  readonly structured?: unknown
  readonly isError?: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Provides tools of one kind. It judges no right: whatever reaches it has passed every rule. */
export interface ToolBackend {
  readonly kind: ToolBackendKind
  /**
   * Its tools in a place, also those that cannot be called now. The same array for as long as nothing of it changed: what is made
   * of it, for the search say, is kept by the array. It waits for no server longer than a second. A throw leaves its tools out.
   */
  readonly tools: (place: ToolPlace) => Awaitable<readonly OfferedTool[]>
  /**
   * Calls one of them with an input that its schema allows. What fails is thrown as {@link toolFault}; anything else thrown is told as
   * `tool_backend_failed`. A result beyond 16 MiB is refused by the registry; a backend that reads from outside stops reading there.
   */
  readonly call: (tool: ToolDescriptor, input: Readonly<Record<string, unknown>>, by: ToolCaller) => Promise<ToolResult>
  /** Whether a call of an agent names another workspace than the one it works in; without this none does. */
  readonly leaves?: (tool: ToolDescriptor, input: Readonly<Record<string, unknown>>, place: ToolPlace) => boolean
  /** A tool that cannot be called is wanted: does what can be done about it, as starting a server that has ended. Never throws. */
  readonly revive?: (tool: ToolDescriptor, place: ToolPlace) => Promise<void>
  /** Waits a while for servers that have told nothing yet; resolves with the names of those that still have not. Never throws. */
  readonly complete?: (place: ToolPlace) => Promise<readonly string[]>
  /**
   * Why a tool that no list has may still be there: {@link toolFault} of a server that has not told its tools, after a while of waiting
   * for it; undefined where the id is none of its. Never throws.
   */
  readonly missing?: (id: string, place: ToolPlace) => Promise<Fault | undefined>
}

/** Contributes a backend: `contribute(ToolBackends, self => [self.backend])`. */
export const ToolBackends = registry<ToolBackend>(
  'tools.backends@1',
  v.looseObject({
    kind: v.string(),
    tools: v.function(),
    call: v.function(),
    leaves: v.optional(v.function()),
    revive: v.optional(v.function()),
    complete: v.optional(v.function()),
    missing: v.optional(v.function()),
  }),
)

/**
 * A native tool: a route of the daemon under a name for agents. A call makes the request with the caller's rights, and gives the reply
 * or the refusal of the route. Its input has the members of path, query and body side by side; a body that is no object, or has a
 * name twice, is the member `body`.
 */
export interface NativeTool extends RouteTool {
  readonly route: `${Method} /api/${string}`
}

/** Tools of extensions that name their routes by a text; a route says by the annotation `tool` that it is one. */
export const NativeTools = registry<NativeTool>(
  'tools.native@1',
  v.looseObject({ name: v.string(), route: v.string(), toolsets: v.array(v.string()) }),
)

/** Says of calls that they need no person. */
export interface ToolAllowance {
  /**
   * Whether a call of an agent, which its permission mode would leave to a person, goes on without one. It is asked of calls that change
   * something within bounds, not of destructive ones or of those that want a person whatever the mode; refusals are stronger.
   */
  readonly allows: (toolId: string, input: Readonly<Record<string, unknown>>, sessionId: string) => boolean
}

/** Contributes allowances: `contribute(ToolAllowances, self => [self.allowance])`. */
export const ToolAllowances = registry<ToolAllowance>('tools.allowances@1', v.looseObject({ allows: v.function() }))

/** What stands in the way of a call in a place; `callable` where nothing but an approval does. */
export interface ToolDecision {
  readonly callable: boolean
  readonly approvalRequired: boolean
  readonly reasons: readonly ReasonCode[]
}

/** A tool with what may be done with it. */
export interface JudgedTool extends OfferedTool {
  readonly decision: ToolDecision
}

/** How a call went. */
export interface ToolOutcome {
  /** The ID of the tool that ran; a hook may have replaced the requested one. */
  readonly toolId: string
  /** The title that a hook gave the call. */
  readonly title?: string
  readonly result: ToolResult
  /** Bytes of the whole result; what is beyond the limit of the tool is in the artifact. */
  readonly bytes: number
  readonly truncated: boolean
  readonly artifact?: { readonly id: string; readonly uri: string; readonly bytes: number; readonly sha256: string }
  readonly durationMs: number
}

/** A call that has passed every rule but those of hooks; with `deny`, the reason in words, it is refused. */
export interface ToolCallWish {
  /** A tap may name another tool; all rules and taps then apply to that one. */
  readonly toolId: string
  /** The risk that the rules judge. A tap can make `mutating` of `read`; it cannot lower the risk. */
  readonly risk: ToolRisk
  readonly input: Readonly<Record<string, unknown>>
  readonly place: ToolPlace
  readonly deny?: string
}

/** A finished call. A tap can change what the caller gets: title, result and error text. */
export interface ToolCallEnd extends Omit<ToolCallWish, 'deny'> {
  /** Milliseconds that it ran. */
  readonly ms: number
  readonly isError: boolean
  readonly title: string
  /** The result that the caller gets, bounded and without secrets; absent when the call threw an error. */
  readonly result?: ToolResult
  /** The error text of a call that threw. A tap that sets it makes the call a failure. */
  readonly error?: string
}

/** The hooks of tool calls. What programs of a person have a say in takes its time; each program is bounded. */
export const points = hookTable({
  calling: pipeline<ToolCallWish>(
    'calling',
    'Before a tool is called. A tap may refuse, call another tool, raise the risk, and change the input, which is then held to the schema and judged like one from the caller.',
    { deadlineMs: 600_000 },
  ),
  called: pipeline<ToolCallEnd>(
    'called',
    'After a call has finished, before its caller has an answer; refused calls are left out. A tap may change title, result and error.',
    { deadlineMs: 600_000 },
  ),
})

/** Tools for other plugins. Every throw is a Fault with a {@link ToolErrorCode}, its reasons by {@link reasonsOf}. */
export interface ToolsApi extends TapsOf<typeof points> {
  /** Those that a session's model, or without a session the operator, sees; sorted by id. */
  list(place: ToolPlace): Promise<readonly JudgedTool[]>
  /** The best first; an empty query is the list. */
  search(place: ToolPlace, query: string, limit: number): Promise<readonly JudgedTool[]>
  /** Waits a while for servers whose tools are not known yet; resolves with the names of those that still start. */
  complete(place: ToolPlace): Promise<readonly string[]>
  /** Throws `tool_not_found`. */
  find(place: ToolPlace, id: string): Promise<JudgedTool>
  /**
   * Checks every rule, then calls. Where a person has to allow it, throws `tool_approval_required` with `details.approval_id`; with
   * `wait` the call goes on when a person has, and throws `tool_denied` or, after 120 s, `tool_timed_out`. A tool
   * that is not one `among` those for the caller is told as one that is not there.
   */
  call(
    id: string,
    input: unknown,
    by: ToolCaller,
    how?: {
      readonly approvalToken?: string
      readonly wait?: boolean
      readonly among?: (tool: ToolDescriptor) => boolean
    },
  ): Promise<ToolOutcome>
  /** SHA-256, hex, of the canonical JSON of a value. */
  digest(value: unknown): string
}

export const Tools = token<ToolsApi>('tools@1')
