import { iso } from '../../../kernel/plugin.js'
import type { Schedule } from '../../../schemas/automation.js'
import { type Limited, type Limits, limitOf, type RunBook, type Skip, skipOf } from '../runs/room.js'
import { decide, Occurrences, occurrenceIds } from '../schedule.js'

/** A job as far as its occurrences depend on it. */
export interface Scheduled {
  readonly id: string
  readonly spec: Limited & { readonly schedule?: Schedule | null | undefined }
}

/** Where a job stands, in epoch milliseconds. */
export interface Standing {
  readonly next_run_at: number | null
  readonly last_scheduled_at: number | null
}

/** An occurrence that is claimed: it runs, or is recorded as skipped. */
export interface PlannedRun {
  readonly outcome: 'run'
  /** The occurrence, in epoch milliseconds. */
  readonly at: number
  readonly run: string
  readonly fire: string
  /** Where the cursor goes; undefined: nowhere, the schedule has ended. */
  readonly next: number | undefined
  /** Occurrences were missed. */
  readonly misfire: boolean
  readonly skip?: Skip | undefined
  /** What else is known of the run: its reason, the occurrences that have no run of their own. */
  readonly metadata: Readonly<Record<string, string>>
}

/** What becomes of a job now. */
export type JobPlan =
  | PlannedRun
  /** Nothing is due. */
  | { readonly outcome: 'idle' }
  /** An unset clock had planned it: the cursor goes to where the right one has it. */
  | { readonly outcome: 'moved'; readonly next: number | undefined }
  /** The occurrence was claimed before; the cursor goes on. */
  | { readonly outcome: 'known'; readonly next: number | undefined; readonly misfire: boolean }
  /** A backlog is run one after the other, and a run of it is going on. */
  | { readonly outcome: 'waiting' }

/**
 * Decides about a job at one instant, from nothing but its arguments: the scheduler carries out what this says, and a simulation
 * tells of it. `missedBefore`, in epoch milliseconds: what was due before was missed, for the daemon was not there.
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
    ? { reason: decision.skip, text: 'it was due while the daemon was not running' }
    : skipOf(overlaps, limit, limits, runs)
  const resumes = skip?.reason === 'fire_limit' ? limit.freeAt : undefined
  const next =
    resumes === undefined || decision.next === undefined || decision.next >= resumes
      ? decision.next
      : occurrences.after(at, resumes - 1)
  // What has no run of its own is named by the run that stands for it.
  const metadata = {
    ...(skip ? { reason: skip.reason } : {}),
    ...(at > due ? { missed_since: iso(due) } : {}),
    ...(next !== undefined && next !== decision.next ? { resumes_at: iso(next) } : {}),
  }
  return { outcome: 'run', at, ...ids, next, misfire, skip, metadata }
}
