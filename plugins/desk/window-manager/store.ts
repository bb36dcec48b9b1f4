import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { History } from '../../../kernel/kit/history.js'
import type { Db, Migration, Tx } from '../../../kernel/plugin.js'
import type { HistoryEntry } from '../../../schemas/window-manager.js'
import { DOCUMENT_VERSION, emptyDocument, type WindowDocument } from './document/document.js'
import { Refusal, refuse } from './refusal.js'

export const migrations: readonly Migration[] = [
  {
    id: '001-document',
    sql: `CREATE TABLE window_manager_document (
      workspace_id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, body TEXT NOT NULL, updated_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE window_manager_history (
      seq INTEGER PRIMARY KEY, workspace_id TEXT NOT NULL, side TEXT NOT NULL, entry TEXT NOT NULL
    ) STRICT;
    CREATE INDEX window_manager_history_side ON window_manager_history (workspace_id, side, seq);`,
  },
]

export type Side = 'undo' | 'redo'

/** No limit on the entries of a history. */
const ALL = -1

/** A stored document; it is at revision 0 before its first command. */
export interface StoredDocument {
  readonly document: WindowDocument
  readonly revision: number
  /** Epoch milliseconds; undefined before the first change. */
  readonly updatedAt: number | undefined
}

export interface WrittenDocument extends StoredDocument {
  readonly updatedAt: number
}

type HistoryRow = { seq: number; workspace_id: string; side: Side; entry: string }
type Row = { body: string; revision: number; updated_at: number }

/** The documents of workspaces, read on demand, and their histories with one row per entry. */
export class DocumentStore {
  readonly #history: History<HistoryRow>

  constructor(private readonly db: Db) {
    this.#history = new History(db, { table: 'window_manager_history' })
  }

  read(workspaceId: string): StoredDocument {
    const row = this.db.get<Row>(
      'SELECT body, revision, updated_at FROM window_manager_document WHERE workspace_id = ?',
      [workspaceId],
    )
    if (!row) return { document: emptyDocument(workspaceId), revision: 0, updatedAt: undefined }
    const body = this.#parsed<Omit<WindowDocument, 'version' | 'workspace_id'>>(workspaceId, row.body)
    const document = { version: DOCUMENT_VERSION, workspace_id: workspaceId, ...body }
    return { document, revision: row.revision, updatedAt: row.updated_at }
  }

  /**
   * Like {@link read}, for replacing the document: a damaged document becomes an empty one with the same revision and without
   * history.
   */
  readToReplace(t: Tx, workspaceId: string): StoredDocument {
    try {
      for (const side of ['undo', 'redo'] as const) this.history(workspaceId, side, ALL)
      return this.read(workspaceId)
    } catch (error) {
      const revision = error instanceof Refusal ? error.more.current_revision : undefined
      if (revision === undefined) throw error
      this.delete(t, workspaceId)
      const empty = { document: emptyDocument(workspaceId), revision, updatedAt: 0 }
      this.write(t, empty)
      return empty
    }
  }

  write(t: Tx, { document, revision, updatedAt }: WrittenDocument): void {
    const { workspace_id, desktops, windows, overrides } = document
    t.run(
      `INSERT INTO window_manager_document (workspace_id, revision, body, updated_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (workspace_id) DO UPDATE
       SET revision = excluded.revision, body = excluded.body, updated_at = excluded.updated_at`,
      [workspace_id, revision, JSON.stringify({ desktops, windows, overrides }), updatedAt],
    )
  }

  /** The newest entries of one side, at most `newest`, with the next entry last. */
  history(workspaceId: string, side: Side, newest: number): HistoryEntry[] {
    return this.#history
      .page({ workspace_id: workspaceId, side }, { limit: newest })
      .map(row => this.#parsed<HistoryEntry>(workspaceId, row.entry))
      .reverse()
  }

  /** Adds an entry as the next one; removes the oldest beyond `limit`. */
  push(t: Tx, workspaceId: string, side: Side, entry: HistoryEntry, limit: number): void {
    this.#history.append(t, { workspace_id: workspaceId, side, entry: JSON.stringify(entry) })
    this.trim(t, workspaceId, side, limit)
  }

  /** Removes the oldest entries beyond `limit`. */
  trim(t: Tx, workspaceId: string, side: Side, limit: number): void {
    this.#history.prune(t, { workspace_id: workspaceId, side }, { newest: limit })
  }

  /** Removes the next entry. */
  pop(t: Tx, workspaceId: string, side: Side): void {
    this.#history.pop(t, { workspace_id: workspaceId, side })
  }

  clear(t: Tx, workspaceId: string, side: Side): void {
    this.#history.forget(t, { workspace_id: workspaceId, side })
  }

  /** Deletes the document and histories of a workspace. */
  delete(t: Tx, workspaceId: string): void {
    this.#history.forget(t, { workspace_id: workspaceId })
    t.run('DELETE FROM window_manager_document WHERE workspace_id = ?', [workspaceId])
  }

  #parsed<T>(workspaceId: string, text: string): T {
    try {
      return JSON.parse(text)
    } catch {
      const sql = 'SELECT revision FROM window_manager_document WHERE workspace_id = ?'
      return refuse(
        'unavailable',
        'the stored layout of this workspace is damaged; apply another layout to replace it',
        {
          current_revision: this.db.get<Pick<Row, 'revision'>>(sql, [workspaceId])?.revision ?? 0,
          next: command('layout apply', '--file', placeholder('layout')),
        },
      )
    }
  }
}
