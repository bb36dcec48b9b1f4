import * as v from 'valibot'
import { annotationsOf, canRunCode, RouteTool } from '../../../../kernel/kit/annotations/index.js'
import { clip, parseJson, shown } from '../../../../kernel/kit/text.js'
import { type BoundRoute, Collected, isDropIn } from '../../../../kernel/platform.js'
import { type Actor, Fault } from '../../../../kernel/plugin.js'
import { ToolErrorBody } from '../../../../schemas/tools.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import { toolId } from '../../../delivery/extensions/api.js'
import {
  type NativeTool,
  NativeTools,
  type OfferedTool,
  type OwnErrorCode,
  type ToolBackend,
  type ToolCaller,
  type ToolDescriptor,
  type ToolPlace,
  type ToolResult,
  type ToolRisk,
  toolFault,
} from '../api.js'
import { digestOf } from '../digest.js'
import type { K } from '../needs.js'
import { riskier } from '../tool-kind.js'
import { foreign, inOwnWorkspace, otherIn, renamed } from './own-place.js'
import { type RouteInput, requestOf, routeInput } from './route-input.js'

/** Origin of requests that a tool makes for an agent; the rules of tools have already allowed them. */
export const AGENT_TOOL = 'agent_tool'

interface Made {
  readonly bound: BoundRoute
  readonly input: RouteInput
  readonly fixed: Readonly<Record<string, unknown>>
}

/** Routes of the daemon as tools, as plugins declare them. */
export class NativeBackend implements ToolBackend {
  readonly kind = 'native'
  #tools: Promise<readonly OfferedTool[]> | undefined
  #made = new Map<string, Made>()

  constructor(private readonly kernel: K) {}

  /** Drops cached tools after a change of routes or tools. */
  renew(): void {
    this.#tools = undefined
  }

  tools(): Promise<readonly OfferedTool[]> {
    this.#tools ??= this.#make()
    return this.#tools
  }

  async call({ id }: ToolDescriptor, args: Readonly<Record<string, unknown>>, by: ToolCaller): Promise<ToolResult> {
    const made = this.#made.get(id)
    if (!made) throw toolFault('tool_unavailable', ['handler_missing'], `the route of ${id} is not available now`)
    const { bound, input, fixed } = made
    const { route } = bound
    const isAgent = by.sessionId !== undefined
    const resolvedArgs = this.#byId(route, { ...args, ...fixed }, by)
    const { place, wish } = isAgent ? await this.#placed(route, resolvedArgs, by) : { place: by, wish: resolvedArgs }
    const placed = isAgent ? inOwnWorkspace(route, input, wish, place) : wish
    const { url, body } = requestOf(route, input, placed)
    const reply = await this.kernel.needs.request(
      { method: route.method, url, ...(body === undefined ? {} : { body }) },
      isAgent ? actorFor(place, route.origins) : by.actor,
    )
    const structured = asJson(reply.body)
    const inner = refusalOf(structured, reply.status)
    if (inner) throw inner
    if (reply.status >= 400) throw refused(id, reply.status, reply.body)
    return {
      content: reply.body === '' ? [] : [{ type: 'text', text: reply.body }],
      ...(structured === undefined ? {} : { structured }),
    }
  }

  leaves({ id }: ToolDescriptor, args: Readonly<Record<string, unknown>>, scope: ToolPlace): boolean {
    const made = this.#made.get(id)
    if (!made) return false
    const { route } = made.bound
    return otherIn(route, this.#byId(route, { ...args, ...made.fixed }, scope), scope) !== undefined
  }

  /** Replaces an agent's references to its own workspace by name or folder with the id. */
  #byId(route: BoundRoute['route'], args: Readonly<Record<string, unknown>>, { workspaceId }: ToolPlace) {
    const own = workspaceId === undefined ? undefined : this.kernel.needs.workspaces.get(workspaceId)
    return own ? [own.name, own.rootDir].reduce((wish, name) => renamed(route, wish, name, own.id), args) : args
  }

  /** The workspace of an agent's call: its own, or another one if the rules allow that. */
  async #placed(route: BoundRoute['route'], wish: Readonly<Record<string, unknown>>, by: ToolCaller) {
    const other = otherIn(route, wish, by)
    if (!other) return { place: by, wish }
    // Routes for agents act on the agent's own session, so they cannot be used for another workspace.
    if (!by.mayLeave || route.origins?.includes(AGENT_SESSION)) throw foreign(other.member, by.workspaceId)
    const found = await this.kernel.needs.workspaces.find(String(other.reference)).catch(() => undefined)
    if (!found)
      throw toolFault(
        'tool_denied',
        ['session_denied'],
        `${other.member}: there is no workspace ${shown(String(other.reference))}`,
      )
    // The agent's session does not exist in that workspace.
    return { place: { ...by, workspaceId: found.id }, wish: renamed(route, wish, other.reference, found.id) }
  }

  async #make(): Promise<readonly OfferedTool[]> {
    const routes = this.kernel.collect(Collected.routes).map(({ entry }) => entry)
    const byKey = new Map(routes.map(bound => [keyOf(bound.route), bound]))
    const annotated = routes.flatMap(({ owner, route }) =>
      annotationsOf(route, RouteTool).map(tool => ({ owner, entry: { ...tool, route: keyOf(route) } })),
    )
    const made = new Map<string, Made>()
    const offered = await Promise.all(
      [...annotated, ...this.kernel.collect(NativeTools)].map(async ({ owner, entry }) => {
        const bound = byKey.get(entry.route)
        const id = isDropIn(owner) ? toolId(owner, entry.name) : `service__${entry.name}`
        // An extension may offer only its own routes to agents.
        const own = bound && (!isDropIn(owner) || bound.owner === owner) ? bound : undefined
        const input = own ? await routeInput(own.route, entry) : undefined
        if (own && input) made.set(id, { bound: own, input, fixed: entry.fixed ?? {} })
        return offer(id, owner, entry, own, input)
      }),
    )
    this.#made = made
    return offered
  }
}

