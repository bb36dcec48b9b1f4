import * as v from 'valibot'
import { History } from '../../../kernel/kit/history.js'
import { Paging } from '../../../kernel/kit/page.js'
import { type Actor, type Db, iso, type Tx } from '../../../kernel/plugin.js'
import type { HeartbeatRevision, SoulRevision } from '../../../schemas/agents/sidecars.js'
import { SidecarErrors } from './api.js'
import { SIDECARS, type Which } from './places.js'

/** Revisions of one file that are kept, the newest. */
const KEPT = 50
const DEFAULT_PAGE = 20
const paging = new Paging({ place: v.pipe(v.number(), v.safeInteger()), invalid: SidecarErrors.sidecar_cursor_invalid })

export const revisionTable = `CREATE TABLE sidecars_revision (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, which TEXT NOT NULL, path TEXT NOT NULL, agent_name TEXT NOT NULL,
  operation TEXT NOT NULL, actor_kind TEXT NOT NULL, actor_ref TEXT NOT NULL, previous_digest TEXT, new_digest TEXT,
  snapshot_id TEXT, text TEXT, idempotency_key TEXT, request TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
CREATE INDEX sidecars_revision_of ON sidecars_revision (which, path, seq)`

export type Operation = 'write' | 'delete' | 'rollback'
export type RevisionActor = HeartbeatRevision['actor']

/** One change of one file. */
export type RevisionRow = {
  readonly seq: number
  readonly id: string
  readonly which: Which
  readonly path: string
  readonly agent_name: string
  readonly operation: Operation
  readonly actor_kind: RevisionActor['kind']
  readonly actor_ref: string
  readonly previous_digest: string | null
  readonly new_digest: string | null
  readonly snapshot_id: string | null
  /** Of the file from then on; null: it was deleted. */
  readonly text: string | null
  readonly idempotency_key: string | null
  /** Digest of what was asked for, to tell a repetition from another request with its key. */
  readonly request: string
  readonly at: number
}

/** The history of sidecars: what stood in each file, so that it can stand there again. */
export class Revisions {
  readonly #history: History<RevisionRow>

  constructor(private readonly db: Db) {
    this.#history = new History(db, { table: 'sidecars_revision' })
  }

  newest(which: Which, path: string): RevisionRow | undefined {
    return this.#history.newest({ which, path })
  }

  /** Inserts a row and forgets those that it pushes out. */
  insert(t: Tx, row: Omit<RevisionRow, 'seq'>): void {
    const { which, path } = row
    this.#history.append(t, row)
    this.#history.prune(t, { which, path }, { newest: KEPT })
  }

  /** The change that a key was given for before. Throws `sidecar_idempotency_conflict` (409) when it was another one. */
  replay(which: Which, path: string, key: string | undefined, request: string): RevisionRow | undefined {
    if (key === undefined) return undefined
    const row = this.db.get<RevisionRow>(
      'SELECT * FROM sidecars_revision WHERE which = ? AND path = ? AND idempotency_key = ?',
      [which, path, key],
    )
    if (row && row.request !== request) throw SidecarErrors.sidecar_idempotency_conflict()
    return row
  }

  /** By id, or the newest with a digest. Throws `sidecar_revision_not_found` (404), `sidecar_revision_empty` (409). */
  target(
    which: Which,
    path: string,
    by: { readonly id?: string | undefined; readonly digest?: string | undefined },
    agent: string,
  ): RevisionRow & { readonly text: string } {
    if (by.id === undefined && by.digest === undefined) throw SidecarErrors.sidecar_revision_unnamed()
    const row = this.db.get<RevisionRow>(
      `SELECT * FROM sidecars_revision WHERE which = ? AND path = ? AND ${by.id === undefined ? 'new_digest' : 'id'} = ?
       ORDER BY seq DESC LIMIT 1`,
      [which, path, by.id ?? by.digest ?? ''],
    )
    if (!row) {
      throw SidecarErrors.sidecar_revision_not_found(
        `agent ${agent} has no revision ${by.id ?? by.digest} of this file`,
        { next: SIDECARS[which].history(agent) },
      )
    }
    const { text } = row
    if (text === null) throw SidecarErrors.sidecar_revision_empty()
    return { ...row, text }
  }

  /** Newest first. @throws Fault `sidecar_cursor_invalid` */
  page(
    which: Which,
    path: string,
    actor: Actor,
    { limit = DEFAULT_PAGE, cursor }: { limit?: number | undefined; cursor?: string | undefined },
  ) {
    const of = { actor, query: { which, path } }
    const behind = paging.after(of, cursor)
    const found = this.#history.page({ which, path }, { limit: limit + 1, behind })
    const { has_more: _, ...page } = paging.cut(of, found, limit, ({ seq }) => seq)
    return page
  }
}

/** Who changed a file, as a history names them. */
export function actorOf({ kind, id, owner }: Actor): RevisionActor {
  if (owner.kind === 'session') return { kind: 'agent', ref: owner.id }
  if (kind === 'extension') return { kind: 'extension', ref: id }
  return { kind: id === 'daemon-control' ? 'user' : 'system', ref: id }
}

const common = (row: RevisionRow) => ({
  id: row.id,
  actor: { kind: row.actor_kind, ref: row.actor_ref },
  agent_name: row.agent_name,
  created_at: iso(row.at),
  ...(row.new_digest !== null && { new_digest: row.new_digest }),
  ...(row.previous_digest !== null && { previous_digest: row.previous_digest }),
  source_path: row.path,
})

export const heartbeatRevision = (row: RevisionRow): HeartbeatRevision => ({
  ...common(row),
  operation: row.operation,
  ...(row.snapshot_id !== null && { new_snapshot_id: row.snapshot_id }),
})

export const soulRevision = (row: RevisionRow): SoulRevision => ({
  ...common(row),
  action: row.operation === 'write' ? 'put' : row.operation,
})
