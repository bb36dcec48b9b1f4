import type { Route } from '../../../kernel/plugin.js'
import { type ToolCaller, toolFault } from '../api.js'
import type { RouteInput } from './route-input.js'

const NAMES = ['workspace_id', 'workspace'] as const

/**
 * Keeps what an agent asks for in the workspace of its session, which fills in where none is named. What says for whom it is by `scope`
 * is for that workspace unless it says `global`. Throws `tool_denied`.
 */
export function inOwnWorkspace(
  route: Pick<Route, 'path'>,
  { schema }: Pick<RouteInput, 'schema'>,
  given: Readonly<Record<string, unknown>>,
  { workspaceId, sessionId }: ToolCaller,
): Record<string, unknown> {
  const known = (schema.properties ?? {}) as Record<string, unknown>
  const filled: Record<string, unknown> = { ...given }
  const own = (name: string) => {
    if (filled[name] !== undefined && filled[name] !== workspaceId) throw foreign(name, workspaceId)
    filled[name] = workspaceId
  }
  if (route.path.startsWith('/api/workspaces/{id}')) own('id')
  if ('scope' in known && filled.scope === undefined && NAMES.some(name => name in known)) filled.scope = 'workspace'
  const isGlobal = filled.scope === 'global' && NAMES.every(name => filled[name] === undefined)
  const [name] = NAMES.filter(name => name in known)
  if (name && !isGlobal) own(name)
  for (const other of NAMES.filter(other => other in known && other !== name))
    if (filled[other] !== undefined) own(other)
  // A body that is a member of its own may name a workspace as well.
  const { body } = filled as { body?: Record<(typeof NAMES)[number], unknown> }
  for (const inner of NAMES)
    if (Object(body)[inner] !== undefined && Object(body)[inner] !== workspaceId)
      throw foreign(`body.${inner}`, workspaceId)
  if (route.path.includes('{session_id}') && filled.session_id === undefined && sessionId !== undefined)
    filled.session_id = sessionId
  return filled
}

const foreign = (name: string, own: string | undefined) =>
  toolFault('tool_denied', ['session_denied'], `${name}: an agent works in the workspace of its session, ${own}`)
