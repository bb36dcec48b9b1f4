import type { Db, Tx } from '../../../kernel/plugin.js'

/** Migrations: one only ever adds to the list. */
export const SPAWN_TABLES = [
  {
    id: '001-child',
    sql: `
CREATE TABLE self_service_child (
  session_id TEXT PRIMARY KEY,
  parent_id TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  auto_stop INTEGER NOT NULL,
  idempotency_key TEXT,
  digest TEXT NOT NULL
) STRICT;
CREATE INDEX self_service_child_parent ON self_service_child (parent_id);
CREATE UNIQUE INDEX self_service_child_key ON self_service_child (parent_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL`,
  },
] as const

/** A spawned session. Times in epoch milliseconds. */
export interface Child {
  readonly session_id: string
  readonly parent_id: string
  readonly expires_at: number
  /** 1: it stops with its parent. */
  readonly auto_stop: number
  readonly idempotency_key: string | null
  /** Of the request, without its key. */
  readonly digest: string
}

/** Who spawned whom, and until when. */
export class SpawnTable {
  constructor(private readonly db: Db) {}

  get(id: string): Child | undefined {
    return this.db.get<Child>('SELECT * FROM self_service_child WHERE session_id = ?', [id])
  }

  of(parent: string): Child[] {
    return this.db.all<Child>('SELECT * FROM self_service_child WHERE parent_id = ?', [parent])
  }

  all(): Child[] {
    return this.db.all<Child>('SELECT * FROM self_service_child')
  }

  insert(t: Tx, child: Child): void {
    const names = Object.keys(child)
    const values = Object.values(child) as (string | number | null)[]
    t.run(`INSERT INTO self_service_child (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`, values)
  }
}
