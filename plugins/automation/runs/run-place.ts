import type { WorkspacesApi } from '../../workspaces/api.js'
import type { DefinitionRecord } from '../definitions.js'

/**
 * The workspace that runs of a definition work in: its own; of one of all workspaces the one that was registered first. Undefined:
 * there is none, or what they make is a task of all workspaces.
 */
export function workspaceOf(
  workspaces: Pick<WorkspacesApi, 'list'>,
  { spec, scope }: DefinitionRecord,
): string | undefined {
  if (scope.id !== undefined) return scope.id
  if ('task' in spec && spec.task) return undefined
  const [first] = workspaces.list().toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
  return first?.id
}
