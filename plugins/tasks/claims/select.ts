import type { Reads, SqlValue } from '../../../kernel/plugin.js'
import type { SessionInfo } from '../../sessions/api.js'
import type { Wants } from '../runs/reserve.js'
import type { RunRow } from '../runs/run-row.js'

/** What a session that wants work says of itself and of the work. */
export interface Claimant {
  readonly session: SessionInfo
  /** It was started for the run that it wants: what the run wants of its claimant was seen to then. */
  readonly isStartedForIt?: boolean
  /** The one run that it wants. */
  readonly runId: string | undefined
  /** Ids of workspaces of the tasks; the empty one stands for global tasks. */
  readonly places: readonly string[]
  readonly capabilities: readonly string[]
  readonly priorityMin: number
  /** What its agent tells of its use; undefined: nobody knows yet. */
  readonly tells: { readonly tokens: boolean; readonly cost: boolean } | undefined
}

const CLAIMABLE = "status = 'queued' AND claimable = 1"
const ORDER = 'priority DESC, queued_at, id'
/** Runs that want something of their claimant are looked at one by one, so many at a time. */
const WINDOW = 200

/**
 * The run that a session gets: the highest priority first, then one that prefers what the session is able to do, then the one
 * that waits longest, then the smallest id.
 */
export function selectRun(reads: Reads, claimant: Claimant): RunRow | undefined {
  if (claimant.runId !== undefined) {
    const run = reads.get<RunRow>(`SELECT * FROM tasks_run WHERE id = ? AND ${CLAIMABLE}`, [claimant.runId])
    const fits = run && claimant.places.includes(run.place) && run.priority >= claimant.priorityMin
    return fits && (claimant.isStartedForIt || suits(wantsOf(run), claimant)) ? run : undefined
  }
  const found = claimant.places.flatMap(place => [free(reads, place, claimant), choosy(reads, place, claimant)])
  return found.reduce((best, run) => (run && (!best || isBefore(run, best, claimant)) ? run : best), undefined)
}

/** The first run that anybody may have: one look into an index. */
function free(reads: Reads, place: string, { priorityMin }: Claimant): RunRow | undefined {
  return reads.get<RunRow>(
    `SELECT * FROM tasks_run WHERE place = ? AND ${CLAIMABLE} AND wants IS NULL AND priority >= ? ORDER BY ${ORDER} LIMIT 1`,
    [place, priorityMin],
  )
}

/** The first run among those that want something. Those of one priority are all seen: one of them may prefer the session. */
function choosy(reads: Reads, place: string, claimant: Claimant): RunRow | undefined {
  let best: RunRow | undefined
  let after: readonly SqlValue[] = [Number.MAX_SAFE_INTEGER, 0, '']
  for (;;) {
    const rows = reads.all<RunRow>(
      `SELECT * FROM tasks_run WHERE place = ? AND ${CLAIMABLE} AND wants IS NOT NULL AND priority >= ?
         AND (-priority, queued_at, id) > (-?, ?, ?) ORDER BY ${ORDER} LIMIT ${WINDOW}`,
      [place, claimant.priorityMin, ...after],
    )
    for (const run of rows) {
      if (best && run.priority < best.priority) return best
      if (!suits(wantsOf(run), claimant)) continue
      if (!best || isBefore(run, best, claimant)) best = run
      if (prefers(best, claimant)) return best
    }
    const last = rows.at(-1)
    if (!last || rows.length < WINDOW) return best
    after = [last.priority, last.queued_at, last.id]
  }
}

function isBefore(a: RunRow, b: RunRow, claimant: Claimant): boolean {
  const key = (run: RunRow) => [-run.priority, prefers(run, claimant) ? 0 : 1, run.queued_at]
  const [left, right] = [key(a), key(b)]
  const at = left.findIndex((part, n) => part !== right[n])
  return at < 0 ? a.id < b.id : (left[at] ?? 0) < (right[at] ?? 0)
}

const wantsOf = ({ wants }: RunRow): Wants => (wants === null ? {} : JSON.parse(wants))
const prefers = (run: RunRow, { capabilities }: Claimant) =>
  (wantsOf(run).preferred ?? []).some(name => capabilities.includes(name))

/** Is the session one that may have the run? */
function suits(
  { owner, required = [], agents, provider, measured = [] }: Wants,
  { session, capabilities, tells }: Claimant,
): boolean {
  if (tells && measured.some(name => !tells[name])) return false
  if (owner && !(owner.kind === 'agent_session' && owner.ref === session.id)) return false
  if (agents && !agents.includes(session.agentName)) return false
  if (provider !== undefined && provider !== session.provider) return false
  return required.every(name => capabilities.includes(name))
}
