import { column, table } from '../../../../kernel/kit/table.js'
import type { Db } from '../../../../kernel/plugin.js'

export const keptListsTable = `CREATE TABLE mcp_tool_list (
  server_key TEXT PRIMARY KEY,
  told TEXT NOT NULL,
  listed_at INTEGER NOT NULL
) STRICT`

export const keptLists = table('mcp_tool_list', {
  server_key: column.text(),
  /** JSON. */
  told: column.text(),
  listed_at: column.time(),
})

/** Bytes of one cached list; a server with a longer list is asked after every start. */
const MOST_BYTES = 1024 * 1024
const MOST_LISTS = 256

/** Cached tool lists by the key of the declaration, so that a list is available without starting the server. */
export class KeptLists {
  constructor(private readonly db: Db) {}

  read(key: string): readonly unknown[] | undefined {
    const row = keptLists.get(this.db, { server_key: key })
    return row && (JSON.parse(row.told) as unknown[])
  }

  /** Stores a changed list; the oldest lists are deleted beyond the limit. */
  async keep(key: string, listedTools: readonly unknown[], now: number): Promise<void> {
    const text = JSON.stringify(listedTools)
    const before = keptLists.get(this.db, { server_key: key })
    if (before?.told === text || Buffer.byteLength(text) > MOST_BYTES) return
    await this.db.tx(t => {
      keptLists.replace(t, { server_key: key, told: text, listed_at: now })
      t.run(
        `DELETE FROM mcp_tool_list WHERE server_key NOT IN
          (SELECT server_key FROM mcp_tool_list ORDER BY listed_at DESC LIMIT ${MOST_LISTS})`,
      )
    })
  }
}
