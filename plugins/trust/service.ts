import { SerialBy } from '../../kernel/kit/serial.js'
import { type Actor, iso, type MaybeToken, type PluginKernel } from '../../kernel/plugin.js'
import type { WorkspaceTrust } from '../../schemas/workspaces/trust.js'
import type { HooksApi } from '../hooks/api.js'
import type { Workspace, Workspaces } from '../workspaces/api.js'
import { type TrustApi, TrustErrors } from './api.js'
import { filesOf } from './files.js'

export const trustTable = `CREATE TABLE trust_workspace (
  workspace_id TEXT PRIMARY KEY,
  digest TEXT NOT NULL,
  actor TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT`

interface Row {
  readonly digest: string
  readonly actor: string
  readonly at: number
}

/** Which workspaces may run code: an operator's decision about a digest, kept where no file of the workspace can change it. */
export class TrustService implements TrustApi {
  readonly #writes = new SerialBy()

  constructor(private readonly kernel: PluginKernel<{ workspaces: typeof Workspaces; hooks: MaybeToken<HooksApi> }>) {}

  async of(workspace: Workspace): Promise<WorkspaceTrust> {
    const { files, digest } = await filesOf(workspace, this.kernel.home.root)
    const row = this.#row(workspace.id)
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

  /** One writer at a time: otherwise one would take the other's change for somebody else's. */
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
    await this.kernel.db.tx(t => t.run('DELETE FROM trust_workspace WHERE workspace_id = ?', [id]))
  }

  /** Skills of a workspace bring hooks, which are in force or not from now on. */
  async #tell(): Promise<void> {
    await this.kernel.needs.hooks.current?.refresh()
  }

  #row(id: string): Row | undefined {
    return this.kernel.db.get<Row>('SELECT digest, actor, at FROM trust_workspace WHERE workspace_id = ?', [id])
  }

  async #store(id: string, digest: string, actor: Actor): Promise<void> {
    const sql = 'INSERT OR REPLACE INTO trust_workspace (workspace_id, digest, actor, at) VALUES (?, ?, ?, ?)'
    await this.kernel.db.tx(t => t.run(sql, [id, digest, actor.id, this.kernel.clock.now()]))
  }
}
