import { command } from '../../../kernel/kit/commands/command-line.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'
import type { AgentDefinition } from './api.js'
import type { Broken } from './definition/view.js'

/** Items per report; the last item mentions the rest. */
const LISTED = 50
/** Entries of a definition that one item names. */
const ENTRIES_LISTED = 8

/** One item per invalid definition, or one that all are valid. */
export function brokenItems(
  all: readonly { readonly found: Broken; readonly workspaceId: string | undefined }[],
): DiagnosticItem[] {
  if (all.length === 0) {
    const fine = { id: 'agents', code: 'agents_ok', category: 'agents', severity: 'info', title: 'Agents' }
    return [finding({ ...fine, message: 'all definitions of agents are valid' })]
  }
  const items = all.slice(0, LISTED).map(({ found, workspaceId }) => brokenItem(found, workspaceId))
  const rest = all.length - items.length
  const last = items.at(-1)
  return rest > 0 && last ? [...items.slice(0, -1), { ...last, message: `${last.message}; and ${rest} more` }] : items
}

/** One item per definition with left-out entries. */
export function partlyItems(
  all: readonly { readonly definition: AgentDefinition; readonly workspaceId: string | undefined }[],
): DiagnosticItem[] {
  return all.slice(0, LISTED).map(({ definition: { name, path = '', leftOut = [] }, workspaceId }) =>
    finding({
      id: `agents:${path}:entries`,
      code: 'agent_entry_invalid',
      category: 'agents',
      severity: 'warning',
      title: `agent ${name}: a part of its definition is ignored`,
      message: `${path}: ${leftOut.slice(0, ENTRIES_LISTED).join('; ')}${leftOut.length > ENTRIES_LISTED ? `; and ${leftOut.length - ENTRIES_LISTED} more` : ''}`,
      suggested_command: command(
        'agent info',
        name,
        ...(workspaceId === undefined ? [] : ['--workspace', workspaceId]),
      ),
      evidence: { path },
    }),
  )
}

function brokenItem({ name, path, error }: Broken, workspaceId: string | undefined): DiagnosticItem {
  const where = workspaceId === undefined ? [] : ['--workspace', workspaceId]
  // The folder's name may contain any characters.
  const nextCommand = /^[\w][\w-]*$/.test(name)
    ? command('agent info', name, ...where)
    : command('agent list', ...where)
  return finding({
    id: `agents:${path}`,
    code: 'agent_invalid',
    category: 'agents',
    severity: 'warning',
    title: name === '' ? 'A folder of agents cannot be read' : `agent ${name} is not valid`,
    message: `${path}: ${error.message}; fix it to use the agent`,
    suggested_command: nextCommand,
    evidence: { path, error_kind: error.kind },
  })
}
