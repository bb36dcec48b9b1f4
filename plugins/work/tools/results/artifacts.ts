import { createHash } from 'node:crypto'
import path from 'node:path'
import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import { type Disk, isFull, readIfThere, replaceFile, systemDisk } from '../../../../kernel/platform.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { ArtifactQuery, ArtifactReply } from '../../../../schemas/tools.js'
import { toolFault } from '../api.js'
import type { K } from '../needs.js'

export const ARTIFACT_TABLE = `CREATE TABLE tools_artifact (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  tool_id TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  mime_type TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tools_artifact_workspace ON tools_artifact (workspace_id, created_at);`

/** Folder of the home with one file per artifact. */
export const ARTIFACT_FOLDER = 'tool-artifacts'
/** Maximum bytes of a result; larger ones are not stored. */
export const MAX_ARTIFACT_BYTES = 16 * 1024 * 1024
const PAGE_BYTES = 64 * 1024
const ID = /^tar_[0-9a-f]{16}$/

const { integer, text, time } = column

/** Stored results. */
export const artifacts = table('tools_artifact', {
  id: text(),
  workspace_id: text(),
  session_id: text(),
  tool_id: text(),
  bytes: integer(),
  mime_type: text(),
  /** Hex. */
  sha256: text(),
  created_at: time(),
})
export type ArtifactRow = RowOf<typeof artifacts>

/** Limits of stored results: count, bytes and age in milliseconds. */
export interface ArtifactLimits {
  readonly count: number
  readonly bytes: number
  readonly ageMs: number
}

/** Results that are too large to return, readable in pages. The oldest ones are deleted beyond the limits. */
export class Artifacts {
  readonly #disk: Disk = systemDisk()

  constructor(
    private readonly kernel: K,
    private readonly limits: () => ArtifactLimits,
  ) {}

  /** @throws Fault `tool_result_too_large`, `tool_result_persistence_failed` */
  async store(
    about: Pick<ArtifactRow, 'workspace_id' | 'session_id' | 'tool_id' | 'mime_type'>,
    data: Buffer,
  ): Promise<ArtifactRow> {
    const toolId = about.tool_id
    if (data.length > MAX_ARTIFACT_BYTES)
      throw toolFault(
        'tool_result_too_large',
        ['result_budget_exceeded'],
        `the result has ${data.length} bytes, at most ${MAX_ARTIFACT_BYTES} are kept`,
        { toolId },
      )
    const { ids, db, clock } = this.kernel
    const row: ArtifactRow = {
      ...about,
      id: ids.id('tar'),
      bytes: data.length,
      sha256: createHash('sha256').update(data).digest('hex'),
      created_at: clock.now(),
    }
    try {
      await this.#disk.mkdir(this.kernel.home.path(ARTIFACT_FOLDER))
      await replaceFile(this.#disk, this.#file(row.id), data)
      await db.tx(t => artifacts.insert(t, row))
    } catch (cause) {
      const text = isFull(cause) ? 'the disk is full' : messageOf(cause)
      throw toolFault(
        'tool_result_persistence_failed',
        ['result_persistence_failed'],
        `the result could not be stored: ${text}`,
        { toolId, cause },
      )
    }
    await this.prune()
    return row
  }

  /**
   * @throws Fault 404 `tool_not_found` with the reason `tool_artifact_not_found`; `tool_backend_failed` for a damaged
   *   file
   */
  async page(
    workspaceId: string,
    id: string,
    { offset = 0, limit = PAGE_BYTES }: ArtifactQuery,
  ): Promise<ArtifactReply> {
    const row = ID.test(id) ? artifacts.get(this.kernel.db, { id, workspace_id: workspaceId }) : undefined
    if (!row)
      throw toolFault('tool_not_found', ['tool_artifact_not_found'], 'no such stored result in this workspace', {
        next: 'call the tool again; results are kept for a limited time',
      })
    const data = Buffer.from(
      (await readIfThere(this.#disk, this.#file(id), { maxBytes: MAX_ARTIFACT_BYTES }).catch(() => undefined)) ?? [],
    )
    if (createHash('sha256').update(data).digest('hex') !== row.sha256)
      throw toolFault('tool_backend_failed', ['tool_artifact_corrupt'], 'the stored result is damaged or gone', {
        next: 'call the tool again',
      })
    const part = data.subarray(offset, offset + limit)
    return {
      artifact: artifactToWire(row),
      bytes: part.length,
      data_base64: part.toString('base64'),
      eof: offset + part.length >= data.length,
      next_offset: Math.min(offset + part.length, data.length),
      offset,
      total_bytes: data.length,
    }
  }

  /** Deletes results beyond the limits, and files without a row. */
  async prune(): Promise<void> {
    const { count, bytes, ageMs } = this.limits()
    const since = this.kernel.clock.now() - ageMs
    let sum = 0
    const rows = artifacts.all(this.kernel.db, {}, 'ORDER BY created_at DESC, id')
    const gone = rows.filter((row, n) => {
      sum += row.bytes
      return n >= count || sum > bytes || row.created_at < since
    })
    await this.#remove(gone)
  }

  /** Deletes the file of a deleted row. */
  async unlink(id: string): Promise<void> {
    await Promise.resolve(this.#disk.unlink(this.#file(id))).catch(error =>
      this.kernel.log.warn('a stored result could not be removed', { id, error: messageOf(error) }),
    )
  }

  /** Deletes files without a row, left by a crash or by a replaced database. */
  async sweep(): Promise<void> {
    const folder = this.kernel.home.path(ARTIFACT_FOLDER)
    const known = new Set(this.kernel.db.rows('SELECT id FROM tools_artifact').map(([id]) => id))
    for (const name of await this.#disk.list(folder))
      if (ID.test(name) && !known.has(name)) await this.#disk.unlink(path.join(folder, name))
    await this.prune()
  }

  async #remove(rows: readonly ArtifactRow[]): Promise<void> {
    if (rows.length === 0) return
    // The row is deleted first: a file without a row is swept, but a row without its file would be damage.
    await this.kernel.db.tx(t => {
      for (const { id } of rows) artifacts.delete(t, { id })
    })
    for (const { id } of rows) await this.unlink(id)
  }

  #file(id: string): string {
    return this.kernel.home.path(ARTIFACT_FOLDER, id)
  }
}

export const artifactUri = ({ id, workspace_id }: Pick<ArtifactRow, 'id' | 'workspace_id'>): string =>
  `/api/workspaces/${encodeURIComponent(workspace_id)}/tool-artifacts/${id}`

export const artifactToWire = (row: ArtifactRow) => ({
  uri: artifactUri(row),
  name: row.id,
  bytes: row.bytes,
  mime_type: row.mime_type,
  sha256: row.sha256,
})
