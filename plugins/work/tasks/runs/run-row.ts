import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import { iso } from '../../../../kernel/plugin.js'
import type {
  ActiveRun,
  InboxRun,
  TaskActor,
  TaskLease,
  TaskOrigin,
  TaskRun,
  TaskRunStatus,
} from '../../../../schemas/tasks.js'
import { optionalMember } from '../rows.js'
import { actorToWire, refToWire } from '../who.js'
import { channelOfRun, participationOf } from './participation.js'

const { integer, text, time } = column

/** A worker does the work, a coordinator leads the workers of its fan-out. */
export type RunKind = 'worker' | 'coordinator'

/** A run as it is stored; times in epoch milliseconds. */
export const runTable = table('tasks_run', {
  id: text(),
  task_id: text(),
  kind: text<RunKind>(),
  status: text<TaskRunStatus>(),
  attempt: integer(),
  recovery_count: integer(),
  previous_run_id: text().nullable(),
  idempotency_key: text().nullable(),
  origin_kind: text<TaskOrigin['kind']>(),
  origin_ref: text(),
  session_id: text().nullable(),
  claimed_by_kind: text<TaskActor['kind']>().nullable(),
  claimed_by_ref: text().nullable(),
  /** `sha256:` and hex of the token that the daemon holds for the lease. */
  token_hash: text().nullable(),
  /** Idempotency key of the claim, for a repeated request. */
  claim_key: text().nullable(),
  queued_at: time(),
  claimed_at: time().nullable(),
  started_at: time().nullable(),
  ended_at: time().nullable(),
  heartbeat_at: time().nullable(),
  /** Set while the run is leased. */
  lease_until: time().nullable(),
  lease_ms: integer().nullable(),
  designation_index: integer().nullable(),
  designation_brief: text().nullable(),
  designation_group_id: text().nullable(),
  metadata: text().nullable(),
  result: text().nullable(),
  error: text().nullable(),
  failure_kind: text().nullable(),
  /** Resolved when the run was queued. */
  participation: text().nullable(),
  /** Name of the requested network channel, whether or not it was resolved. */
  channel: text().nullable(),
  /** Id of the workspace of its task; empty for a global one. */
  place: text(),
  priority: integer(),
  claimable: integer(),
  /** Requirements on the claimant; null: none. */
  wants: text().nullable(),
  /** The task has an execution profile, so a session is started for an unclaimed run. Null: queued by an earlier version. */
  profiled: integer().nullable(),
  /** Key of the claim requested with its completion. */
  next_key: text().nullable(),
  /** The run claimed that way; empty: none; null: not known yet. */
  next_run: text().nullable(),
})
export type RunRow = RowOf<typeof runTable>

/** Claim columns of an unclaimed run. */
export const UNCLAIMED = {
  session_id: null,
  claimed_by_kind: null,
  claimed_by_ref: null,
  token_hash: null,
  claim_key: null,
  claimed_at: null,
  started_at: null,
  heartbeat_at: null,
  lease_until: null,
  lease_ms: null,
} as const

/** The part of its task that a run row contains. */
export const taskOf = ({ task_id: id, place: workspaceId }: RunRow) => ({
  id,
  workspace_id: workspaceId === '' ? null : workspaceId,
})

const timeOf = (at: number | null) => (at === null ? null : iso(at))
const claimantOf = ({ claimed_by_kind: kind, claimed_by_ref: ref }: RunRow): TaskActor | null =>
  kind === null ? null : actorToWire(kind, ref)

/** The inbox fields of a run. */
export function runFacts(row: RunRow, maxAttempts: number): InboxRun {
  return {
    id: row.id,
    task_id: row.task_id,
    status: row.status,
    attempt: row.attempt,
    max_attempts: maxAttempts,
    recovery_count: row.recovery_count,
    ...optionalMember('previous_run_id', row.previous_run_id),
    ...optionalMember('session_id', row.session_id),
    claimed_by: claimantOf(row),
    queued_at: iso(row.queued_at),
    claimed_at: timeOf(row.claimed_at),
    started_at: timeOf(row.started_at),
    ended_at: timeOf(row.ended_at),
    heartbeat_at: timeOf(row.heartbeat_at),
    lease_until: timeOf(row.lease_until),
    ...optionalMember('error', row.error),
    ...optionalMember('failure_kind', row.failure_kind),
    resolved_network_participation: participationOf(row),
  }
}

const channelToWire = (row: RunRow) => {
  const channel = channelOfRun(row)
  return channel ? { coordination_channel: channel } : {}
}

export function activeToWire(row: RunRow, maxAttempts: number): ActiveRun {
  return {
    ...runFacts(row, maxAttempts),
    ...optionalMember('claim_token_hash', row.token_hash),
    ...channelToWire(row),
    ...(row.designation_index === null
      ? {}
      : { designation: { index: row.designation_index, ...optionalMember('brief', row.designation_brief) } }),
    ...optionalMember('designation_group_id', row.designation_group_id),
  }
}

/** A run as the contract has it. */
export function runToWire(row: RunRow): TaskRun {
  const { max_attempts: _, ...facts } = activeToWire(row, 0)
  return {
    ...facts,
    ...(row.kind === 'worker' ? {} : { kind: row.kind }),
    origin: { kind: row.origin_kind, ref: refToWire(row.origin_ref) },
    ...optionalMember('idempotency_key', row.idempotency_key),
    ...(row.metadata === null ? {} : { metadata: JSON.parse(row.metadata) }),
    ...(row.result === null ? {} : { result: JSON.parse(row.result) }),
  }
}

/** The lease of a run, or its final state after the lease has ended. */
export function leaseToWire(row: RunRow): TaskLease {
  return {
    run_id: row.id,
    task_id: row.task_id,
    status: row.status,
    ...optionalMember('session_id', row.session_id),
    ...optionalMember('claim_token_hash', row.token_hash),
    claimed_by: claimantOf(row),
    heartbeat_at: timeOf(row.heartbeat_at),
    lease_until: timeOf(row.lease_until),
    ...channelToWire(row),
    resolved_network_participation: participationOf(row),
  }
}
