import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { Route } from '../../../../kernel/plugin.js'
import { type ToolPlace, toolFault } from '../api.js'
import type { RouteInput } from './route-input.js'

const NAMES = ['workspace_id', 'workspace'] as const

type Args = Readonly<Record<string, unknown>>
type Routed = Pick<Route, 'path'>

/** Whether the route's parameter `id` is a workspace. */
const isOfWorkspace = ({ path }: Routed) => path.startsWith('/api/workspaces/{id}')

/** The member of an agent's input that refers to another workspace; undefined if there is none. */
export function otherIn(
  route: Routed,
  args: Args,
  { workspaceId }: ToolPlace,
): { readonly member: string; readonly reference: unknown } | undefined {
  // A body passed as a member can refer to a workspace as well.
  const body = Object(args.body) as Args
  const named = [
    ...(isOfWorkspace(route) ? [['id', args.id] as const] : []),
    ...NAMES.map(name => [name, args[name]] as const),
    ...NAMES.map(name => [`body.${name}`, body[name]] as const),
  ]
  const other = named.find(([, reference]) => reference !== undefined && reference !== workspaceId)
  return other && { member: other[0], reference: other[1] }
}

/**
 * Fills the agent's own workspace into an input without one. A `scope` means that workspace unless it is `global`.
 * Throws `tool_denied` for a reference to another workspace.
 */
export function inOwnWorkspace(
  route: Routed,
  { schema }: Pick<RouteInput, 'schema'>,
  args: Args,
  scope: ToolPlace,
): Record<string, unknown> {
  const { workspaceId, sessionId } = scope
  const other = otherIn(route, args, scope)
  if (other) throw foreign(other.member, workspaceId)
  const known = (schema.properties ?? {}) as Args
  const filled: Record<string, unknown> = { ...args }
  if (isOfWorkspace(route)) filled.id = workspaceId
  if ('scope' in known && filled.scope === undefined && NAMES.some(name => name in known)) filled.scope = 'workspace'
  const isGlobal = filled.scope === 'global' && NAMES.every(name => filled[name] === undefined)
  const [name] = NAMES.filter(name => name in known)
  if (name && !isGlobal) filled[name] = workspaceId
  if (route.path.includes('{session_id}') && filled.session_id === undefined && sessionId !== undefined)
    filled.session_id = sessionId
  return filled
}

/** The input with a workspace reference replaced by its id in all members. */
export function renamed(route: Routed, args: Args, reference: unknown, id: string): Record<string, unknown> {
  const own = (from: Args, names: readonly string[]) =>
    Object.fromEntries(
      Object.entries(from).map(([name, value]) => [name, names.includes(name) && value === reference ? id : value]),
    )
  const { body } = args
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
  const names = isOfWorkspace(route) ? ['id', ...NAMES] : NAMES
  return { ...own(args, names), ...(isObject && { body: own(body as Args, NAMES) }) }
}

export const foreign = (name: string, own: string | undefined) =>
  toolFault('tool_denied', ['session_denied'], `${name}: an agent works in the workspace of its session, ${own}`, {
    next: command('me context'),
  })
