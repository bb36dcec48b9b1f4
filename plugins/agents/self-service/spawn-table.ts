import { column, table } from '../../../kernel/kit/table.js'

/** Migrations; only append to this list. */
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

const { flag, text, time } = column

/** Spawned sessions with their parents and expiry. `digest` is that of the request without its key. */
export const children = table('self_service_child', {
  session_id: text(),
  parent_id: text(),
  expires_at: time(),
  auto_stop: flag(),
  idempotency_key: text().nullable(),
  digest: text(),
})
