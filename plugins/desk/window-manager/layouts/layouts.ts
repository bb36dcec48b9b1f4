import { command } from '../../../../kernel/kit/commands/command-line.js'
import {
  type Actor,
  KernelErrors,
  type RecordScope,
  recordToWire,
  type StoredRecord,
} from '../../../../kernel/plugin.js'
import type { PutLayoutProfileBody, WindowLayoutSpec } from '../../../../schemas/window-manager.js'
import { type RecordKernel, Repository } from '../../../platform/resources/api.js'
import type { Workspace } from '../../workspaces/api.js'
import { refuse } from '../refusal.js'
import type { SavedLayout } from './apply.js'
import { decodeLayout, LayoutKind } from './kind.js'

/** Saved layouts: records of the kind `window_layout` that apply to a workspace, read on demand. */
export class Layouts {
  readonly #records: Repository<WindowLayoutSpec>

  constructor(private readonly kernel: RecordKernel) {
    this.#records = new Repository(LayoutKind, kernel, command('layout list'))
  }

  /** Saved layouts that this workspace can apply: its own and global ones. */
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
    const write = { id: profileId, scope, spec: body.spec, expectedVersion: body.expected_version ?? 0 }
    const { record, created } = await this.#records.put(actor, write)
    return { created, record: recordToWire(record) }
  }

  /** Throws the faults of records. */
  async delete({ id }: Workspace, profileId: string, expectedVersion: number, actor: Actor): Promise<void> {
    const mayGo = ({ scope }: StoredRecord) => appliesTo(scope, id)
    await this.#records.delete(actor, profileId, { expectedVersion, direct: true, mayGo })
  }

  /** A layout that the workspace can apply; throws a Refusal if the stored layout is invalid. */
  find(workspaceId: string, id: string): SavedLayout | undefined {
    const record = this.kernel.records.get(LayoutKind.name, id)
    if (!record || !appliesTo(record.scope, workspaceId)) return undefined
    const decoded = decodeLayout(record.spec, record.scope)
    if (decoded.is === 'layout') return decoded.layout
    return refuse('invalid_topology', `the layout ${id} is not valid`, { diagnostics: [...decoded.diagnostics] })
  }
}

const appliesTo = (scope: RecordScope, workspaceId: string) => scope.kind !== 'workspace' || scope.id === workspaceId
