import { type Actor, iso, type SqlValue } from '../../../kernel/plugin.js'
import type { Overview } from '../../../schemas/observe.js'
import type { AgentDay, LocalTime, SessionSpan } from '../../work/sessions/api.js'
import { attentionOf } from './attention.js'
import type { EarlierDays } from './earlier.js'
import type { K } from './needs.js'
import { KEPT_DAYS } from './tables.js'
import { type DayCounts, NO_COUNTS, type Tally } from './tally.js'

const SCHEMA_VERSION = '1'
const OUTCOME_DAYS = 14
const PULSE_DAYS = 14
const SHARE_DAYS = 30
const SHARED_AGENTS = 4
/** Work that shows no activity for longer is stale. */
const STALE_MS = 120_000
/** The currency for comparing agents; usage in others counts as unknown cost. */
const CURRENCY = 'USD'

export interface OverviewRequest {
  readonly actor: Actor
  /** Undefined for all workspaces. */
  readonly workspaceId: string | undefined
  readonly usageDays: number
}

export interface Sources {
  readonly kernel: K
  readonly time: LocalTime
  readonly earlier: EarlierDays
}

/** The overview, from the tables of hours and days, the uncounted events, and data of sessions, tasks and notifications. */
export function overviewOf({ kernel, time, earlier }: Sources, tail: Tally, request: OverviewRequest): Overview {
  const { clock } = kernel
  const { workspaceId } = request
  const now = clock.now()
  const hours = hoursSince(kernel, tail, time.dayStart(time.daysTo(now, PULSE_DAYS)[0] ?? ''), workspaceId)
  const days = daysOf(kernel, tail, time.daysTo(now, OUTCOME_DAYS), workspaceId)
  const today = days.at(-1) ?? { day: '', ...NO_COUNTS }
  return {
    schema_version: SCHEMA_VERSION,
    generated_at: iso(now),
    attention: attentionOf(kernel, request),
    freshness: freshnessOf(kernel, hours, now, workspaceId),
    today: {
      runs_completed: today.runs_completed,
      runs_failed: today.runs_failed,
      tasks_closed: today.tasks_closed,
    },
    outcomes: outcomesOf(days),
    pulse: pulseOf({ kernel, time, earlier }, hours, now, workspaceId),
    usage: usageOf({ kernel, time, earlier }, now, request),
    network: {
      messages_today: kernel.needs.network.current?.countSince(time.dayStart(time.day(now)), workspaceId) ?? 0,
    },
    system: {
      hook_runs_today: today.hook_runs,
      hook_failures_today: today.hook_failures,
      retention_days: KEPT_DAYS,
    },
  }
}

interface Hour {
  events: number
  lastAt: number
}

function hoursSince({ db }: K, tail: Tally, since: number, workspaceId: string | undefined): Map<number, Hour> {
  const hours = new Map<number, Hour>()
  const add = (hour: number, events: number, lastAt: number) => {
    const there = hours.get(hour)
    hours.set(hour, { events: events + (there?.events ?? 0), lastAt: Math.max(lastAt, there?.lastAt ?? 0) })
  }
  const values: SqlValue[] = workspaceId === undefined ? [since] : [since, workspaceId]
  const sql = `SELECT hour, sum(events), max(last_at) FROM observe_hour WHERE hour >= ?
    ${workspaceId === undefined ? '' : 'AND workspace_id = ?'} GROUP BY hour`
  for (const [hour, events, lastAt] of db.rows(sql, values)) add(Number(hour), Number(events), Number(lastAt))
  for (const { hour, workspaceId: of, events, lastAt } of tail.hours.values())
    if (hour >= since && (workspaceId ?? of) === of) add(hour, events, lastAt)
  return hours
}

type Day = DayCounts & { readonly day: string }
const COUNTS = Object.keys(NO_COUNTS) as (keyof DayCounts)[]

/** The counts of these days, in order. */
function daysOf({ db }: K, tail: Tally, names: readonly string[], workspaceId: string | undefined): Day[] {
  const days = new Map(names.map(day => [day, { day, ...NO_COUNTS }]))
  const values: SqlValue[] = [names[0] ?? '', ...(workspaceId === undefined ? [] : [workspaceId])]
  const rows = db.all<Day>(
    `SELECT day, ${COUNTS.map(name => `sum(${name}) AS ${name}`).join(', ')} FROM observe_day WHERE day >= ?
     ${workspaceId === undefined ? '' : 'AND workspace_id = ?'} GROUP BY day`,
    values,
  )
  const behind = [...tail.days.values()].filter(({ workspaceId: of }) => (workspaceId ?? of) === of)
  for (const row of [...rows, ...behind]) {
    const day = days.get(row.day)
    if (day) for (const name of COUNTS) day[name] += row[name]
  }
  return [...days.values()]
}

function outcomesOf(days: readonly Day[]): Overview['outcomes'] {
  const sum = (name: keyof DayCounts) => days.reduce((all, day) => all + day[name], 0)
  const [completed, failed] = [sum('runs_completed'), sum('runs_failed')]
  return {
    window_days: OUTCOME_DAYS,
    completed,
    failed,
    canceled: sum('runs_canceled'),
    success_pct: completed + failed === 0 ? 0 : (completed / (completed + failed)) * 100,
    days: days.map(({ day, runs_completed, runs_failed, runs_canceled }) => ({
      date: day,
      completed: runs_completed,
      failed: runs_failed,
      canceled: runs_canceled,
    })),
  }
}

