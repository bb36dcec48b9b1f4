import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import { type StoredRecord, turn } from '../../../../kernel/plugin.js'
import type { SimulationQuery, SimulationReply, Timeline } from '../../../../schemas/automation/simulation.js'
import { durationMs } from '../../../../schemas/duration.js'
import { AutomationErrors } from '../api.js'
import type { ClaimLimits } from '../claim.js'
import type { CursorStore } from '../cursors.js'
import type { DefinitionRecord } from '../definitions.js'
import { decodeJob, JobKind, type JobRecord } from '../job-kind.js'
import type { K } from '../needs.js'
import { type RunOf, runOf } from '../runs/run-row.js'
import type { RunStore } from '../runs/runs.js'
import type { Observed } from '../triggers/observed.js'
import { decodeTrigger, TriggerKind } from '../triggers/trigger-kind.js'
import type { Triggers } from '../triggers/triggers.js'
import { observedEvents } from './observed-events.js'
import { replayTriggers } from './replay-triggers.js'
import { type SimulatedJob, type Span, simulateJobs } from './simulate-jobs.js'
import type { Player } from './simulated-runs.js'
import { TimelineBook } from './timeline.js'

const DAY_MS = 24 * 60 * 60_000
const DEFAULT_DAYS = 30
const DEFAULT_LISTED = 1000
/** Assumed duration when a definition has no completed run. */
const DEFAULT_RUN_MS = 60_000
/** Records decoded per turn of the event loop. */
const WINDOW = 200
const MAX_DEFINITIONS = 20_000
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/

/** Read-only data of the daemon for a simulation. */
export interface SimulatorWork {
  readonly cursors: CursorStore
  readonly runs: RunStore
  readonly triggers: Triggers
  readonly observed: Observed
  readonly limits: ClaimLimits
}

/** Assumptions about all runs. */
interface Assumed {
  readonly runMs?: number | undefined
  readonly fails: (id: string, name: string) => boolean
}

/** Simulates the stored jobs and triggers. */
export class Simulator {
  #busy = false

  constructor(
    private readonly kernel: K,
    private readonly work: SimulatorWork,
  ) {}

