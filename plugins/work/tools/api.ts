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
export { ApprovalErrors, type OwnErrorCode, reasonsOf, ToolErrors, toolFault } from './faults.js'
export type { NativeToolsetId } from './native-toolsets.js'
export { ToolKind, type ToolSpec } from './tool-kind.js'

/** Validates values against JSON Schemas written by extensions, with limits on time and size. Loaded on first use. */
export const loadJsonSchema = () => import('./registry/json-schema.js')

/** Risk of a tool, from read-only to irreversible. `open_world`: it has effects beyond this machine. */
export type ToolRisk = ToolSpec['risk']
/**
 * Who sees a tool. `internal`: no one; `operator`: only people; `session`: also programs in a session; `model`: also
 * models.
 */
export type ToolVisibility = ToolSpec['visibility']
export type ToolBackendKind = ToolSpec['backend']['kind']

/** A tool as described to its callers. */
export interface ToolDescriptor {
  /** `service__<name>`, `ext__<extension>__<tool>` or `mcp__<server>__<tool>`. */
  readonly id: string
  readonly title?: string
  readonly description: string
  /** JSON Schema of an object; the input of a call is validated against it before the backend gets it. */
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
   * Digest of everything that determines the effect of a call: a remembered decision is valid only for the same digest.
   * Compute it with {@link ToolsApi.digest} from the descriptor and, for a server, its declaration (command, URL,
   * source).
   */
  readonly digest: string
  /** The provider, for people: name of the extension, server or plugin. */
  readonly owner: string
  /** Ids of toolsets that include it by its own choice. */
  readonly toolsets?: readonly string[]
  readonly tags?: readonly string[]
  readonly concurrencySafe?: boolean
  readonly requiresInteraction?: boolean
  /** Milliseconds that it waits for a person, added to the time limit of its call. */
  readonly waitsMs?: number
  /** Whether it calls other tools, each of which is checked then, so that its own risk is irrelevant. */
  readonly judgedInside?: true
  /** Bytes of a result returned to the caller; a larger one is stored as an artifact. Default 262,144. */
  readonly maxResultBytes?: number
  /** The record that represents it. */
  readonly record?: { readonly id: string; readonly version: number }
}

/** A tool with its availability. */
export interface OfferedTool {
  readonly descriptor: ToolDescriptor
  /** Why it is unavailable; absent or empty: it is available. */
  readonly unavailable?: readonly ReasonCode[]
  /** The reason for people: `server github has not answered for 30 s`. */
  readonly why?: string
}

/** The place of a listing. All absent: the operator, everywhere. */
export interface ToolPlace {
  readonly workspaceId?: string
  readonly sessionId?: string
  readonly agentName?: string
}

/** The caller of a tool. */
export interface ToolCaller extends ToolPlace {
  readonly actor: Actor
  /** Aborts when the caller gives up. */
  readonly signal: AbortSignal
  /** Whether the rules allow this call to name another workspace than the agent's own. */
  readonly mayLeave?: true
}