const keyOf = ({ method, path }: BoundRoute['route']) => `${method} ${path}` as NativeTool['route']

function offer(
  id: string,
  owner: string,
  tool: NativeTool,
  bound: BoundRoute | undefined,
  input: RouteInput | undefined,
): OfferedTool {
  const { route } = bound ?? {}
  const risk = riskOf(tool, bound)
  const inputSchema = input?.schema ?? { type: 'object' }
  const description = tool.description ?? route?.summary ?? tool.name
  const descriptor = {
    id,
    ...(tool.title === undefined ? {} : { title: tool.title }),
    description,
    inputSchema,
    risk,
    visibility: tool.visibility ?? 'model',
    backend: isDropIn(owner)
      ? ({ kind: 'extension_host', extensionId: owner, handler: tool.route } as const)
      : ({ kind: 'native', nativeName: tool.name, handler: tool.route } as const),
    owner,
    toolsets: tool.toolsets,
    ...(tool.tags === undefined ? {} : { tags: tool.tags }),
    concurrencySafe: risk === 'read',
    ...(tool.inside === 'judged' && { judgedInside: true as const }),
    // The fixed wait for a person is added to the time limit.
    ...(typeof tool.fixed?.timeout_seconds === 'number' && { waitsMs: tool.fixed.timeout_seconds * 1000 }),
    digest: digestOf([id, tool.route, risk, inputSchema, tool.fixed ?? null]),
  }
  return bound
    ? { descriptor, unavailable: [] }
    : { descriptor, unavailable: ['handler_missing'], why: `the daemon has no route ${tool.route} now` }
}

/** Routes that can run arbitrary code, or that control what may run, are destructive regardless of the declared risk. */
function riskOf({ risk, inside }: NativeTool, bound: BoundRoute | undefined): ToolRisk {
  if (!bound) return 'destructive'
  const sees = isDropIn(bound.owner) ? undefined : inside
  if (sees === 'judged') return 'read'
  const usual = risk ?? (bound.route.method === 'GET' ? 'read' : 'mutating')
  const least: ToolRisk = canRunCode(bound.route) && sees !== 'bounded' ? 'destructive' : usual
  return riskier(risk ?? least, least)
}

/**
 * Actor of an agent's request: the agent itself on routes for agents; on others, a special origin on behalf of the
 * session.
 */
function actorFor({ actor, sessionId = '', workspaceId }: ToolCaller, origins: readonly string[] | undefined): Actor {
  if (origins?.includes(AGENT_SESSION) && actor.origin === AGENT_SESSION) return actor
  const { confined: _, ...rest } = actor
  const held = workspaceId === undefined ? {} : { maxScope: { kind: 'workspace' as const, id: workspaceId } }
  return { ...rest, ...held, origin: AGENT_TOOL, onBehalfOf: { kind: AGENT_SESSION, id: sessionId } }
}

/** Codes of routes that are also codes of tools. */
const SHARED = new Set(['model_not_found', 'reasoning_effort_unsupported'])

const CODES: Readonly<Record<number, OwnErrorCode>> = {
  400: 'tool_invalid_input',
  401: 'tool_denied',
  403: 'tool_denied',
  422: 'tool_invalid_input',
  503: 'tool_unavailable',
}

/** The fault of an inner tool call, unchanged, from the reply of a tool that calls tools. */
function refusalOf(reply: unknown, status: number): Fault | undefined {
  const parsed = v.safeParse(ToolErrorBody, reply)
  if (!parsed.success) return undefined
  const { code, message, details = {}, layer, reason_codes: reasons = [], tool_id } = parsed.output.error
  const { next, ...rest } = details as Record<string, string>
  const more = {
    ...rest,
    ...(layer ? { layer } : {}),
    ...(tool_id ? { tool_id } : {}),
    reason_codes: reasons.join(','),
  }
  return new Fault(code, status, message, { details: more, ...(next === undefined ? {} : { next }) })
}

/** The fault of a refused request, with the route's own code and text. */
function refused(toolId: string, status: number, text: string): Fault {
  const { error, code: named, message, reason, details } = Object(asJson(text)) as Record<string, unknown>
  // Some routes have the code in `error` and the text in `message`.
  const isNamed = typeof named === 'string'
  const code = isNamed ? named : typeof message === 'string' && typeof error === 'string' ? error : undefined
  const said = [isNamed ? error : message, error, text].find(words => typeof words === 'string') as string
  const next = [Object(details).next, reason].find(words => typeof words === 'string') as string | undefined
  if (code !== undefined && SHARED.has(code)) return new Fault(code, status, said, { details: { tool_id: toolId } })
  return toolFault(CODES[status] ?? 'tool_backend_failed', [], clip(said, 2000), {
    toolId,
    details: { status: String(status), ...(code === undefined ? {} : { code }) },
    ...(next === undefined ? {} : { next }),
  })
}

function asJson(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}