  /** One at a time. Throws 400 `simulation_invalid`, 429 `simulation_busy`; ends early when the signal aborts. */
  async simulate(query: SimulationQuery, signal: AbortSignal): Promise<SimulationReply['simulation']> {
    const now = this.kernel.clock.now()
    const ms = (query.days ?? DEFAULT_DAYS) * DAY_MS
    const offline = offlineOf(query.offline ?? '', now, now + ms)
    this.#checkOnly(query)
    if (this.#busy) throw AutomationErrors.simulation_busy(undefined, { retryAfter: 1 })
    this.#busy = true
    try {
      const { part = 'all' } = query
      const { timezone, maxConcurrent } = this.work.limits
      return {
        timezone,
        max_concurrent_jobs: maxConcurrent,
        ...(part === 'triggers' ? {} : { jobs: await this.#jobs(query, { from: now, to: now + ms }, offline, signal) }),
        ...(part === 'jobs' ? {} : { triggers: await this.#triggers(query, { from: now - ms, to: now }, signal) }),
      }
    } finally {
      this.#busy = false
    }
  }

  async #jobs(query: SimulationQuery, span: Span, offline: readonly Span[], signal: AbortSignal): Promise<Timeline> {
    const { cursors, runs, limits } = this.work
    const assumed = assumedOf(query)
    const records = await this.#records<JobRecord>(JobKind.name, decodeJob)
    const jobs: SimulatedJob[] = []
    const definitions: { of: RunOf; name: string; why: Timeline['silent'][number]['why'] }[] = []
    const earlier: { of: RunOf; startedAt: number }[] = []
    for (const [n, job] of records.entries()) {
      if (n % WINDOW === 0) await turn()
      const cursor = cursors.get(job.id)
      const of = { jobId: job.id }
      const next = cursor?.next_run_at ?? null
      const why = cursor?.enabled === false ? 'disabled' : next === null ? 'ended' : 'not_due'
      definitions.push({ of, name: job.spec.name, why })
      if (next === null || next > span.to) continue
      const window = durationMs((job.spec.fire_limit ?? limits.fireLimit).window) ?? 0
      for (const startedAt of runs.started(of, window, span.from)) earlier.push({ of, startedAt })
      const { last_scheduled_at = null } = cursor ?? {}
      jobs.push({ ...this.#player(of, job, assumed), of, spec: job.spec, next_run_at: next, last_scheduled_at })
    }
    const listed = { only: query.only, limit: query.limit ?? DEFAULT_LISTED }
    const book = new TimelineBook({ ...listed, atOnce: limits.maxConcurrent })
    const simulation = {
      ...span,
      jobs,
      limits,
      startedAt: limits.startedAt(),
      offline,
      earlier,
      going: this.#going(span.from, assumed),
      queued: runs
        .open()
        .flatMap(({ job_id: job, scheduled_at: at, wait_until: until }) =>
          until === null ? [] : [{ job, scheduledAt: at ?? span.from, until }],
        ),
      known: runs.scheduledAfter(span.from),
    }
    const stops = () => signal.aborted || book.isFull
    await simulateJobs(simulation, this.kernel.log, occasion => book.tell(occasion), stops)
    return book.toWire(span, definitions)
  }

  async #triggers(query: SimulationQuery, span: Span, signal: AbortSignal): Promise<Timeline> {
    const { observed, limits, triggers } = this.work
    const assumed = assumedOf(query)
    const records = await this.#records(TriggerKind.name, decodeTrigger)
    const definitions = records.map(record => ({
      of: { triggerId: record.id },
      name: record.spec.name,
      why: !triggers.enabled(record)
        ? ('disabled' as const)
        : record.spec.event === 'webhook'
          ? ('webhook' as const)
          : ('no_event' as const),
    }))
    const book = new TimelineBook({ only: query.only, limit: query.limit ?? DEFAULT_LISTED })
    const players = new Map<string, Player>()
    const events = await replayTriggers(
      {
        events: observedEvents(this.kernel.needs.events, new Set(records.map(({ spec }) => spec.event)), span),
        observed,
        limits,
        player: trigger => {
          const known = players.get(trigger.id) ?? this.#player({ triggerId: trigger.id }, trigger, assumed)
          players.set(trigger.id, known)
          return known
        },
      },
      occasion => book.tell(occasion),
      () => signal.aborted || book.isFull,
    )
    return { ...book.toWire(span, definitions), events }
  }

  /** Throws 400 `simulation_invalid` when `only` names no job or trigger. */
  #checkOnly({ only, part = 'all' }: SimulationQuery): void {
    if (only === undefined) return
    const { records } = this.kernel
    const kinds = [...(part === 'triggers' ? [] : [JobKind.name]), ...(part === 'jobs' ? [] : [TriggerKind.name])]
    const isThere = kinds.some(
      kind => records.get(kind, only) !== undefined || records.list({ kind, members: { name: only } }).length > 0,
    )
    if (isThere) return
    const wanted = part === 'all' ? 'job or trigger' : part.replace(/s$/, '')
    throw AutomationErrors.simulation_invalid(`only: ${wanted} not found: ${shown(only)}`, {
      next: command(part === 'triggers' ? 'automation triggers list' : 'automation jobs list'),
    })
  }

  /** Definitions of a kind, without invalid ones. */
  async #records<R extends DefinitionRecord>(
    kind: string,
    decode: (record: StoredRecord) => R | undefined,
  ): Promise<R[]> {
    const { records } = this.kernel
    const ids = records.ids(kind)
    if (ids.length > MAX_DEFINITIONS)
      throw AutomationErrors.simulation_invalid(
        `more than ${MAX_DEFINITIONS} records of kind ${kind}: too many to simulate`,
      )
    const found: R[] = []
    for (let from = 0; from < ids.length; from += WINDOW) {
      for (const record of records.getAll(kind, ids.slice(from, from + WINDOW))) {
        const definition = decode(record)
        if (definition) found.push(definition)
      }
      await turn()
    }
    return found
  }

  #player(of: RunOf, { id, spec }: DefinitionRecord, { runMs, fails }: Assumed): Player {
    const took = runMs ?? this.work.runs.usualMs(of) ?? DEFAULT_RUN_MS
    return { of, name: spec.name, spec, runMs: took, fails: fails(id, spec.name) }
  }

  /** Runs that are scheduled or running now. */
  #going(now: number, assumed: Assumed) {
    return this.work.runs.open().flatMap(run => {
      if (run.wait_until !== null) return []
      const of = runOf(run)
      const record = this.kernel.records.get('jobId' in of ? JobKind.name : TriggerKind.name, columnId(of))
      const definition = 'jobId' in of ? decodeJob(record) : decodeTrigger(record)
      if (!definition) return []
      const player = this.#player(of, definition, assumed)
      const scheduled = run.scheduled_at === null ? {} : { scheduledAt: run.scheduled_at }
      const leftMs = Math.max(1, player.runMs - (now - run.started_at))
      return [{ player, attempt: run.attempt, ...scheduled, leftMs }]
    })
  }
}

const columnId = (of: RunOf) => ('jobId' in of ? of.jobId : of.triggerId)

function assumedOf({ failing = '', run_seconds: seconds }: SimulationQuery): Assumed {
  const named = new Set(failing.split(',').map(text => text.trim()))
  return {
    runMs: seconds === undefined ? undefined : seconds * 1000,
    fails: (id, name) => named.has('*') || named.has(id) || named.has(name),
  }
}

/** Parses `offline`. Throws 400 `simulation_invalid` unless the spans are valid and within the simulated time. */
function offlineOf(text: string, from: number, to: number): Span[] {
  const spans = text.split(',').flatMap(part => {
    if (part.trim() === '') return []
    const [first = '', last = '', ...more] = part.trim().split('/')
    const span = { from: Math.max(from, Date.parse(first)), to: Math.min(to, Date.parse(last)) }
    const isSpan = more.length === 0 && TIME.test(first) && TIME.test(last) && span.from < span.to
    if (!isSpan)
      throw AutomationErrors.simulation_invalid(
        'offline: must be spans such as 2030-01-31T09:00:00Z/2030-01-31T17:00:00Z within the simulated days',
      )
    return [span]
  })
  const sorted = spans.toSorted((a, b) => a.from - b.from)
  if (sorted.some(({ from: next }, n) => n > 0 && next < (sorted[n - 1] as Span).to))
    throw AutomationErrors.simulation_invalid('offline: the spans must not overlap')
  return sorted
}
