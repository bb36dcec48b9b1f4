import { columnsOf } from '../../../../kernel/kit/annotations/index.js'
import type { CommandContext, CommandOutput } from '../../../../kernel/plugin.js'
import type { Overview, OverviewReply } from '../../../../schemas/observe.js'
import type { Dashboard } from '../../../../schemas/tasks.js'
import { grouped, many, workspaceIdOf } from './words.js'

/** Rows per part; the number of others is shown. */
const ROWS = 10
/** Runs, sessions and bridges that are requested. */
const READ = 50

export interface TopRun {
  readonly id: string
  readonly kind: 'task' | 'job' | 'trigger'
  readonly status: string
  readonly title: string
  readonly agent: string | null
  readonly since: string | null
}

export interface TopSession {
  readonly id: string
  readonly name: string | null
  readonly agent: string
  readonly badge: string
  readonly updated_at: string
}

export interface TopBridge {
  readonly id: string
  readonly name: string
  readonly platform: string
  readonly status: string
  readonly backlog: number
}

/** A line of `svc top --json`; null for missing parts of the daemon. */
export interface Frame {
  readonly at: string | null
  readonly attention: number | null
  readonly today: Overview['today'] | null
  readonly queue: { readonly queued: number; readonly oldest_ms: number } | null
  readonly runs: readonly TopRun[]
  readonly sessions: { readonly total: number; readonly rows: readonly TopSession[] }
  readonly bridges: readonly TopBridge[] | null
}

export const runColumns = columnsOf<TopRun>()(['id', 'kind', 'status', 'since~ago', 'title', 'agent'])
export const sessionColumns = columnsOf<TopSession>()([
  'id',
  'agent',
  { of: 'badge', header: 'State' },
  'updated_at~ago',
  'name',
])
export const bridgeColumns = columnsOf<TopBridge>()(['name', 'platform', 'status', 'backlog'])

/** Default seconds between two updates on a terminal. */
const USUAL_SECONDS = 2
/** The overview is the most expensive part, so only every fifth update requests it. */
const OVERVIEW_EVERY = 5

/**
 * `svc top`: an interactive screen on a terminal; otherwise, and with `--once`, the current state; with `--json
 * --interval` a line for every changed state.
 */
export async function runTop(context: CommandContext): Promise<void> {
  const { options, out, watch, wholeScreen } = context
  const seconds = options.interval === undefined ? undefined : Number(options.interval)
  if (seconds !== undefined && !(seconds >= 1 && seconds <= 3600))
    return context.fault('usage', '--interval is 1 to 3600 seconds')
  const readFrame = looksOf(context)
  if (options.once === true) return show(await readFrame(), out)
  if (wholeScreen) {
    // Requested first, so that an error is shown before the screen is taken over.
    const first = await readFrame()
    const { TopScreen } = await import('./top-screen.js')
    const last = await wholeScreen(screen =>
      new TopScreen(screen, first, { readFrame, signal: context.signal, seconds: seconds ?? USUAL_SECONDS }).run(),
    )
    if (last !== undefined) out.line(last)
  } else if (watch && (!out.json || seconds !== undefined)) {
    let ticks = 0
    let last: Frame | undefined
    // Called every second.
    const ask = async () => {
      if (ticks++ % (seconds ?? 1) !== 0 && last) return last
      const now = await readFrame()
      // A new time alone does not count as a change.
      if (!last || timeless(now) !== timeless(last)) last = now
      return last
    }
    await watch(ask, show)
  } else show(await readFrame(), out)
}

/** A state without times: for the queue, the begin of the wait is compared, since its age grows by itself. */
function timeless({ at, queue, ...rest }: Frame): string {
  const since = at !== null && queue && queue.queued > 0 ? Date.parse(at) - queue.oldest_ms : null
  return JSON.stringify({ ...rest, queued: queue?.queued, since })
}

/** Returns a function that requests a state, its expensive part only now and then. */
function looksOf(context: CommandContext): (isWhole?: boolean) => Promise<Frame> {
  let looks = 0
  let lastOverview: Partial<OverviewReply> = {}
  return async isWhole => {
    const overview = isWhole === true || looks++ % OVERVIEW_EVERY === 0 ? undefined : lastOverview
    const found = await frameOf(context, overview)
    lastOverview = found.overview
    return found.frame
  }
}

