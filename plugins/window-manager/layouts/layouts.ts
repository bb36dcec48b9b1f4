import { type Actor, KernelErrors, type PluginKernel, type RecordScope, recordToWire } from '../../../kernel/plugin.js'
import type { PutLayoutProfileBody } from '../../../schemas/window-manager.js'
import type { Workspace } from '../../workspaces/api.js'
import { refuse } from '../refusal.js'
import type { SavedLayout } from './apply.js'
import { decodeLayout, LayoutKind } from './kind.js'

/** Saved layouts: the records of kind `window_layout`, as a workspace sees them. Read when asked for. */
export class Layouts {
  constructor(private readonly kernel: Pick<PluginKernel, 'db' | 'records'>) {}

  /** Saved layouts that this workspace can apply: its own and those of all. */
  list({ id }: Workspace, actor: Actor) {
    const records = this.kernel.records.list({ kind: LayoutKind.name, as: actor })
    return records.filter(record => appliesTo(record.scope, id)).map(recordToWire)
  }

  /** Throws the faults of records. */
  async save({ id }: Workspace, profileId: string, body: PutLayoutProfileBody, actor: Actor) {
    const { kind, id: scopeId } = body.scope
    const scope: RecordScope =
      kind === 'workspace' ? { kind, id: scopeId ?? id } : { kind, ...(scopeId && { id: scopeId }) }
    if (scope.kind === 'workspace' && scope.id !== id)
      throw KernelErrors.invalid_scope(`scope.id is not the id of this workspace, ${id}`)
    const { record, created } = await this.kernel.db.tx(t =>
      this.kernel.records.put(t, actor, {
        kind: LayoutKind.name,
        id: profileId,
        scope,
        spec: body.spec,
        expectedVersion: body.expected_version ?? 0,
      }),
    )
    return { created, record: recordToWire(record) }
  }

  async delete({ id }: Workspace, profileId: string, version: number, actor: Actor): Promise<void> {
    await this.kernel.db.tx(t => {
      const record = this.kernel.records.get(LayoutKind.name, profileId, actor)
      if (!record || !appliesTo(record.scope, id))
        throw KernelErrors.record_not_found(`there is no layout ${profileId}`, { next: 'svc layout list' })
      this.kernel.records.delete(t, actor, {
        kind: LayoutKind.name,
        id: profileId,
        expectedVersion: version,
        direct: true,
      })
    })
  }

  /** One that the workspace can apply; throws a Refusal for one that is stored and not valid. */
  find(workspaceId: string, id: string): SavedLayout | undefined {
    const record = this.kernel.records.get(LayoutKind.name, id)
    if (!record || !appliesTo(record.scope, workspaceId)) return undefined
    const decoded = decodeLayout(record.spec, record.scope)
    if (decoded.is === 'layout') return decoded.layout
    return refuse('invalid_topology', `the layout ${id} is not valid`, { diagnostics: [...decoded.diagnostics] })
  }
}

const appliesTo = (scope: RecordScope, workspaceId: string) => scope.kind !== 'workspace' || scope.id === workspaceId
