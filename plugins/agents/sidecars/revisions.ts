import path from 'node:path'
import * as v from 'valibot'
import { History } from '../../../kernel/kit/history.js'
import { Paging } from '../../../kernel/kit/page.js'
import { type Actor, iso, messageOf, type PluginKernel, type Tx } from '../../../kernel/plugin.js'
import type { HeartbeatRevision, SoulRevision } from '../../../schemas/agents/sidecars.js'
import { isInside, type Workspaces } from '../../desk/workspaces/api.js'
import { SidecarErrors } from './api.js'
import { SIDECARS, type Which } from './locations.js'

/** Kept revisions per file, newest first. */
const KEPT = 50
const DEFAULT_PAGE = 20
const paging = new Paging({ place: v.pipe(v.number(), v.safeInteger()), invalid: SidecarErrors.sidecar_cursor_invalid })

export const revisionTable = `CREATE TABLE sidecars_revision (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, which TEXT NOT NULL, path TEXT NOT NULL, agent_name TEXT NOT NULL,
  operation TEXT NOT NULL, actor_kind TEXT NOT NULL, actor_ref TEXT NOT NULL, previous_digest TEXT, new_digest TEXT,
  snapshot_id TEXT, text TEXT, idempotency_key TEXT, request TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
CREATE INDEX sidecars_revision_of ON sidecars_revision (which, path, seq)`

/** Earlier versions write rows without `place`; the next start of this version fills it in. */
export const placeColumn = `ALTER TABLE sidecars_revision ADD COLUMN place TEXT;
CREATE INDEX sidecars_revision_at ON sidecars_revision (which, place, seq)`

export type Operation = 'write' | 'delete' | 'rollback'
export type RevisionActor = HeartbeatRevision['actor']

/** One change of one file. */
export type RevisionRow = {
  readonly seq: number
  readonly id: string
  readonly which: Which
  /** Path of the file at the time of the change; in a row that was read, its current path. */
  readonly path: string
  /** Path relative to the home or workspace, which survives a move of that. */
  readonly place: string
  readonly agent_name: string
  readonly operation: Operation
  readonly actor_kind: RevisionActor['kind']
  readonly actor_ref: string
  readonly previous_digest: string | null
  readonly new_digest: string | null
  readonly snapshot_id: string | null
  /** Text of the file after the change; null: deleted. */
  readonly text: string | null
  readonly idempotency_key: string | null
  /** Digest of the request, to distinguish a repetition from a different request with the same key. */
  readonly request: string
  readonly at: number
}

type Kernel = Pick<PluginKernel<{ workspaces: typeof Workspaces }>, 'db' | 'home' | 'log' | 'needs'>

/** Path of an agent's sidecar in a home that was moved; `.svc/agents` belongs to a workspace. */
const OF_FORMER_HOME = /(?:^|\/)(?<!\/\.svc\/)(agents\/[^/]+\/(?:SOUL|HEARTBEAT)\.md)$/

/** The history of sidecars, for restoring earlier texts. */
export class Revisions {
  readonly #history: History<RevisionRow>

  constructor(private readonly kernel: Kernel) {
    this.#history = new History(kernel.db, { table: 'sidecars_revision' })
    this.#placeOldRows()
  }

  newest(which: Which, path: string): RevisionRow | undefined {
    return at(path, this.#history.newest({ which, place: this.#placeOf(path) }))
  }

  /** Inserts a row and deletes the oldest ones beyond the limit. */
  insert(t: Tx, row: Omit<RevisionRow, 'seq' | 'place'>): void {
    const place = this.#placeOf(row.path)
    this.#history.append(t, { ...row, place })
    this.#history.prune(t, { which: row.which, place }, { newest: KEPT })
  }

  /** The earlier change with the same key. Throws `sidecar_idempotency_conflict` (409) if that was a different one. */
  replay(which: Which, path: string, key: string | undefined, request: string): RevisionRow | undefined {
    if (key === undefined) return undefined
    const row = this.kernel.db.get<RevisionRow>(
      'SELECT * FROM sidecars_revision WHERE which = ? AND place = ? AND idempotency_key = ?',
      [which, this.#placeOf(path), key],
    )
    if (row && row.request !== request) throw SidecarErrors.sidecar_idempotency_conflict()
    return at(path, row)
  }

  /**
   * The revision by id, or the newest one with a digest. Throws `sidecar_revision_not_found` (404),
   * `sidecar_revision_empty` (409).
   */
  target(
    which: Which,
    path: string,
    by: { readonly id?: string | undefined; readonly digest?: string | undefined },
    agent: string,
  ): RevisionRow & { readonly text: string } {
    if (by.id === undefined && by.digest === undefined) throw SidecarErrors.sidecar_revision_unnamed()
    const row = this.kernel.db.get<RevisionRow>(
      `SELECT * FROM sidecars_revision WHERE which = ? AND place = ? AND ${by.id === undefined ? 'new_digest' : 'id'} = ?
       ORDER BY seq DESC LIMIT 1`,
      [which, this.#placeOf(path), by.id ?? by.digest ?? ''],
    )
    if (!row) {
      throw SidecarErrors.sidecar_revision_not_found(
        `agent ${agent} has no revision ${by.id ?? by.digest} of this file`,
        { next: SIDECARS[which].history(agent) },
      )
    }
    const { text } = row
    if (text === null) throw SidecarErrors.sidecar_revision_empty()
    return { ...row, path, text }
  }

  /** Newest first. @throws Fault `sidecar_cursor_invalid` */
  page(
    which: Which,
    path: string,
    actor: Actor,
    { limit = DEFAULT_PAGE, cursor }: { limit?: number | undefined; cursor?: string | undefined },
  ) {
    const place = this.#placeOf(path)
    const of = { actor, query: { which, place } }
    const behind = paging.after(of, cursor)
    const found = this.#history.page({ which, place }, { limit: limit + 1, behind }).map(row => ({ ...row, path }))
    const { has_more: _, ...page } = paging.cut(of, found, limit, ({ seq }) => seq)
    return page
  }

  #placeOf(file: string): string {
    const { home, needs } = this.kernel
    if (isInside(file, home.path('agents'))) return `home:${path.relative(home.root, file)}`
    const [nearest] = needs.workspaces
      .list()
      .filter(({ rootDir }) => isInside(file, rootDir))
      .sort((a, b) => b.rootDir.length - a.rootDir.length)
    return nearest ? `${nearest.id}:${path.relative(nearest.rootDir, file)}` : file
  }

  /** Adds the place to rows of an earlier version, also if the home was moved since. */
  #placeOldRows(): void {
    const { db, log } = this.kernel
    const paths = db.rows('SELECT DISTINCT path FROM sidecars_revision WHERE place IS NULL').map(([file]) => `${file}`)
    if (paths.length === 0) return
    const placed = db.tx(t => {
      for (const file of paths) {
        const place = this.#placeOf(file)
        const [, below] = (place === file && OF_FORMER_HOME.exec(file)) || []
        t.run('UPDATE sidecars_revision SET place = ? WHERE path = ? AND place IS NULL', [
          below === undefined ? place : `home:${below}`,
          file,
        ])
      }
    })
    placed.catch(error => log.warn(`the histories of personas and policies were not upgraded: ${messageOf(error)}`))
  }
}

const at = (path: string, row: RevisionRow | undefined) => row && { ...row, path }

/** Author of a change for the history. */
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