/** @param known overview of an earlier update; undefined: it is requested */
async function frameOf(
  context: CommandContext,
  known: Partial<OverviewReply> | undefined,
): Promise<{ readonly frame: Frame; readonly overview: Partial<OverviewReply> }> {
  const workspaceId = workspaceIdOf(context)
  const query = (more: Record<string, string>) =>
    new URLSearchParams({ ...(workspaceId === undefined ? {} : { workspace: workspaceId }), ...more })
  const part = async (url: string): Promise<unknown> => {
    try {
      return await context.client.request('GET', url, undefined, { waits: true })
    } catch (error) {
      // The plugin is disabled, so its part is omitted.
      if ((error as { code?: unknown }).code === 'route_not_found') return undefined
      throw error
    }
  }
  const [overview, tasks, jobs, sessions, bridges] = await Promise.all([
    known ?? part(`/api/observe/overview?${query({ usage_window: '7' })}`),
    part(`/api/observe/tasks/dashboard?${query({})}`),
    part('/api/automation/runs?status=running&limit=50'),
    part(`/api/sessions?${query({ state: 'active', sort: 'last_activity', limit: `${READ}` })}`),
    part(`/api/bridges?${query({ limit: `${READ}` })}`),
  ])
  const found = (overview ?? {}) as Partial<OverviewReply>
  const { overview: latest } = found
  const { dashboard } = (tasks ?? {}) as { dashboard?: Dashboard }
  const frame: Frame = {
    at: dashboard?.freshness.observed_at ?? latest?.generated_at ?? null,
    attention: latest?.attention.total ?? null,
    today: latest?.today ?? null,
    queue: dashboard ? { queued: dashboard.queue.total, oldest_ms: dashboard.queue.oldest_queue_age_ms } : null,
    runs: [...taskRuns(dashboard), ...(workspaceId === undefined ? jobRuns(jobs) : [])],
    sessions: sessionsOf(sessions),
    bridges: bridgesOf(bridges),
  }
  return { frame, overview: found }
}

function taskRuns(dashboard: Dashboard | undefined): TopRun[] {
  const items = dashboard?.active_runs.items ?? []
  const now = Date.parse(dashboard?.freshness.observed_at ?? '')
  return items
    .filter(({ run_status: status }) => status !== 'queued')
    .map(run => ({
      id: run.run_id,
      kind: 'task',
      status: run.stuck ? 'stuck' : run.run_status,
      title: run.task_title,
      agent: run.agent_name ?? null,
      since: new Date(now - run.age_ms).toISOString(),
    }))
}

interface JobRun {
  readonly id: string
  readonly status: string
  readonly job_id?: string
  readonly trigger_id?: string
  readonly started_at?: string | null
}

function jobRuns(reply: unknown): TopRun[] {
  const { runs = [] } = (reply ?? {}) as { runs?: readonly JobRun[] }
  return runs.map(run => ({
    id: run.id,
    kind: run.job_id ? 'job' : 'trigger',
    status: run.status,
    title: run.job_id || (run.trigger_id ?? ''),
    agent: null,
    since: run.started_at ?? null,
  }))
}

interface SessionReply {
  readonly id: string
  readonly name?: string
  readonly agent_name: string
  readonly badge: string
  readonly updated_at: string
}

function sessionsOf(reply: unknown): Frame['sessions'] {
  const { sessions = [], page } = (reply ?? {}) as { sessions?: readonly SessionReply[]; page?: { total: number } }
  const rows = sessions.map(({ id, name, agent_name: agent, badge, updated_at }) => ({
    ...{ id, name: name ?? null, agent, badge, updated_at },
  }))
  return { total: page?.total ?? rows.length, rows }
}

interface BridgesReply {
  readonly bridges?: readonly { id: string; display_name: string; platform: string; status: string }[]
  readonly bridge_health?: Readonly<Record<string, { readonly delivery_backlog: number }>>
}

function bridgesOf(reply: unknown): TopBridge[] | null {
  if (reply === undefined) return null
  const { bridges = [], bridge_health: health } = reply as BridgesReply
  return bridges.map(({ id, display_name: name, platform, status }) => ({
    ...{ id, name, platform, status, backlog: health?.[id]?.delivery_backlog ?? 0 },
  }))
}

function show(reply: unknown, out: CommandOutput): void {
  if (out.json) {
    ;(out.row ?? out.value).call(out, reply)
    return
  }
  const { runs, sessions, bridges } = reply as Frame
  for (const line of summaryOf(reply as Frame, out)) out.line(line)
  part(out, many(runs.length, 'active run'), runs, runColumns)
  part(out, many(sessions.total, 'active session'), sessions.rows, sessionColumns, sessions.total)
  if (bridges !== null) part(out, many(bridges.length, 'bridge'), bridges, bridgeColumns)
}

/** The counts in one or two lines. */
export function summaryOf({ attention, today, queue }: Frame, out: CommandOutput): string[] {
  const queued =
    queue && `${grouped(queue.queued)} queued${queue.queued === 0 ? '' : `, oldest ${ageText(queue.oldest_ms)}`}`
  const waiting =
    attention === 0
      ? 'nothing needs attention'
      : attention && out.color('yellow', `${grouped(attention)} need attention`)
  const counts = [waiting, queued].filter(text => text !== null).join('; ')
  const done = today && `today: ${many(today.runs_completed, 'run')} completed, ${grouped(today.runs_failed)} failed`
  return [counts, done ?? ''].filter(text => text !== '')
}

function part(
  out: CommandOutput,
  title: string,
  rows: readonly unknown[],
  columns: Parameters<CommandOutput['table']>[1],
  total = rows.length,
): void {
  out.line('')
  out.line(out.color('bold', title))
  if (rows.length === 0) return
  out.table(rows.slice(0, ROWS), columns)
  if (total > ROWS) out.line(out.color('dim', `and ${grouped(total - ROWS)} more`))
}

function ageText(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  return seconds < 60
    ? `${seconds} s`
    : seconds < 3600
      ? `${Math.floor(seconds / 60)} min`
      : `${Math.floor(seconds / 3600)} h`
}
