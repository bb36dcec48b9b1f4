import { iso } from '../../../../kernel/plugin.js'
import { LastRun, Run } from '../../../../schemas/automation.js'
import { type RunRow, runs } from './run-row.js'

/** The `last_run` member of a job. */
export const lastRunToWire = (row: RunRow): LastRun => runs.wire(row, LastRun)

/** The wire form of a run. */
export const runToWire = (row: RunRow): Run =>
  runs.wire(row, Run, {
    job_id: row.trigger_id === null ? row.job_id : undefined,
    scheduled_at: isoOrNull(row.scheduled_at),
    ended_at: isoOrNull(row.ended_at),
    delivery_error_at: isoOrNull(row.delivery_error_at),
    metadata: metadataToWire(row),
  })

/** Metadata; a waiting run includes the end of its wait. */
function metadataToWire({ metadata, wait_until: until }: RunRow): Run['metadata'] {
  if (metadata === null && until === null) return undefined
  const stored = metadata === null ? {} : JSON.parse(metadata)
  return until === null ? stored : { ...stored, waits_until: iso(until) }
}

/** A time in a reply; null without one. */
export const isoOrNull = (at: number | null): string | null => (at === null ? null : iso(at))
