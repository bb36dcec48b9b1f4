import type { Tx } from '../../../kernel/plugin.js'
import type { EventSum, StoredEvent } from '../../platform/events/api.js'
import type { LocalTime } from '../../work/sessions/api.js'

/** Counts of a day. */
export interface DayCounts {
  runs_completed: number
  runs_failed: number
  runs_canceled: number
  tasks_closed: number
  hook_runs: number
  hook_failures: number
}

export const NO_COUNTS: Readonly<DayCounts> = {
  ...{ runs_completed: 0, runs_failed: 0, runs_canceled: 0, tasks_closed: 0 },
  ...{ hook_runs: 0, hook_failures: 0 },
}

/** The events of one hour in one workspace. */
export interface HourCounts {
  readonly hour: number
  readonly workspaceId: string
  events: number
  lastAt: number
}

interface Day extends DayCounts {
  readonly day: string
  readonly workspaceId: string
}

/** Final statuses of tasks. */
const CLOSED = new Set(['completed', 'failed', 'canceled'])
const OF_STATUS = { completed: 'runs_completed', failed: 'runs_failed', canceled: 'runs_canceled' } as const

/**
 * Events that end a run. Each run has exactly one: a run in need of attention that a person replaced counts as failed.
 */
export const RUN_ENDS: Readonly<Record<string, keyof DayCounts>> = {
  'task.run_completed': 'runs_completed',
  'task.run_failed': 'runs_failed',
  'task.run_operator_forced_fail': 'runs_failed',
  'task.run_recovered_from_attention': 'runs_failed',
  'task.run_canceled': 'runs_canceled',
}

/** Events whose payload determines their counter. */
export const DECIDED_BY_PAYLOAD = ['automation.run.ended', 'task.status_changed', 'task.canceled'] as const

/** Length in milliseconds of the slots that events are summed by: days and hours of every time zone begin with one. */
export const SLOT_MS = 900_000

/** The day count that an event increments. */
export function countOf({ name, payload }: Pick<StoredEvent, 'name' | 'payload'>): keyof DayCounts | undefined {
  const end = RUN_ENDS[name]
  if (end !== undefined) return end
  const { status, from, to } = Object(payload) as { status?: unknown; from?: unknown; to?: unknown }
  // A delegated run continues as the run of a task.
  if (name === 'automation.run.ended') return OF_STATUS[status as keyof typeof OF_STATUS]
  if (name === 'task.status_changed') return CLOSED.has(`${to}`) && !CLOSED.has(`${from}`) ? 'tasks_closed' : undefined
  if (name === 'task.canceled') return CLOSED.has(`${from}`) ? undefined : 'tasks_closed'
  return undefined
}

/** Counts by hour and day, before they are added to the tables. */
export class Tally {
  readonly hours = new Map<string, HourCounts>()
  readonly days = new Map<string, Day>()

  /**
   * @param isWorkspace events of other scopes count as those without a workspace, so that scopes cannot create
   *   unlimited rows
   */
  constructor(
    private readonly time: LocalTime,
    private readonly isWorkspace: (id: string) => boolean,
  ) {}

  add(event: StoredEvent): void {
    const { at, scope } = event
    this.#hour(at, this.#workspace(scope), 1, at)
    this.addOutcome(event)
  }

  /** Adds the outcome of an event, such as a failed run or a closed task, to its day; hours are counted by {@link addSum}. */
  addOutcome(event: StoredEvent): void {
    const what = countOf(event)
    if (what !== undefined) this.count(this.time.day(event.at), this.#workspace(event.scope), what)
  }

  /** Adds several events at once; those that depend on their payload also need {@link addOutcome}. */
  addSum({ slot, name, scope, n, last }: EventSum): void {
    const workspaceId = this.#workspace(scope ?? undefined)
    this.#hour(slot * SLOT_MS, workspaceId, n, last)
    const end = RUN_ENDS[name]
    if (end !== undefined) this.count(this.time.day(slot * SLOT_MS), workspaceId, end, n)
  }

  #workspace(scope: string | undefined): string {
    return scope !== undefined && this.isWorkspace(scope) ? scope : ''
  }

  #hour(at: number, workspaceId: string, events: number, lastAt: number): void {
    const hour = this.time.hourStart(at)
    const key = `${hour}/${workspaceId}`
    const there = this.hours.get(key)
    if (there) {
      there.events += events
      there.lastAt = Math.max(there.lastAt, lastAt)
    } else this.hours.set(key, { hour, workspaceId, events, lastAt })
  }

  count(day: string, workspaceId: string, what: keyof DayCounts, n = 1): void {
    const key = `${day}/${workspaceId}`
    const there = this.days.get(key) ?? { day, workspaceId, ...NO_COUNTS }
    there[what] += n
    this.days.set(key, there)
  }

  /** Adds all counts to the tables. */
  write(t: Tx): void {
    for (const { hour, workspaceId, events, lastAt } of this.hours.values())
      t.run(
        `INSERT INTO observe_hour (hour, workspace_id, events, last_at) VALUES (?, ?, ?, ?)
         ON CONFLICT (hour, workspace_id) DO UPDATE SET
           events = events + excluded.events, last_at = max(last_at, excluded.last_at)`,
        [hour, workspaceId, events, lastAt],
      )
    for (const { day, workspaceId, ...counts } of this.days.values()) addDay(t, day, workspaceId, counts)
  }
}

/** Adds to the counts of a day. */
export function addDay(t: Tx, day: string, workspaceId: string, counts: DayCounts): void {
  t.run(
    `INSERT INTO observe_day
       (day, workspace_id, runs_completed, runs_failed, runs_canceled, tasks_closed, hook_runs, hook_failures)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (day, workspace_id) DO UPDATE SET
       runs_completed = runs_completed + excluded.runs_completed, runs_failed = runs_failed + excluded.runs_failed,
       runs_canceled = runs_canceled + excluded.runs_canceled, tasks_closed = tasks_closed + excluded.tasks_closed,
       hook_runs = hook_runs + excluded.hook_runs, hook_failures = hook_failures + excluded.hook_failures`,
    [
      day,
      workspaceId,
      counts.runs_completed,
      counts.runs_failed,
      counts.runs_canceled,
      counts.tasks_closed,
      counts.hook_runs,
      counts.hook_failures,
    ],
  )
}
