import * as v from 'valibot'
import { Paging } from '../../kernel/kit/page.js'
import {
  type Actor,
  KernelErrors,
  type RecordFilter,
  type RecordHead,
  type Records,
  type StoredRecord,
  turn,
} from '../../kernel/plugin.js'
import type { Job, ListJobsQuery, ListJobsReply } from '../../schemas/automation.js'
import { JobKind } from './api.js'
import { sourceFilters } from './job-kind.js'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
const paging = new Paging({
  place: v.pipe(v.number(), v.safeInteger()),
  invalid: () => KernelErrors.invalid_cursor(undefined, { next: 'svc automation jobs list' }),
})
/** Records that are looked at in one turn of the event loop: by their columns, or decoded. */
const WINDOW = { columns: 2000, decoded: 200 }

/** A job as far as a list filters it. */
export type ListedJob = Pick<Job, 'name' | 'agent_name' | 'prompt' | 'enabled' | 'scope' | 'source' | 'schedule'> &
  Partial<Pick<Job, 'loop_target'>>

/** Reads jobs; undefined for one that is gone or damaged. */
export interface JobReader {
  facts(record: StoredRecord): ListedJob | undefined
  wire(id: string): Job | undefined
}

/**
 * One page of jobs, the newest first, and how many the filter leaves in all. Records are gone through in the order in which
 * they were made, window by window, so that a hundred thousand do not hold the event loop; only what no column tells is asked
 * of the decoded job. The cursor is the place of the last job of the page before.
 */
export async function pageJobs(
  records: Records,
  actor: Actor,
  query: ListJobsQuery,
  jobs: JobReader,
): Promise<ListJobsReply> {
  const limit = Math.min(query.limit || DEFAULT_LIMIT, MAX_LIMIT)
  const of = { actor, query }
  const before = paging.after(of, query.cursor) ?? Number.POSITIVE_INFINITY
  const columns = columnFilter(query)
  const matches = specFilter(query)
  /** One more than the page has, where there is one. */
  const found: RecordHead[] = []
  let total = 0
  // A record that is written meanwhile has no part in this list.
  const newest = columns ? (records.page({ limit: 1 })[0]?.place ?? 0) : 0
  const size = matches ? WINDOW.decoded : WINDOW.columns
  for (let high = newest; high > 0; high -= size) {
    const within = (upTo: number) => ({ ...columns, places: { above: high - size, upTo } })
    const some = matches && idsOf(records.list(within(high)), jobs, matches)
    const here = some ? some.size : records.count(within(high))
    total += here
    const missing = limit + 1 - found.length
    if (here > 0 && missing > 0) {
      const heads = records.page({ ...within(Math.min(high, before - 1)), limit: some ? 0 : missing })
      found.push(...heads.filter(({ id }) => !some || some.has(id)).slice(0, missing))
    }
    await turn()
  }
  const { rows, ...more } = paging.cut(of, found, limit, ({ place }) => place)
  return { jobs: rows.flatMap(({ id }) => jobs.wire(id) ?? []), page: { limit, total, ...more } }
}

/** What the store filters by, specs as they are stored; undefined where nothing can match. */
function columnFilter({ scope, workspace_id: workspace, source }: ListJobsQuery): RecordFilter | undefined {
  if (workspace && scope === 'global') return undefined
  const where = workspace ? { kind: 'workspace', id: workspace } : scope && { kind: scope }
  return { kind: JobKind.name, ...(source && sourceFilters[source]), ...(where && { scope: where }) }
}

function idsOf(records: readonly StoredRecord[], jobs: JobReader, matches: (job: ListedJob) => boolean) {
  const matching = records.filter(record => {
    const job = jobs.facts(record)
    return job && matches(job)
  })
  return new Set(matching.map(({ id }) => id))
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

/** What a search looks into: name, agent, prompt, scope, source, schedule. */
function searched(job: ListedJob): string[] {
  const { mode = '', expr = '', interval = '', time = '' } = job.schedule ?? {}
  return [job.name, job.agent_name, job.prompt, job.scope, job.source, mode, expr, interval, time]
}
