import { SerialBy } from '../../../kernel/kit/serial.js'
import { column, table } from '../../../kernel/kit/table.js'
import { type Actor, iso } from '../../../kernel/plugin.js'
import type { WorkspaceTrust } from '../../../schemas/workspaces/trust.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { type TrustApi, TrustErrors } from './api.js'
import { filesOf } from './files.js'
import type { K } from './needs.js'

export const trustTable = `CREATE TABLE trust_workspace (
  workspace_id TEXT PRIMARY KEY,
  digest TEXT NOT NULL,
  actor TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT`

const { text, time } = column

/** Trusted workspaces: the digest of their files, and who granted trust when. */
export const trusted = table('trust_workspace', { workspace_id: text(), digest: text(), actor: text(), at: time() })

/**
 * Trust of workspaces: an operator's decision about a digest, stored outside of the workspace, where its files cannot change it.
 */
export class TrustService implements TrustApi {
  readonly #writes = new SerialBy()

  constructor(private readonly kernel: K) {}

  async of(workspace: Workspace): Promise<WorkspaceTrust> {
    const { files, digest } = await filesOf(workspace, this.kernel.home.root)
    const row = trusted.get(this.kernel.db, { workspace_id: workspace.id })
    const state =
      files.length === 0 ? 'empty' : row === undefined ? 'untrusted' : row.digest === digest ? 'trusted' : 'changed'
    return {
      workspace_id: workspace.id,
      state,
      digest,
      files: [...files],
      trusted_at: row ? iso(row.at) : null,
      ...(row && { trusted_by: row.actor }),
    }
  }

  async allows(workspace: Workspace): Promise<boolean> {
    const state = await this.of(workspace).then(
      trust => trust.state,
      () => 'untrusted',
    )
    return state === 'empty' || state === 'trusted'
  }

  /** Serialized per workspace: otherwise one writer would take another's change for a foreign one. */
  keeping<T>(workspace: Workspace, work: () => Promise<T>): Promise<T> {
    return this.#writes.run(workspace.id, async () => {
      const isAllowed = await this.allows(workspace)
      const result = await work()
      if (isAllowed) {
        const { files, digest } = await filesOf(workspace, this.kernel.home.root)
        if (files.length > 0) await this.#store(workspace.id, digest, this.kernel.actor)
      }
      return result
    })
  }

  find(reference: string): Promise<Workspace> {
    return this.kernel.needs.workspaces.find(reference)
  }

  /** @throws Fault `trust_changed`, `trust_unreadable` */
  grant(workspace: Workspace, digest: string, actor: Actor): Promise<WorkspaceTrust> {
    return this.#writes.run(workspace.id, async () => {
      const now = await filesOf(workspace, this.kernel.home.root)
      if (now.digest !== digest) throw TrustErrors.trust_changed()
      await this.#store(workspace.id, digest, actor)
      await this.#tell()
      return this.of(workspace)
    })
  }

  revoke({ id }: Workspace): Promise<void> {
    return this.#writes.run(id, async () => {
      await this.forget(id)
      await this.#tell()
    })
  }

  async forget(id: string): Promise<void> {
    await this.kernel.db.tx(t => trusted.delete(t, { workspace_id: id }))
  }

  /** Trust enables or disables the hooks of a workspace's skills. */
  async #tell(): Promise<void> {
    await this.kernel.needs.hooks.current?.refresh()
  }

  async #store(id: string, digest: string, actor: Actor): Promise<void> {
    const row = { workspace_id: id, digest, actor: actor.id, at: this.kernel.clock.now() }
    await this.kernel.db.tx(t => trusted.replace(t, row))
  }
}
