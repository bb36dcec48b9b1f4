import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import { iso, type Reads, type Tx } from '../../../../kernel/plugin.js'
import type { SessionWorktree } from '../../sessions/api.js'
import type { TaskCore } from '../core.js'
import { optionalMember } from '../rows.js'

const { integer, text, time } = column

/** A session that the daemon started, or tried to start, for a run; times in epoch milliseconds. */
export const workerTable = table('tasks_worker', {
  id: text(),
  run_id: text(),
  task_id: text(),
  /** Id of the workspace. */
  place: text(),
  /** Null until the session exists. */
  session_id: text().nullable(),
  /** JSON of its worktree; null: it works in the workspace. */
  worktree: text().nullable(),
  /** The newest commit of the worktree when it ended. */
  commit_id: text().nullable(),
  started_at: time(),
  /** Null until its session has claimed the run. */
  claimed_at: time().nullable(),
  /** Null until the worker is finished and cleaned up. */
  ended_at: time().nullable(),
  /** The session ended without ending the run or passing it on. */
  failed: integer(),
  error: text().nullable(),
})
export type WorkerRow = RowOf<typeof workerTable>

export const WORKER_TABLE = `
CREATE TABLE tasks_worker (
  id TEXT PRIMARY KEY NOT NULL, run_id TEXT NOT NULL, task_id TEXT NOT NULL, place TEXT NOT NULL, session_id TEXT,
  worktree TEXT, commit_id TEXT, started_at INTEGER NOT NULL, claimed_at INTEGER, ended_at INTEGER, failed INTEGER NOT NULL, error TEXT
) STRICT;
CREATE INDEX tasks_worker_run ON tasks_worker (run_id, started_at);
CREATE INDEX tasks_worker_task ON tasks_worker (task_id);
CREATE UNIQUE INDEX tasks_worker_session ON tasks_worker (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX tasks_worker_open ON tasks_worker (place) WHERE ended_at IS NULL;`

export const worktreeOf = ({ worktree }: WorkerRow): SessionWorktree | undefined =>
  worktree === null ? undefined : JSON.parse(worktree)

/** The current or last worker of a run. */
export const latestWorker = (reads: Reads, run: string): WorkerRow | undefined =>
  reads.get<WorkerRow>('SELECT * FROM tasks_worker WHERE run_id = ? ORDER BY started_at DESC, id DESC LIMIT 1', [run])

export function changeWorker({ caches }: TaskCore, t: Tx, id: string, changes: Partial<WorkerRow>): void {
  workerTable.update(t, { id }, changes)
  // Workers change rarely, and are cached by their session.
  caches.workers.changedAll(t)
}

/** The run that a session was started for, while its worker is open. */
export function offeredTo(core: TaskCore, session: string): string | undefined {
  const row = workerOf(core, core.kernel.db, session)
  return row && row.ended_at === null ? row.run_id : undefined
}

/** The worker of a session that was started for a run. */
export const workerOf = ({ caches }: TaskCore, reads: Reads, session: string): WorkerRow | undefined =>
  caches.workers.read(
    session,
    () => reads.get<WorkerRow>('SELECT * FROM tasks_worker WHERE session_id = ?', [session]) ?? null,
  ) ?? undefined

/** The worktree of a run. */
export function runWorktree(row: WorkerRow | undefined) {
  const worktree = row && worktreeOf(row)
  if (!worktree) return undefined
  const { name, folder, branch } = worktree
  return { name, folder, ...optionalMember('branch', branch), ...optionalMember('commit', row.commit_id) }
}

export const workerToWire = (row: WorkerRow) => ({
  ...optionalMember('session_id', row.session_id),
  started_at: iso(row.started_at),
  ended_at: row.ended_at === null ? null : iso(row.ended_at),
  ...optionalMember('error', row.error),
})

/** The worktree as reported to the lease holder. */
export function resolvedWorktree(row: WorkerRow | undefined, session: string) {
  const worktree = row?.session_id === session ? worktreeOf(row) : undefined
  if (!row || !worktree) return { resolved_worktree_mode: 'none' as const }
  const isOwn = worktree.name.startsWith(row.run_id)
  return {
    resolved_worktree_mode: isOwn ? ('per_run' as const) : ('ref' as const),
    ...(isOwn ? {} : { resolved_worktree_ref: worktree.name }),
    worktree_id: worktree.name,
  }
}
