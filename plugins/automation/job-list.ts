import { type PluginKernel, type SqlValue, turn } from '../../kernel/plugin.js'
import type { Job, ListJobsQuery, ListJobsReply } from '../../schemas/automation.js'
import { AutomationErrors, JobKind } from './api.js'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
/** Records that are looked at in one turn of the event loop: by their columns, or decoded. */
const WINDOW = { columns: 2000, decoded: 200 }

/** A job as far as a list filters it. */
export type ListedJob = Pick<Job, 'name' | 'agent_name' | 'prompt' | 'enabled' | 'scope' | 'source' | 'schedule'> &
  Partial<Pick<Job, 'loop_target'>>

/** Reads jobs; undefined for one that is gone or damaged. */
export interface JobReader {
  facts(id: string): ListedJob | undefined
  wire(id: string): Job | undefined
}

/**
 * One page of jobs, the newest first, and how many the filter leaves in all. Records are gone through in the order in which
 * they were made, window by window, so that a hundred thousand do not hold the event loop; only what no column tells is asked
 * of the decoded job. The cursor is the place of the last job of the page before and belongs to its filter.
 */
export async function pageJobs(db: PluginKernel['db'], query: ListJobsQuery, jobs: JobReader): Promise<ListJobsReply> {
  const limit = Math.min(query.limit || DEFAULT_LIMIT, MAX_LIMIT)
  const filter = filterKey(query)
  const before = query.cursor === undefined ? Number.POSITIVE_INFINITY : decodeCursor(query.cursor, filter)
  const columns = columnFilter(query)
  const matches = specFilter(query)
  /** One more than the page has, where there is one. */
  const found: { readonly place: number; readonly id: string }[] = []
  let total = 0
  // A record that is written meanwhile has no part in this list.
  const [newest] = db.row('SELECT max(rowid) FROM kernel_record') ?? []
  const size = matches ? WINDOW.decoded : WINDOW.columns
  for (let high = Number(newest ?? 0); high > 0; high -= size) {
    const inWindow = `FROM kernel_record WHERE rowid > ? AND rowid <= ? AND ${columns.where}`
    const params = [high - size, high, ...columns.params]
    if (found.length > limit && !matches) total += Number(db.row(`SELECT count(*) ${inWindow}`, params)?.[0])
    else {
      for (const [place, id] of db.rows(`SELECT rowid, id ${inWindow} ORDER BY rowid DESC`, params) as [
        number,
        string,
      ][]) {
        const job = matches && jobs.facts(id)
        if (matches && !(job && matches(job))) continue
        total++
        if (place < before && found.length <= limit) found.push({ place, id })
      }
    }
    await turn()
  }
  const page = found.slice(0, limit)
  const last = page.at(-1)
  const more = found.length > limit
  return {
    jobs: page.flatMap(({ id }) => jobs.wire(id) ?? []),
    page: {
      limit,
      total,
      has_more: more,
      ...(more && last ? { next_cursor: encodeCursor(filter, last.place) } : {}),
    },
  }
}

/** What columns of the records tell. The sign before `kind` keeps SQLite from going by its index, which has another order. */
function columnFilter({ scope, workspace_id: workspace, source }: ListJobsQuery) {
  const conditions: [string, ...SqlValue[]][] = [['+kind = ?', JobKind.name]]
  if (scope !== undefined) conditions.push([`scope_kind ${scope === 'workspace' ? '=' : '<>'} 'workspace'`])
  if (workspace) conditions.push(["scope_kind = 'workspace' AND +scope_id = ?", workspace])
  if (source !== undefined) conditions.push([`${SOURCE} = ?`, source])
  return {
    where: conditions.map(([sql]) => sql).join(' AND '),
    params: conditions.flatMap(([, ...params]) => params),
  }
}

/** `jobSource`, as SQL. */
const SOURCE = `CASE WHEN owner_kind = 'bundle.activation' OR source_kind = 'extension' THEN 'package'
  WHEN source_kind = 'daemon' AND source_id = 'config' THEN 'config' ELSE 'dynamic' END`

/** What only the decoded job tells; undefined when nothing of that is asked for. */
function specFilter({ enabled, loop, q }: ListJobsQuery): ((job: ListedJob) => boolean) | undefined {
  const wanted = q?.trim().toLowerCase()
  if (enabled === undefined && !loop && !wanted) return undefined
  return job =>
    (enabled === undefined || job.enabled === enabled) &&
    (!loop || job.loop_target?.loop_name === loop) &&
    (!wanted || searched(job).some(text => text.toLowerCase().includes(wanted)))
}

/** What a search looks into: name, agent, prompt, scope, source, schedule. */
function searched(job: ListedJob): string[] {
  const { mode = '', expr = '', interval = '', time = '' } = job.schedule ?? {}
  return [job.name, job.agent_name, job.prompt, job.scope, job.source, mode, expr, interval, time]
}

const filterKey = ({ cursor: _cursor, limit: _limit, ...filter }: ListJobsQuery) =>
  JSON.stringify(
    Object.entries(filter)
      .filter(([, value]) => value !== undefined)
      .sort(),
  )

const encodeCursor = (filter: string, place: number) =>
  Buffer.from(JSON.stringify([filter, place])).toString('base64url')

function decodeCursor(cursor: string, filter: string): number {
  try {
    const [given, place]: unknown[] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (given === filter && Number.isSafeInteger(place)) return place as number
  } catch {
    // Whatever it is, it is no cursor of ours.
  }
  throw AutomationErrors.invalid_cursor()
}
