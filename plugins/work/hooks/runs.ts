import { jsonOrText } from '../../../kernel/kit/canonical.js'
import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import { clip } from '../../../kernel/kit/text.js'
import { type Actor, iso, messageOf, type Tx } from '../../../kernel/plugin.js'
import { type HookRunsQuery, HookRunWire } from '../../../schemas/hooks/replies.js'
import type { HookEvent } from '../../../schemas/hooks.js'
import { agentSessionOf } from '../../access/identity/api.js'
import { SessionErrors } from '../sessions/api.js'
import type { HookPayload, HookSource } from './api.js'
import type { K } from './needs.js'

export type HookOutcome = 'applied' | 'denied' | 'failed' | 'skipped' | 'dropped' | 'rejected'

/** A hook run, or the reason for which the hook did not run. */
export interface HookRun {
  readonly hook: string
  readonly event: HookEvent
  readonly source: HookSource
  readonly mode: 'sync' | 'async'
  readonly required: boolean
  /** Empty for runs without a session. */
  readonly sessionId: string
  readonly workspaceId: string
  readonly depth: number
  readonly outcome: HookOutcome
  /** End of the run in epoch milliseconds. */
  readonly at: number
  readonly micros: number
  readonly error: string | undefined
  readonly patch: HookPayload | undefined
  /** Id of the causing event; not stored. */
  readonly cause: string | undefined
}

/** The journal entry of a run: names of the changed fields, but not their values. */
export function journalNote(run: HookRun): Readonly<Record<string, unknown>> | undefined {
  const { hook, event, source, mode, required, depth, outcome, micros, error, patch } = run
  // These events are about journal entries; recording them would duplicate every entry.
  if (/^(?:event|message)\.|^session\.message_persisted$/.test(event)) return undefined
  const changed = outcome === 'applied' ? Object.keys(patch ?? {}).filter(member => member !== 'reason') : []
  const what = changed.length > 0 ? `patched ${changed.join(', ')} at` : `${outcome === 'applied' ? 'saw' : outcome} `
  const took = micros < 1000 ? `${micros} µs` : `${Math.round(micros / 1000)} ms`
  const why = error === undefined ? '' : `: ${clip(error, 300)}`
  return {
    text: `hook ${hook} (${source}): ${what.trim()} ${event}, ${took}${why}`,
    ...{ hook, event, source, mode, required, outcome, dispatch_depth: depth, duration_us: micros },
    ...(changed.length > 0 && { changed }),
  }
}

export const RUN_TABLES = `CREATE TABLE hooks_run (
  seq INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  hook TEXT NOT NULL,
  event TEXT NOT NULL,
  source TEXT NOT NULL,
  mode TEXT NOT NULL,
  required INTEGER NOT NULL,
  depth INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  at INTEGER NOT NULL,
  micros INTEGER NOT NULL,
  error TEXT,
  patch TEXT
) STRICT;
CREATE INDEX hooks_run_session ON hooks_run (session_id, seq);`

/** Maximum number of kept runs over all sessions, and maximum length of a stored patch. */
const KEPT = 50_000
const PATCH = 16 * 1024
/** Prune once per this many runs. */
const PRUNE_EVERY = 500
/** Maximum number of unwritten runs; further runs are dropped. */
const UNWRITTEN = 10_000

const { text, integer, flag, time } = column

export const runs = table('hooks_run', {
  seq: integer().generated(),
  session_id: text().as('sessionId'),
  workspace_id: text().as('workspaceId'),
  hook: text(),
  event: text<HookEvent>(),
  source: text<HookSource>(),
  mode: text<HookRun['mode']>(),
  required: flag(),
  depth: integer(),
  outcome: text<HookOutcome>(),
  at: time(),
  micros: integer(),
  error: text().optional(),
  /** JSON, possibly truncated. */
  patch: text().optional(),
})

/** Prefix of the provisional id of a session that is about to be created. */
export const UNMADE = 'new '

/** The newest 50,000 hook runs. They are written asynchronously in batches, so that no hook waits for the disk. */
export class HookRuns {
  #unwritten: HookRun[] = []
  #writing: Promise<void> | undefined
  #sincePruned = PRUNE_EVERY

  /** @param onRun called in the transaction that writes a run */
  constructor(
    private readonly kernel: K,
    private readonly onRun: (t: Tx, run: HookRun) => void,
  ) {}

  add(run: HookRun): void {
    if (this.#unwritten.length >= UNWRITTEN) return
    // The session does not exist yet, so its runs are stored without a session.
    this.#unwritten.push(run.sessionId.startsWith(UNMADE) ? { ...run, sessionId: '' } : run)
    this.#writing ??= this.#write()
  }

  /** Resolves when all runs so far are written. */
  async written(): Promise<void> {
    while (this.#writing) await this.#writing
  }

  /**
   * The newest runs of a session of a workspace, or of no session (`none`): those of the workspace and, for people only, those
   * without a workspace. Oldest first. @throws Fault `workspace_not_found`, `session_not_found`
   */
  async find(reference: string, { session, ...query }: HookRunsQuery, actor: Actor): Promise<HookRunWire[]> {
    const { workspaces, sessions } = this.kernel.needs
    const workspace = await workspaces.find(reference)
    const isNone = session === 'none'
    if (!isNone && (await sessions.lookup(session))?.workspaceId !== workspace.id)
      throw SessionErrors.session_not_found(`session not found in workspace ${workspace.name}: ${session}`)
    const other = isNone && !agentSessionOf(actor) ? '' : workspace.id
    await this.written()
    const { event, outcome, since, last = 100 } = query
    const rows = runs.query(
      this.kernel.db,
      `WHERE session_id = ?1 AND workspace_id IN (?2, ?7) AND (?3 IS NULL OR event = ?3)
       AND (?4 IS NULL OR outcome = ?4) AND at >= ?5 ORDER BY seq DESC LIMIT +?6`,
      [
        ...[isNone ? '' : session, workspace.id, event ?? null, outcome ?? null],
        ...[since === undefined ? 0 : Date.parse(since), last, other],
      ],
    )
    return rows.reverse().map(runToWire)
  }

  async #write(): Promise<void> {
    const { db, log, redact } = this.kernel
    // Batch the runs added in this turn.
    await Promise.resolve()
    while (this.#unwritten.length > 0) {
      const unwritten = this.#unwritten
      this.#unwritten = []
      try {
        await db.tx(t => {
          for (const run of unwritten) {
            const patch = run.patch && redact.text(JSON.stringify(run.patch), PATCH)
            runs.insert(t, { ...run, error: run.error && redact.text(run.error), patch })
            this.onRun(t, run)
          }
          this.#sincePruned += unwritten.length
          if (this.#sincePruned < PRUNE_EVERY) return
          this.#sincePruned = 0
          t.run('DELETE FROM hooks_run WHERE seq <= (SELECT max(seq) FROM hooks_run) - ?', [KEPT])
        })
      } catch (error) {
        log.error('hook runs were not recorded', { runs: unwritten.length, error: messageOf(error) })
      }
    }
    this.#writing = undefined
  }
}

const runToWire = (row: RowOf<typeof runs>): HookRunWire =>
  runs.wire(row, HookRunWire, {
    hook_name: row.hook,
    dispatch_depth: row.depth,
    duration_ms: Math.ceil(row.micros / 1000),
    duration_us: row.micros,
    recorded_at: iso(row.at),
    // A truncated patch is not valid JSON.
    ...(row.patch !== undefined && { patch_applied: jsonOrText(row.patch) }),
  })
