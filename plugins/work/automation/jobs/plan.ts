import { iso } from '../../../../kernel/plugin.js'
import type { Schedule } from '../../../../schemas/automation.js'
import {
  fireSkip,
  type Limited,
  type Limits,
  limitOf,
  mustWait,
  type RunBook,
  SELF_OVERLAP,
  type Skip,
  slotSkip,
} from '../runs/room.js'
import { decide, Occurrences, occurrenceIds } from '../schedule.js'

/** The part of a job that its occurrences depend on. */
export interface Scheduled {
  readonly id: string
  readonly spec: Limited & { readonly schedule?: Schedule | null | undefined }
}

/** Cursor position of a job, in epoch milliseconds. */
export interface Standing {
  readonly next_run_at: number | null
  readonly last_scheduled_at: number | null
}

/** An occurrence to claim: it runs, or is recorded as skipped. */
export interface PlannedRun {
  readonly outcome: 'run'
  /** The occurrence, in epoch milliseconds. */
  readonly at: number
  readonly run: string
  readonly fire: string
  /** The next cursor position; undefined when the schedule has ended. */
  readonly next: number | undefined
  /** Occurrences were missed. */
  readonly misfire: boolean
  readonly skip?: Skip | undefined
  /** No slot is free: the occurrence waits for one. Its fire limit is checked when it has a slot. */
  readonly waits: boolean
  /** Metadata of the run: skip reason, and the start of the missed range that it covers. */
  readonly metadata: Readonly<Record<string, string>>
}

/** The decision for a job. */
export type JobPlan =
  | PlannedRun
  /** Nothing is due. */
  | { readonly outcome: 'idle' }
  /** The cursor was computed with an unset clock and is corrected. */
  | { readonly outcome: 'moved'; readonly next: number | undefined }
  /** The occurrence was already claimed; the cursor advances. */
  | { readonly outcome: 'known'; readonly next: number | undefined; readonly misfire: boolean }
  /** A backlog is replayed and its previous run is still open. */
  | { readonly outcome: 'waiting' }

/**
 * Decides about a job at one instant. A pure function of its arguments, shared by the scheduler and the simulation.
 * `missedBefore` (epoch milliseconds): occurrences due before it were missed because the daemon was down.
 */
export function planOccurrence(
  { id, spec }: Scheduled,
  cursor: Standing,
  { now, missedBefore }: { readonly now: number; readonly missedBefore: number },
  limits: Limits,
  runs: RunBook,
): JobPlan {
  const { schedule } = spec
  const planned = cursor.next_run_at
  if (!schedule || planned === null || planned > now) return { outcome: 'idle' }
  const occurrences = new Occurrences(schedule, limits.timezone)
  const due = occurrences.corrected(planned, cursor.last_scheduled_at ?? undefined, now)
  if (due === undefined || due > now) return { outcome: 'moved', next: due }
  const decision = decide(schedule, limits.timezone, due, now, due < missedBefore)
  const overlaps = runs.openOf(id) > 0
  if (decision.backlog && overlaps) return { outcome: 'waiting' }
  const { at, misfire } = decision
  const ids = occurrenceIds(id, at)
  if (runs.has(ids.run)) return { outcome: 'known', next: decision.next, misfire }
  // Coalesced occurrences have no run of their own: this run records the range that it covers.
  const missed = at > due ? { missed_since: iso(due) } : {}
  const missedSkip = decision.skip && {
    reason: decision.skip,
    text: 'missed while the daemon was not running or the machine slept',
  }
  const skip = missedSkip || (overlaps ? SELF_OVERLAP : undefined)
  const run = { outcome: 'run', at, ...ids, next: decision.next, misfire } as const
  const skipped = (why: Skip) => ({ ...run, skip: why, waits: false, metadata: { reason: why.reason, ...missed } })
  if (skip) return skipped(skip)
  if (mustWait(limits, runs))
    return limits.queueWait === 0 ? skipped(slotSkip(limits)) : { ...run, waits: true, metadata: missed }
  const {
    skip: limited,
    next,
    metadata,
  } = admitOccurrence({ id, spec }, { at, next: decision.next }, now, limits, runs)
  return { ...run, next, skip: limited, waits: false, metadata: { ...metadata, ...missed } }
}

/** The decision for an occurrence with a slot: it runs, or its fire limit is reached and the job pauses until the limit ends. */
export function admitOccurrence(
  { id, spec }: Scheduled,
  { at, next }: { readonly at: number; readonly next: number | undefined },
  now: number,
  limits: Limits,
  runs: RunBook,
): Pick<PlannedRun, 'skip' | 'next' | 'metadata'> {
  const limit = limitOf(spec, { jobId: id }, now, limits, runs)
  const skip = fireSkip(limit)
  const { freeAt } = limit
  if (!skip || freeAt === undefined) return { next, metadata: {} }
  if (next === undefined || next >= freeAt || !spec.schedule) return { skip, next, metadata: { reason: skip.reason } }
  const resumes = new Occurrences(spec.schedule, limits.timezone).after(at, freeAt - 1)
  const resumed = resumes === undefined || resumes === next ? {} : { resumes_at: iso(resumes) }
  return { skip, next: resumes, metadata: { reason: skip.reason, ...resumed } }
}
