import { shown } from '../../../../kernel/kit/text.js'
import type { RunRow } from './run-row.js'

/** The part of a fan-out that a run works on; both are null for an ordinary run. */
export type Part = Pick<RunRow, 'designation_group_id' | 'designation_index'>

/** Start of the attention reason of a task of which a part failed. Its mark follows from the runs and goes with them. */
export const PART_FAILED = 'part_failed'

/** Characters of the brief and of the error of a part in a reason. */
const CHARS = { brief: 80, error: 200 }

/** The latest run of a task (runs are given newest first) or, in a fan-out, the latest run of each part. */
export function latestRuns<R extends Part>(runs: readonly R[]): R[] {
  const group = runs[0]?.designation_group_id ?? null
  if (group === null) return runs.slice(0, 1)
  const parts = new Map<number | null, R>()
  for (const run of runs)
    if (run.designation_group_id === group && !parts.has(run.designation_index)) parts.set(run.designation_index, run)
  return [...parts.values()].sort((a, b) => (a.designation_index ?? 0) - (b.designation_index ?? 0))
}

/** The outcome of a task according to its latest runs, once all runs have ended. */
export interface Outcome {
  /** Failed when one has failed, else completed when one has completed; undefined without runs. */
  readonly ended: 'completed' | 'failed' | 'canceled' | undefined
  /** A failed one has no attempt left. */
  readonly exhausted: boolean
  /** A failed run is part of a fan-out. */
  readonly partFailed: boolean
}

/** Evaluates the latest runs of a task. */
export function outcomeOf(
  latest: readonly Pick<RunRow, 'status' | 'attempt' | 'designation_group_id'>[],
  maxAttempts: number,
): Outcome {
  const failed = latest.filter(({ status }) => status === 'failed')
  const has = (wanted: 'completed' | 'canceled') => latest.some(({ status }) => status === wanted)
  return {
    ended: failed.length > 0 ? 'failed' : has('completed') ? 'completed' : has('canceled') ? 'canceled' : undefined,
    exhausted: failed.some(({ attempt }) => attempt + 1 > maxAttempts),
    partFailed: failed.some(({ designation_group_id: group }) => group !== null),
  }
}

/** Reason for which a task with failed parts needs attention. */
export function partFailure(latest: readonly RunRow[]): string {
  const failed = latest.filter(({ status }) => status === 'failed')
  const named = failed.map(({ designation_index: index, designation_brief: brief, error }) => {
    const name = index === null ? 'the coordinator' : `part ${index + 1} (${shown(brief ?? '', CHARS.brief)})`
    return error === null ? name : `${name}: ${error.slice(0, CHARS.error)}`
  })
  return `${PART_FAILED}: ${failed.length} of ${latest.length} parts failed: ${named.join('; ')}`
}
