import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { StoredRecord, Tx } from '../../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { finding } from '../../../desk/daemon/api.js'
import { SCRATCH_ID } from '../../../desk/workspaces/api.js'
import type { DefinitionRecord } from '../definitions.js'
import { decodeJob, isLoop, JobKind } from '../job-kind.js'
import type { K } from '../needs.js'
import { decodeTrigger, TriggerKind } from '../triggers/trigger-kind.js'

/**
 * Workspaces of global definitions of earlier versions, which had no workspace for global work: they stay where they ran. One
 * special row records that the definitions of the home were migrated.
 */
export const placeTable = `CREATE TABLE automation_place (
    definition TEXT NOT NULL PRIMARY KEY, workspace_id TEXT NOT NULL
  ) STRICT;`

/** Key of the row that records the migration. */
const LOOKED = ''
/** Definitions named in one doctor item. */
const SHOWN = 10

/** The workspace for the runs of a definition, and for the tasks that they create. */
export function workspaceOf(kernel: K, { id, scope }: DefinitionRecord): string {
  if (scope.id !== undefined) return scope.id
  const [kept] = kernel.db.row('SELECT workspace_id FROM automation_place WHERE definition = ?', [id]) ?? []
  return typeof kept === 'string' && kernel.needs.workspaces.get(kept) ? kept : SCRATCH_ID
}

/** Like {@link workspaceOf}, but creates a missing workspace. */
export async function openWorkspaceOf(kernel: K, definition: DefinitionRecord): Promise<string> {
  const id = workspaceOf(kernel, definition)
  return id === SCRATCH_ID ? (await kernel.needs.workspaces.scratch()).id : id
}

/**
 * Keeps the global definitions of an older home in the workspace where they ran, the one registered first; forgets deleted
 * definitions.
 */
export function keepPlaces({ db, needs, records }: K, t: Tx): void {
  const recordOf = (id: string) => records.get(JobKind.name, id) ?? records.get(TriggerKind.name, id)
  const isPlaced = (record: StoredRecord | undefined) => record === undefined || record.scope.id !== undefined
  const known = db.rows('SELECT definition FROM automation_place').map(([id]) => String(id))
  const gone = known.filter(id => id !== LOOKED && isPlaced(recordOf(id)))
  forgetPlaces(t, gone)
  if (known.includes(LOOKED)) return
  const put = (id: string, workspace: string) =>
    t.run('INSERT INTO automation_place (definition, workspace_id) VALUES (?, ?)', [id, workspace])
  put(LOOKED, '')
  const [first] = needs.workspaces
    .list()
    .filter(({ id }) => id !== SCRATCH_ID)
    .toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
  if (!first) return
  for (const kind of [JobKind, TriggerKind])
    for (const record of records.list({ kind: kind.name, scope: { kind: 'global' } })) {
      const spec = (decodeJob(record) ?? decodeTrigger(record))?.spec
      if (spec && !isLoop(spec) && !('task' in spec && spec.task)) put(record.id, first.id)
    }
}

/** A later definition with the same ID is a different one. */
export function forgetPlaces(t: Tx, ids: readonly string[]): void {
  for (const id of ids) t.run('DELETE FROM automation_place WHERE definition = ?', [id])
}

/** Doctor: global definitions that do not run in the workspace of global work. */
export function placeItems({ db, needs }: K): DiagnosticItem[] {
  const rows = db.rows('SELECT workspace_id, definition FROM automation_place ORDER BY definition')
  return needs.workspaces.list().flatMap(({ id: workspaceId, name }) => {
    const ids = rows.filter(([kept]) => kept === workspaceId).map(([, id]) => String(id))
    if (ids.length === 0) return []
    const rest = ids.length > SHOWN ? ` and ${ids.length - SHOWN} more` : ''
    const why =
      'they were created before global work had the workspace scratch; delete and create them again to move them'
    return finding({
      id: `scheduler:place:${workspaceId}`,
      code: 'automation_place_kept',
      category: 'automation',
      severity: 'info',
      title: `global jobs and triggers run in workspace ${name}`,
      message: `${ids.slice(0, SHOWN).join(', ')}${rest} run in workspace ${name}: ${why}`,
      suggested_command: command('automation jobs list'),
    })
  })
}
