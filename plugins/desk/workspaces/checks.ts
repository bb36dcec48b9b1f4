import { command } from '../../../kernel/kit/commands/command-line.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../daemon/api.js'
import type { Workspace } from './api.js'
import { advice, directoryAt } from './paths.js'

/** Most items of one report; the last one counts the rest. */
const LISTED = 50

/** Doctor items for workspaces whose root is missing, not a directory, or unreachable. */
export async function rootItems(all: readonly Workspace[]): Promise<DiagnosticItem[]> {
  const items = (await Promise.all(all.map(rootItem))).flat()
  if (items.length === 0) {
    const fine = { id: 'workspaces.roots', code: 'workspaces_ok', title: 'Workspaces', severity: 'info' }
    return [
      finding({
        ...fine,
        category: 'workspaces',
        message: `${all.length === 1 ? 'the workspace root exists' : `the roots of all ${all.length} workspaces exist`}`,
      }),
    ]
  }
  const shown = items.slice(0, LISTED)
  const last = shown.at(-1)
  const rest = items.length - shown.length
  return rest > 0 && last ? [...shown.slice(0, -1), { ...last, message: `${last.message}; and ${rest} more` }] : shown
}

async function rootItem({ id, name, rootDir }: Workspace): Promise<DiagnosticItem[]> {
  const found = await directoryAt(rootDir)
  if (found.is === 'directory') return []
  const why = found.is === 'other' ? 'is no longer a directory' : found.why
  const gone = found.is === 'other' || found.missing
  const item = {
    id: `workspaces.roots.${id}`,
    category: 'workspaces',
    severity: 'warning',
    title: `Workspace ${name} has no root`,
    message: `the root ${rootDir} ${why}; ${advice(found)}`,
  }
  return [
    gone
      ? finding({ ...item, code: 'workspace_root_missing', suggested_command: command('workspace remove', id) })
      : finding({ ...item, code: 'workspace_root_unreachable' }),
  ]
}
