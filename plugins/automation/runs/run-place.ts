import type { WorkspacesApi } from '../../workspaces/api.js'
import type { DefinitionRecord } from '../definitions.js'

/**
 * The workspace that the runs of a definition work in: that of its scope, else the workspace registered first. Undefined when no
 * workspace is registered, and for a global job that creates global tasks.
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