function pulseOf(
  { kernel, time, earlier }: Sources,
  hours: ReadonlyMap<number, Hour>,
  now: number,
  workspaceId: string | undefined,
): Overview['pulse'] {
  const buckets = new Map<number, { hour: number; weekday: number; events: number }>()
  for (const [at, { events }] of hours) {
    const { hour, weekday } = time.hourAndWeekday(at)
    const bucket = buckets.get(weekday * 24 + hour) ?? { hour, weekday, events: 0 }
    bucket.events += events
    buckets.set(weekday * 24 + hour, bucket)
  }
  const sorted = [...buckets].sort(([a], [b]) => a - b).map(([, bucket]) => bucket)
  const since = time.dayStart(time.daysTo(now, PULSE_DAYS)[0] ?? '')
  const sessions = kernel.needs.sessions.current
  return {
    window_days: PULSE_DAYS,
    buckets: sorted,
    busiest: sorted.reduce<(typeof sorted)[number] | null>(
      (most, of) => (of.events > (most?.events ?? 0) ? of : most),
      null,
    ),
    longest_session: longestToWire(time, sessions && earlier.longest(sessions, since, now, workspaceId)),
  }
}

function longestToWire(time: LocalTime, span: SessionSpan | undefined): Overview['pulse']['longest_session'] {
  if (!span) return null
  const { id, agentName, from, to } = span
  return {
    session_id: id,
    agent_name: agentName,
    date: time.day(to),
    duration_seconds: Math.max(0, Math.round((to - from) / 1000)),
  }
}

function usageOf(
  { kernel: { needs }, time, earlier }: Sources,
  now: number,
  request: OverviewRequest,
): Overview['usage'] {
  const { usageDays, workspaceId } = request
  const past = needs.sessions.current?.past
  const names = time.daysTo(now, usageDays)
  const shareFrom = time.daysTo(now, SHARE_DAYS)[0] ?? ''
  const [windowFrom = ''] = names
  const from = windowFrom < shareFrom ? windowFrom : shareFrom
  const rows = past ? earlier.usage(past, from, now, workspaceId) : []
  const inWindow = rows.filter(({ day }) => day >= windowFrom)
  const tokens = new Map(names.map(day => [day, 0]))
  for (const row of inWindow) tokens.set(row.day, (tokens.get(row.day) ?? 0) + (row.tokens ?? 0))
  const kept = past?.usageDays ?? KEPT_DAYS
  return {
    window_days: usageDays,
    total_tokens: [...tokens.values()].reduce((sum, n) => sum + n, 0),
    ...costOf(inWindow),
    days: [...tokens].map(([date, n]) => ({ date, tokens: n })),
    agent_share: sharesOf(rows.filter(({ day }) => day >= shareFrom)),
    retention_days: kept,
    truncated: usageDays > kept,
  }
}

function costOf(
  rows: readonly AgentDay[],
): Pick<Overview['usage'], 'estimated_cost' | 'cost_currency' | 'cost_status'> {
  const priced = rows.filter(({ currency, cost }) => currency === CURRENCY && cost !== null)
  if (priced.length === 0) return { estimated_cost: null, cost_status: 'unknown' }
  const isWhole = rows.every(({ currency, told, priced: n }) => told === 0 || (currency === CURRENCY && told === n))
  return {
    estimated_cost: priced.reduce((sum, { cost }) => sum + (cost ?? 0), 0),
    cost_currency: CURRENCY,
    cost_status: isWhole ? 'actual' : 'estimated',
  }
}

function sharesOf(rows: readonly AgentDay[]): Overview['usage']['agent_share'] {
  const tokens = new Map<string, number>()
  for (const row of rows) tokens.set(row.agent_name, (tokens.get(row.agent_name) ?? 0) + (row.tokens ?? 0))
  const all = [...tokens.values()].reduce((sum, n) => sum + n, 0)
  return [...tokens]
    .filter(([, n]) => n > 0)
    .sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))
    .slice(0, SHARED_AGENTS)
    .map(([agent_name, n]) => ({ agent_name, tokens: n, fraction: n / all }))
}

/** Activity is the newest event or heartbeat; live work is a task run that is claimed, starting or running. */
function freshnessOf(
  { needs }: K,
  hours: ReadonlyMap<number, Hour>,
  now: number,
  workspaceId: string | undefined,
): Overview['freshness'] {
  const tasks = needs.tasks.current?.activity(workspaceId)
  const latest = Math.max(tasks?.at ?? 0, ...[...hours.values()].map(({ lastAt }) => lastAt))
  const at = latest === 0 ? now : latest
  const live = tasks?.isLive ?? false
  const stale = live && now - at > STALE_MS
  return {
    status: latest === 0 ? 'empty' : stale ? 'stale' : 'current',
    stale,
    stale_after_ms: STALE_MS,
    age_ms: Math.max(0, now - at),
    has_live_work: live,
    latest_activity_at: iso(at),
    observed_at: iso(now),
  }
}
