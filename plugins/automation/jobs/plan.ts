import { iso } from '../../../kernel/plugin.js'
import type { Schedule } from '../../../schemas/automation.js'
import { type Limited, type Limits, limitOf, type RunBook, type Skip, skipOf } from '../runs/room.js'
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
  /** Metadata of the run: skip reason, start of the missed range it stands for. */
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
  const limit = limitOf(spec, { jobId: id }, now, limits, runs)
  const skip = decision.skip
    ? { reason: decision.skip, text: 'missed while the daemon was not running' }
    : skipOf(overlaps, limit, limits, runs)
  const resumes = skip?.reason === 'fire_limit' ? limit.freeAt : undefined
  const next =
    resumes === undefined || decision.next === undefined || decision.next >= resumes
      ? decision.next
      : occurrences.after(at, resumes - 1)
  // Coalesced occurrences have no run of their own: this run records the range it stands for.
  const metadata = {
    ...(skip ? { reason: skip.reason } : {}),
    ...(at > due ? { missed_since: iso(due) } : {}),
    ...(next !== undefined && next !== decision.next ? { resumes_at: iso(next) } : {}),
  }
  return { outcome: 'run', at, ...ids, next, misfire, skip, metadata }
}
