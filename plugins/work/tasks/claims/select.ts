import type { Reads } from '../../../../kernel/plugin.js'
import type { SessionInfo } from '../../sessions/api.js'
import type { Wants } from '../runs/reserve.js'
import type { RunRow } from '../runs/run-row.js'

/** A session that claims a run, with its acceptance criteria. */
export interface Claimant {
  readonly session: SessionInfo
  /** The session was started for this run, which already meets the requirements of the run. */
  readonly isStartedForIt?: boolean
  /** The only acceptable run. */
  readonly runId: string | undefined
  /** IDs of the workspaces of acceptable tasks; an empty ID means global tasks. */
  readonly places: readonly string[]
  readonly capabilities: readonly string[]
  readonly priorityMin: number
  /** The usage that its agent reports; undefined: not known yet. */
  readonly tells: { readonly tokens: boolean; readonly cost: boolean } | undefined
}

const CLAIMABLE = "status = 'queued' AND claimable = 1"
const ORDER = 'priority DESC, queued_at, id'
/** Runs with requirements are checked one by one, in batches of this size. */
const WINDOW = 200

/**
 * Selects the run for a claim: by priority, then preferred capabilities, then time in the queue, then id.
 */
export function selectRun(reads: Reads, claimant: Claimant): RunRow | undefined {
  if (claimant.runId !== undefined) {
    const run = reads.get<RunRow>(`SELECT * FROM tasks_run WHERE id = ? AND ${CLAIMABLE}`, [claimant.runId])
    const fits = run && claimant.places.includes(run.place) && run.priority >= claimant.priorityMin
    return fits && (claimant.isStartedForIt || suits(wantsOf(run), claimant)) ? run : undefined
  }
  const found = claimant.places.flatMap(workspaceId => {
    const rows = first(reads, workspaceId, claimant)
    const free = rows[0]?.wants === null ? rows.shift() : undefined
    return [free, choosy(reads, workspaceId, claimant, rows)]
  })
  return found.reduce((best, run) => (run && (!best || isBefore(run, best, claimant)) ? run : best), undefined)
}

const FROM = `SELECT * FROM tasks_run WHERE place = ? AND ${CLAIMABLE} AND priority >= ?`

/** The first run without requirements, and the first window of those with requirements: two index lookups. */
function first(reads: Reads, workspaceId: string, { priorityMin }: Claimant): RunRow[] {
  return reads.all<RunRow>(
    `SELECT * FROM (${FROM} AND wants IS NULL ORDER BY ${ORDER} LIMIT 1)
     UNION ALL SELECT * FROM (${FROM} AND wants IS NOT NULL ORDER BY ${ORDER} LIMIT ${WINDOW})`,
    [workspaceId, priorityMin, workspaceId, priorityMin],
  )
}

/**
 * The first suitable run with requirements. All runs of one priority are checked, since one may prefer this session.
 * @param rows the first window
 */
function choosy(reads: Reads, workspaceId: string, claimant: Claimant, rows: readonly RunRow[]): RunRow | undefined {
  let best: RunRow | undefined
  for (let window = rows; ; ) {
    for (const run of window) {
      if (best && run.priority < best.priority) return best
      if (!suits(wantsOf(run), claimant)) continue
      if (!best || isBefore(run, best, claimant)) best = run
      if (prefers(best, claimant)) return best
    }
    const last = window.at(-1)
    if (!last || window.length < WINDOW) return best
    window = reads.all<RunRow>(
      `${FROM} AND wants IS NOT NULL AND (-priority, queued_at, id) > (-?, ?, ?) ORDER BY ${ORDER} LIMIT ${WINDOW}`,
      [workspaceId, claimant.priorityMin, last.priority, last.queued_at, last.id],
    )
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

/** Whether the session meets the requirements of the run. */
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
