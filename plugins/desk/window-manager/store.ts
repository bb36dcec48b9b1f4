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

/** Entries of a history, whatever its limit. */
const ALL = -1

/** A document as it is stored; one that no command has changed yet is at revision 0. */
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

/** The documents of workspaces, read when asked for, and their histories, of which each entry is a row. */
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

  /** As {@link read}, for who puts another document there: of a damaged one only the revision stays, and no history. */
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

  /** Entries of one side, the one that is next last; at most `newest` of them. */
  history(workspaceId: string, side: Side, newest: number): HistoryEntry[] {
    return this.#history
      .page({ workspace_id: workspaceId, side }, { limit: newest })
      .map(row => this.#parsed<HistoryEntry>(workspaceId, row.entry))
      .reverse()
  }

  /** Adds an entry that is next from now on; of more than `limit` the oldest go. */
  push(t: Tx, workspaceId: string, side: Side, entry: HistoryEntry, limit: number): void {
    this.#history.append(t, { workspace_id: workspaceId, side, entry: JSON.stringify(entry) })
    this.trim(t, workspaceId, side, limit)
  }

  /** Of more than `limit` entries the oldest go. */
  trim(t: Tx, workspaceId: string, side: Side, limit: number): void {
    this.#history.prune(t, { workspace_id: workspaceId, side }, { newest: limit })
  }

  /** Removes the entry that was next. */
  pop(t: Tx, workspaceId: string, side: Side): void {
    this.#history.pop(t, { workspace_id: workspaceId, side })
  }

  clear(t: Tx, workspaceId: string, side: Side): void {
    this.#history.forget(t, { workspace_id: workspaceId, side })
  }

  /** Forgets a workspace. */
  delete(t: Tx, workspaceId: string): void {
    this.#history.forget(t, { workspace_id: workspaceId })
    t.run('DELETE FROM window_manager_document WHERE workspace_id = ?', [workspaceId])
  }

  #parsed<T>(workspaceId: string, text: string): T {
    try {
      return JSON.parse(text)
    } catch {
      const sql = 'SELECT revision FROM window_manager_document WHERE workspace_id = ?'
      return refuse('unavailable', 'what is stored of this workspace is damaged; another layout can take its place', {
        current_revision: this.db.get<Pick<Row, 'revision'>>(sql, [workspaceId])?.revision ?? 0,
        next: command('layout apply', '--file', placeholder('layout')),
      })
    }
  }
}
