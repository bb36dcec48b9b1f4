import { iso } from '../../../../kernel/plugin.js'
import type { ResolvedParticipation } from '../../../../schemas/network.js'
import type {
  ActiveRun,
  InboxRun,
  TaskActor,
  TaskLease,
  TaskOrigin,
  TaskRun,
  TaskRunStatus,
} from '../../../../schemas/tasks.js'
import { given } from '../rows.js'
import { actorToWire, refToWire } from '../who.js'
import { channelOfRun } from './participation.js'

/** A worker does the work, a coordinator leads the workers of its fan-out. */
export type RunKind = 'worker' | 'coordinator'

/** A run as it is stored; times in epoch milliseconds. */
export interface RunRow {
  readonly id: string
  readonly task_id: string
  readonly kind: RunKind
  readonly status: TaskRunStatus
  readonly attempt: number
  readonly recovery_count: number
  readonly previous_run_id: string | null
  readonly idempotency_key: string | null
  readonly origin_kind: TaskOrigin['kind']
  readonly origin_ref: string
  readonly session_id: string | null
  readonly claimed_by_kind: TaskActor['kind'] | null
  readonly claimed_by_ref: string | null
  /** `sha256:` and hex of the token that the daemon holds for the lease. */
  readonly token_hash: string | null
  /** Idempotency key of the claim, for a repeated request. */
  readonly claim_key: string | null
  readonly queued_at: number
  readonly claimed_at: number | null
  readonly started_at: number | null
  readonly ended_at: number | null
  readonly heartbeat_at: number | null
  /** Set while the run is leased. */
  readonly lease_until: number | null
  readonly lease_ms: number | null
  readonly designation_index: number | null
  readonly designation_brief: string | null
  readonly designation_group_id: string | null
  readonly metadata: string | null
  readonly result: string | null
  readonly error: string | null
  readonly failure_kind: string | null
  /** Resolved when the run was queued. */
  readonly participation: string | null
  /** Name of the requested network channel, whether or not it was resolved. */
  readonly channel: string | null
  /** Id of the workspace of its task; empty for a global one. */
  readonly place: string
  readonly priority: number
  readonly claimable: number
  /** Requirements on the claimant; null: none. */
  readonly wants: string | null
  /** The task has an execution profile, so a session is started for an unclaimed run. Null: queued by an earlier version. */
  readonly profiled: number | null
  /** Key of the claim that its completion asked for. */
  readonly next_key: string | null
  /** The run that it got; empty: none; null: it is not known yet. */
  readonly next_run: string | null
}

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

/** The task of a run as far as the run knows it. */
export const taskOf = ({ task_id: id, place }: RunRow) => ({ id, workspace_id: place === '' ? null : place })

const time = (at: number | null) => (at === null ? null : iso(at))
const claimantOf = ({ claimed_by_kind: kind, claimed_by_ref: ref }: RunRow): TaskActor | null =>
  kind === null ? null : actorToWire(kind, ref)
const participationOf = ({ participation }: RunRow): ResolvedParticipation | null =>
  participation === null ? null : JSON.parse(participation)

/** What the inbox shows of a run. */
export function runFacts(row: RunRow, maxAttempts: number): InboxRun {
  return {
    id: row.id,
    task_id: row.task_id,
    status: row.status,
    attempt: row.attempt,
    max_attempts: maxAttempts,
    recovery_count: row.recovery_count,
    ...given('previous_run_id', row.previous_run_id),
    ...given('session_id', row.session_id),
    claimed_by: claimantOf(row),
    queued_at: iso(row.queued_at),
    claimed_at: time(row.claimed_at),
    started_at: time(row.started_at),
    ended_at: time(row.ended_at),
    heartbeat_at: time(row.heartbeat_at),
    lease_until: time(row.lease_until),
    ...given('error', row.error),
    ...given('failure_kind', row.failure_kind),
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
    ...given('claim_token_hash', row.token_hash),
    ...channelToWire(row),
    ...(row.designation_index === null
      ? {}
      : { designation: { index: row.designation_index, ...given('brief', row.designation_brief) } }),
    ...given('designation_group_id', row.designation_group_id),
  }
}

/** A run as the contract has it. */
export function runToWire(row: RunRow): TaskRun {
  const { max_attempts: _, ...facts } = activeToWire(row, 0)
  return {
    ...facts,
    ...(row.kind === 'worker' ? {} : { kind: row.kind }),
    origin: { kind: row.origin_kind, ref: refToWire(row.origin_ref) },
    ...given('idempotency_key', row.idempotency_key),
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
    ...given('session_id', row.session_id),
    ...given('claim_token_hash', row.token_hash),
    claimed_by: claimantOf(row),
    heartbeat_at: time(row.heartbeat_at),
    lease_until: time(row.lease_until),
    ...channelToWire(row),
    resolved_network_participation: participationOf(row),
  }
}
