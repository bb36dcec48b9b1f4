import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { Tx } from '../../../../kernel/plugin.js'
import { Grant } from '../../../../schemas/tools.js'
import type { K } from '../needs.js'

export const GRANT_TABLE = `CREATE TABLE tools_grant (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  tool_id TEXT NOT NULL,
  input_digest TEXT NOT NULL,
  tool_digest TEXT NOT NULL,
  decision TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL,
  UNIQUE (workspace_id, agent_name, tool_id, input_digest)
) STRICT;`

/** Maximum number of remembered decisions per workspace. */
export const MAX_GRANTS = 1000

/** Precision of the last use in milliseconds. */
const USE_GRAIN_MS = 60_000

const { text, time } = column

/** Remembered decisions. */
export const grants = table('tools_grant', {
  id: text(),
  workspace_id: text(),
  /** Empty: for all agents. */
  agent_name: text(),
  tool_id: text(),
  /** Empty: for every input. */
  input_digest: text(),
  /** Digest of the tool at the time of the decision. */
  tool_digest: text(),
  decision: text<'allow' | 'reject'>(),
  created_at: time(),
  last_used_at: time(),
})
type Row = RowOf<typeof grants>

/** Subject of a decision. */
export interface GrantOf {
  readonly workspaceId: string
  readonly agentName: string
  readonly toolId: string
  readonly inputDigest: string
  readonly toolDigest: string
}

/** Remembered decisions of people about calls, per workspace. */
export class Grants {
  constructor(private readonly kernel: K) {}

  list(workspaceId: string): Grant[] {
    return grants.all(this.kernel.db, { workspace_id: workspaceId }, 'ORDER BY created_at DESC, id').map(toWire)
  }

  /**
   * The decision for a call: a rejection of any scope takes precedence over an approval. An approval of another version
   * of the tool is ignored.
   */
  decide({ workspaceId, agentName, toolId, inputDigest, toolDigest }: GrantOf): Row | undefined {
    const decisive = `WHERE workspace_id = ? AND tool_id = ? AND agent_name IN ('', ?)
      AND input_digest IN ('', ?) AND (tool_digest = ? OR decision = 'reject')
      ORDER BY decision = 'reject' DESC, agent_name DESC, input_digest DESC LIMIT 1`
    return grants.query(this.kernel.db, decisive, [workspaceId, toolId, agentName, inputDigest, toolDigest])[0]
  }

  /**
   * Stores a decision; one about the same subject is replaced. Beyond the limit, the least recently used one is
   * deleted.
   */
  put(t: Tx, about: GrantOf, decision: 'allow' | 'reject'): Grant {
    const now = this.kernel.clock.now()
    const { workspaceId, agentName, toolId, inputDigest, toolDigest } = about
    const key = { workspace_id: workspaceId, agent_name: agentName, tool_id: toolId, input_digest: inputDigest }
    const made = { tool_digest: toolDigest, decision, last_used_at: now }
    if (grants.update(t, key, made) === 0)
      grants.insert(t, { ...key, ...made, id: this.kernel.ids.id('tgr'), created_at: now })
    t.run(
      `DELETE FROM tools_grant WHERE workspace_id = ? AND id NOT IN
       (SELECT id FROM tools_grant WHERE workspace_id = ? ORDER BY last_used_at DESC, id LIMIT ${MAX_GRANTS})`,
      [workspaceId, workspaceId],
    )
    return toWire(grants.get(t, key) as Row)
  }

  /** Returns whether the decision existed in the workspace. */
  async remove(workspaceId: string, id: string): Promise<boolean> {
    return this.kernel.db.tx(t => grants.delete(t, { workspace_id: workspaceId, id }) > 0)
  }

  /** Records the use of a decision, to the minute: not every call should wait for the disk. */
  async used({ id, last_used_at }: Row): Promise<void> {
    const now = this.kernel.clock.now()
    if (now - last_used_at < USE_GRAIN_MS) return
    await this.kernel.db.tx(t => grants.update(t, { id }, { last_used_at: now }))
  }
}

const toWire = (row: Row): Grant =>
  grants.wire(row, Grant, { agent_name: row.agent_name || undefined, input_digest: row.input_digest || undefined })
