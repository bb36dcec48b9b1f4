import { type RecordFilter, type RecordHead, type Records, turn } from '../../kernel/plugin.js'
import type { Job, ListJobsQuery, ListJobsReply } from '../../schemas/automation.js'
import { AutomationErrors, JobKind } from './api.js'
import { jobSource } from './job-kind.js'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
/** Records that are looked at in one turn of the event loop: without their specs, or decoded. */
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
 * they were made, window by window, so that a hundred thousand do not hold the event loop; only what the store cannot tell is
 * asked of each record, or of the decoded job. The cursor is the place of the last job of the page before and belongs to its
 * filter.
 */
export async function pageJobs(records: Records, query: ListJobsQuery, jobs: JobReader): Promise<ListJobsReply> {
  const limit = Math.min(query.limit || DEFAULT_LIMIT, MAX_LIMIT)
  const filter = filterKey(query)
  const before = query.cursor === undefined ? Number.POSITIVE_INFINITY : decodeCursor(query.cursor, filter)
  const columns = columnFilter(query)
  const matches = matchesOf(query, jobs)
  /** One more than the page has, where there is one. */
  const found: RecordHead[] = []
  let total = 0
  // A record that is written meanwhile has no part in this list.
  const newest = columns ? (records.page({ limit: 1 })[0]?.place ?? 0) : 0
  const size = specFilter(query) ? WINDOW.decoded : WINDOW.columns
  for (let high = newest; high > 0; high -= size) {
    const above = high - size
    const missing = limit + 1 - found.length
    const within = (upTo: number) => ({ ...columns, places: { above, upTo } })
    if (matches) {
      const some = records.page(within(high)).filter(matches)
      total += some.length
      found.push(...some.filter(({ place }) => place < before).slice(0, missing))
    } else {
      total += records.count(within(high))
      if (missing > 0) found.push(...records.page({ ...within(Math.min(high, before - 1)), limit: missing }))
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

/** What the store filters by; undefined where nothing can match. */
function columnFilter({ scope, workspace_id: workspace }: ListJobsQuery): RecordFilter | undefined {
  if (workspace) return scope === 'global' ? undefined : { kind: JobKind, scope: { kind: 'workspace', id: workspace } }
  return { kind: JobKind, ...(scope && { scope: { kind: scope } }) }
}

/** What each record is asked; undefined when the store filters by all that is asked for. */
function matchesOf(query: ListJobsQuery, jobs: JobReader): ((head: RecordHead) => boolean) | undefined {
  const { source } = query
  const matches = specFilter(query)
  if (source === undefined && !matches) return undefined
  return head => {
    if (source !== undefined && jobSource(head) !== source) return false
    const job = matches && jobs.facts(head.id)
    return !matches || (job !== undefined && matches(job))
  }
}

/** What only the decoded job tells; undefined when nothing of that is asked for. */
function specFilter({ enabled, loop, q }: ListJobsQuery): ((job: ListedJob) => boolean) | undefined {
  const wanted = q?.trim().toLowerCase()
  if (enabled === undefined && !loop && !wanted) return undefined
  return job =>
    (enabled === undefined || job.enabled === enabled) &&
    (!loop || job.loop_target?.loop_name === loop) &&
    (!wanted || searched(job).some(text => text.toLowerCase().includes(wanted)))
}

/** Specification B: name, agent, prompt, scope, source, schedule. */
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