/** A part of a result, in the form of the Model Context Protocol. */
export interface ToolContent {
  readonly type: string
  readonly text?: string
  /** Base64 of an image or audio. */
  readonly data?: unknown
  readonly mimeType?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A backend's result. `isError`: the tool ran and reports a failure of its own. */
export interface ToolResult {
  readonly content: readonly ToolContent[]
  readonly structured?: unknown
  readonly isError?: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Provides tools of one kind. It checks no permissions: every call it gets has passed all rules. */
export interface ToolBackend {
  readonly kind: ToolBackendKind
  /**
   * Its tools in a place, including unavailable ones. It returns the same array while nothing changed, because derived
   * data such as the search index is cached by the array. It waits for a server at most one second. An error leaves its
   * tools out.
   */
  readonly tools: (scope: ToolPlace) => Awaitable<readonly OfferedTool[]>
  /**
   * Calls a tool with a validated input. Failures are thrown as {@link toolFault}; any other error is reported as
   * `tool_backend_failed`. The registry refuses results over 16 MiB; a backend that reads from outside stops there.
   */
  readonly call: (tool: ToolDescriptor, input: Readonly<Record<string, unknown>>, by: ToolCaller) => Promise<ToolResult>
  /** Whether an agent's call names another workspace than its own; absent: never. */
  readonly leaves?: (tool: ToolDescriptor, input: Readonly<Record<string, unknown>>, scope: ToolPlace) => boolean
  /** Tries to make an unavailable tool available, for example by restarting its server. Never throws. */
  readonly revive?: (tool: ToolDescriptor, scope: ToolPlace) => Promise<void>
  /**
   * Waits a limited time for servers without a known list of tools; resolves with the names of those still missing.
   * Never throws.
   */
  readonly complete?: (scope: ToolPlace) => Promise<readonly string[]>
  /**
   * Why an unlisted tool may still exist: the {@link toolFault} of a server whose tools are not known after a limited
   * wait; undefined if the id is not one of this backend. Never throws.
   */
  readonly missing?: (id: string, scope: ToolPlace) => Promise<Fault | undefined>
}

/** Contributes a backend: `contribute(ToolBackends, service => [service.backend])`. */
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
 * A native tool: a route of the daemon under a name for agents. A call makes the request with the caller's rights and
 * returns the route's reply or refusal. The input has the members of path, query and body side by side; a body that is
 * not an object, or that repeats a name, is the member `body`.
 */
export interface NativeTool extends RouteTool {
  readonly route: `${Method} /api/${string}`
}

/** Tools of extensions, which name their routes as text; a route of the daemon uses the annotation `tool`. */
export const NativeTools = registry<NativeTool>(
  'tools.native@1',
  v.looseObject({ name: v.string(), route: v.string(), toolsets: v.array(v.string()) }),
)

/** Exempts calls from the approval by a person. */
export interface ToolAllowance {
  /**
   * Whether an agent's call that needs an approval by its permission mode goes on without one. Only calls with limited
   * changes are passed to it, not destructive ones or those that always need a person; refusals take precedence.
   */
  readonly allows: (toolId: string, input: Readonly<Record<string, unknown>>, sessionId: string) => boolean
}

/** Contributes allowances: `contribute(ToolAllowances, service => [service.allowance])`. */
export const ToolAllowances = registry<ToolAllowance>('tools.allowances@1', v.looseObject({ allows: v.function() }))

/** Obstacles to a call in a place; `callable` if there is none but an approval. */
export interface ToolDecision {
  readonly callable: boolean
  readonly approvalRequired: boolean
  readonly reasons: readonly ReasonCode[]
}

/** A tool with the decision of the rules. */
export interface JudgedTool extends OfferedTool {
  readonly decision: ToolDecision
}

/** Outcome of a call. */
export interface ToolOutcome {
  /** The ID of the tool that ran; a hook may have replaced the requested one. */
  readonly toolId: string
  /** The title that a hook gave the call. */
  readonly title?: string
  readonly result: ToolResult
  /** Bytes of the whole result; the artifact contains it if the limit is exceeded. */
  readonly bytes: number
  readonly truncated: boolean
  readonly artifact?: { readonly id: string; readonly uri: string; readonly bytes: number; readonly sha256: string }
  readonly durationMs: number
}

/** A call that passed all rules except hooks; `deny`, a reason in words, refuses it. */
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
  /** Duration in milliseconds. */
  readonly ms: number
  readonly isError: boolean
  readonly title: string
  /** The result that the caller gets, bounded and without secrets; absent when the call threw an error. */
  readonly result?: ToolResult
  /** The error text of a call that threw. A tap that sets it makes the call a failure. */
  readonly error?: string
}

/** The hooks of tool calls. Programs of a person may take long; each has a time limit. */
export const points = hookTable({
  calling: pipeline<ToolCallWish>(
    'calling',
    'Before a tool is called. A tap may refuse the call, redirect it, raise the risk, and change the input, which is then validated and judged like input from the caller.',
    { deadlineMs: 600_000 },
  ),
  called: pipeline<ToolCallEnd>(
    'called',
    'After a call has finished, before its caller has an answer; refused calls are left out. A tap may change title, result and error.',
    { deadlineMs: 600_000 },
  ),
})

/** Tools for other plugins. Every error is a Fault with a {@link ToolErrorCode}; its reasons are in {@link reasonsOf}. */
export interface ToolsApi extends TapsOf<typeof points> {
  /** Tools visible to a session's model, or without a session to the operator; sorted by id. */
  list(scope: ToolPlace): Promise<readonly JudgedTool[]>
  /** Best matches first; an empty query returns the list. */
  search(scope: ToolPlace, query: string, limit: number): Promise<readonly JudgedTool[]>
  /** Waits a limited time for servers whose tools are not known; resolves with the names of those still starting. */
  complete(scope: ToolPlace): Promise<readonly string[]>
  /** @throws Fault `tool_not_found` */
  find(scope: ToolPlace, id: string): Promise<JudgedTool>
  /**
   * Checks every rule, then calls. If a person has to approve, throws `tool_approval_required` with
   * `details.approval_id`; with `wait` the call continues after the approval, and throws `tool_denied` or, after 120 s,
   * `tool_timed_out`. A tool that `among` excludes is reported as not found.
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
