import type { Job, ListJobsQuery, ListJobsReply } from '../../schemas/automation.js'
import { AutomationErrors, type JobRecord } from './api.js'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/** A job as far as a list filters and sorts it. */
export type ListedJob = Pick<
  Job,
  'id' | 'name' | 'agent_name' | 'prompt' | 'enabled' | 'scope' | 'source' | 'schedule'
> &
  Partial<Pick<Job, 'workspace_id' | 'loop_target'>> & { readonly record: JobRecord }

/** One page of jobs, the newest first. The cursor names the last job of the page before and belongs to its filter. */
export function pageJobs(
  all: readonly ListedJob[],
  query: ListJobsQuery,
  toWire: (record: JobRecord) => Job,
): ListJobsReply {
  const limit = Math.min(query.limit || DEFAULT_LIMIT, MAX_LIMIT)
  const filter = filterKey(query)
  const after = query.cursor === undefined ? undefined : decodeCursor(query.cursor, filter)
  const matching = all.filter(job => matches(job, query)).sort((a, b) => newestFirst(a.record, b.record))
  const rest = after ? matching.filter(job => newestFirst(job.record, after) > 0) : matching
  const page = rest.slice(0, limit)
  const last = page.at(-1)
  const more = rest.length > page.length
  return {
    jobs: page.map(job => toWire(job.record)),
    page: {
      limit,
      total: matching.length,
      has_more: more,
      ...(more && last ? { next_cursor: encodeCursor(filter, last.record) } : {}),
    },
  }
}

type Place = Pick<JobRecord, 'id' | 'createdAt'>

const newestFirst = (a: Place, b: Place) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)

function matches(job: ListedJob, query: ListJobsQuery): boolean {
  const { scope, workspace_id: workspace, source, enabled, loop, q } = query
  if (scope !== undefined && job.scope !== scope) return false
  if (workspace && job.workspace_id !== workspace) return false
  if (source !== undefined && job.source !== source) return false
  if (enabled !== undefined && job.enabled !== enabled) return false
  if (loop && job.loop_target?.loop_name !== loop) return false
  const wanted = q?.trim().toLowerCase()
  return !wanted || searched(job).some(text => text.toLowerCase().includes(wanted))
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

const encodeCursor = (filter: string, { createdAt, id }: Place) =>
  Buffer.from(JSON.stringify([filter, createdAt, id])).toString('base64url')

function decodeCursor(cursor: string, filter: string): Place {
  try {
    const [given, createdAt, id]: unknown[] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (given === filter && typeof createdAt === 'number' && typeof id === 'string') return { createdAt, id }
  } catch {
    // Whatever it is, it is no cursor of ours.
  }
  throw AutomationErrors.invalid_cursor()
}
