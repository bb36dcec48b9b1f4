import { iso, type Reads, type SqlValue, turn } from '../../../../kernel/plugin.js'
import { isFailure, logEventOf } from '../../../reach/observe/api.js'
import type { Content } from './content.js'

/** Rows per query. */
const PAGE = 500
const MOST_EVENTS = 20_000
const MOST_SESSIONS = 2000
const MOST_CHANGES = 1000

type Row = Readonly<Record<string, SqlValue>>

/** The newest events without their payloads, from the table with the newest 100,000 events. */
export async function eventSummaries(db: Reads): Promise<Content> {
  const items: unknown[] = []
  let before = Number.MAX_SAFE_INTEGER
  for (;;) {
    const rows = db.all<Row>('SELECT * FROM kernel_event WHERE seq < ? ORDER BY seq DESC LIMIT +?', [before, PAGE])
    for (const row of rows) items.push(eventSummary(row))
    before = Number(rows.at(-1)?.seq)
    if (rows.length < PAGE || items.length >= MOST_EVENTS) {
      const more = rows.length === PAGE && items.length >= MOST_EVENTS
      return { kind: 'list', head: { order: 'newest first' }, member: 'events', items, more }
    }
    await turn()
  }
}

function eventSummary(row: Row): unknown {
  const optional = { scope: row.scope, subject: row.subject, cause: row.cause }
  const event = {
    seq: Number(row.seq),
    id: `${row.id}`,
    at: Number(row.at),
    name: `${row.name}`,
    actor: { kind: `${row.actor_kind}`, id: `${row.actor_id}` },
    payload: parsed(row.payload),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null)),
  } as Parameters<typeof logEventOf>[0]
  const {
    content: _,
    agent_name,
    session_id,
    spawn_depth: __,
    component: ___,
    ...fields
  } = logEventOf(event, () => undefined)
  return {
    ...fields,
    ...(agent_name !== '' && { agent_name }),
    ...(session_id !== '' && { session_id }),
    ...(isFailure(event) && { failure: true }),
  }
}

/** Sessions, most recently active first, without prompts and answers. */
export function sessionRows(db: Reads): Content {
  const rows = db.all<Row>(
    `SELECT id, name, type, agent_name, workspace_id, provider, model, state, stop_reason, stop_detail, failure_kind,
       failure_summary, journal_bytes, last_activity_at, created_at, updated_at
     FROM sessions_session ORDER BY last_activity_at DESC LIMIT +?`,
    [MOST_SESSIONS + 1],
  )
  return listOf('sessions', rows, MOST_SESSIONS)
}

/** Changes of settings, newest first: keys and outcomes, no values. */
export function applyRecords(db: Reads): Content {
  const rows = db.all<Row>(
    `SELECT id, actor, status, lifecycle, next_action, target, keys, generation, diagnostics, created_at, applied_at,
       updated_at
     FROM settings_apply ORDER BY seq DESC LIMIT +?`,
    [MOST_CHANGES + 1],
  )
  const items = rows.map(row => ({ ...row, keys: parsed(row.keys), diagnostics: parsed(row.diagnostics) }))
  return listOf('entries', items, MOST_CHANGES)
}

function listOf(member: string, rows: readonly object[], most: number): Content {
  const items = rows.slice(0, most).map(row =>
    Object.fromEntries(
      Object.entries(row)
        .filter(([, value]) => value !== null)
        .map(([name, value]) => [name, name.endsWith('_at') && typeof value === 'number' ? iso(value) : value]),
    ),
  )
  return { kind: 'list', head: { order: 'newest first' }, member, items, more: rows.length > most }
}

function parsed(text: unknown): unknown {
  try {
    return JSON.parse(`${text}`)
  } catch {
    return undefined
  }
}
