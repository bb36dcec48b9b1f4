import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { Rebase, RebaseConflict } from '../../../../schemas/window-manager.js'
import { refuse } from '../refusal.js'
import { nodesIn, type WindowDocument, windowOf } from './document.js'

/**
 * The revision that a stale command was written for, if everything that it depends on still exists; undefined for a current
 * command. Throws `window_manager_revision_conflict` with the current revision and the missing parts.
 */
export function rebasedFrom(
  document: WindowDocument,
  current: number,
  expected: number,
  rebase?: Rebase | null,
): number | undefined {
  if (expected === current) return undefined
  const conflicts = rebase && expected < current ? conflictsOf(document, rebase) : undefined
  if (conflicts?.length === 0) return expected
  return refuse(
    'revision_conflict',
    `the document is at revision ${current}, not ${expected}; read it again and repeat`,
    { current_revision: current, ...(conflicts && { conflicts }), next: command('desktop list') },
  )
}

/** Parts that a rebase names and the document lacks. A rebase without names is always a conflict. */
function conflictsOf(document: WindowDocument, rebase: Rebase): RebaseConflict[] {
  const nodes = new Map(
    document.desktops
      .flatMap(({ groups }) => groups.flatMap(({ root }) => nodesIn(root)))
      .map(node => [node.id, node] as const),
  )
  const conflicts: RebaseConflict[] = []
  let named = 0
  const wanted = (id: string | null | undefined, code: string, isThere: (id: string) => boolean) => {
    if (id === undefined || id === null) return
    named++
    if (!isThere(id)) conflicts.push({ code, entity_id: id })
  }
  wanted(rebase.window_id, 'window_missing', id => windowOf(document, id) !== undefined)
  wanted(rebase.source_node_id, 'node_missing', id => nodes.has(id))
  wanted(rebase.target_node_id, 'node_missing', id => nodes.has(id))
  wanted(rebase.split_id, 'split_missing', id => nodes.get(id)?.kind === 'split')
  const split = nodes.get(rebase.split_id ?? '')
  const boundary = rebase.boundary_index ?? undefined
  if (boundary !== undefined && split?.kind === 'split' && !(boundary >= 0 && boundary < split.children.length - 1))
    conflicts.push({ code: 'boundary_missing', entity_id: split.id })
  return named > 0 ? conflicts : [{ code: 'nothing_named' }]
}
