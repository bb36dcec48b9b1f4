import { createRequire } from 'node:module'
import path from 'node:path'
import { LEASE_MS, type Queue, WORK } from './queue.js'

/** A client of `pg`, as far as it is used here. */
interface Client {
  connect(): Promise<void>
  query(
    query: string | { name: string; text: string; values: readonly unknown[] },
  ): Promise<{ rowCount: number | null; rows: { id: string }[] }>
  end(): Promise<void>
}

const SCHEMA = `
CREATE TABLE IF NOT EXISTS task (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title text NOT NULL, status text NOT NULL DEFAULT 'queued',
  priority integer NOT NULL DEFAULT 20, queued_at timestamptz NOT NULL DEFAULT now(), holder integer,
  lease_until timestamptz, ended_at timestamptz
);
CREATE INDEX IF NOT EXISTS task_free ON task (priority DESC, queued_at, id) WHERE status = 'queued'`
const CLAIM = `
UPDATE task SET status = 'claimed', holder = $1, lease_until = now() + $2 * interval '1 ms' WHERE id = (
  SELECT id FROM task WHERE status = 'queued' ORDER BY priority DESC, queued_at, id FOR UPDATE SKIP LOCKED LIMIT 1
) RETURNING id`
const HEARTBEAT = `
UPDATE task SET lease_until = now() + $3 * interval '1 ms' WHERE id = $1 AND holder = $2 AND status = 'claimed' AND lease_until > now()`
const COMPLETE = `
UPDATE task SET status = 'completed', ended_at = now(), lease_until = NULL
WHERE id = $1 AND holder = $2 AND status = 'claimed' AND lease_until > now()`

/** PostgreSQL behind a Unix socket in a folder: one statement, prepared, and one commit for each step. */
export async function postgresQueue(bench: string, folder: string, claimants: number): Promise<Queue> {
  const { Client } = createRequire(path.join(bench, 'package.json'))('pg') as {
    Client: new (options: object) => Client
  }
  const clients = Array.from(
    { length: claimants },
    () => new Client({ host: folder, user: 'postgres', database: 'postgres' }),
  )
  for (const client of clients) await client.connect()
  const first = clients[0] as Client
  const claimed = new Map<number, unknown>()
  await first.query(SCHEMA)
  return {
    fill: async count => {
      const text = 'INSERT INTO task (title) SELECT $1 FROM generate_series(1, $2::integer)'
      await first.query({ name: 'fill', text, values: [WORK, count] })
    },
    cycle: async n => {
      const client = clients[n] as Client
      const step = async (name: string, text: string, values: readonly unknown[]) => {
        const { rowCount, rows } = await client.query({ name, text, values })
        if (rowCount !== 1) throw new Error(`PostgreSQL: ${name} changed ${rowCount} rows`)
        return rows
      }
      const [row] = await step('claim', CLAIM, [n, LEASE_MS])
      await step('heartbeat', HEARTBEAT, [row?.id, n, LEASE_MS])
      await step('complete', COMPLETE, [row?.id, n])
    },
    next: async n => {
      const client = clients[n] as Client
      const held = claimed.get(n)
      await client.query({ name: 'begin', text: 'BEGIN', values: [] })
      if (held !== undefined) await client.query({ name: 'complete', text: COMPLETE, values: [held, n] })
      const { rows } = await client.query({ name: 'claim', text: CLAIM, values: [n, LEASE_MS] })
      await client.query({ name: 'commit', text: 'COMMIT', values: [] })
      if (!rows[0]) throw new Error('PostgreSQL: there is nothing to claim')
      claimed.set(n, rows[0].id)
    },
    close: async () => {
      for (const client of clients) await client.end()
    },
  }
}
