import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import { iso } from '../../../../kernel/plugin.js'
import type { ReviewOutcome, ReviewPolicy, ReviewStatus, TaskActor, TaskReview } from '../../../../schemas/tasks.js'
import { optionalMember } from '../rows.js'
import type { RunRow } from '../runs/run-row.js'
import { actorToWire } from '../who.js'

const { integer, real, text, time } = column

/** A review as it is stored; times in epoch milliseconds. */
export const reviewTable = table('tasks_review', {
  id: text(),
  task_id: text(),
  run_id: text(),
  attempt: integer(),
  round: integer(),
  parent_id: text().nullable(),
  policy: text<ReviewPolicy>(),
  status: text<ReviewStatus>(),
  reason: text().nullable(),
  outcome: text<ReviewOutcome>().nullable(),
  verdict_reason: text().nullable(),
  confidence: real().nullable(),
  missing_work: text().nullable(),
  guidance: text().nullable(),
  text: text().nullable(),
  delivery_id: text().nullable(),
  reviewed_by_kind: text<TaskActor['kind']>().nullable(),
  reviewed_by_ref: text().nullable(),
  session_id: text().nullable(),
  agent_name: text().nullable(),
  continuation_run: text().nullable(),
  requested_at: time(),
  routed_at: time().nullable(),
  started_at: time().nullable(),
  reviewed_at: time().nullable(),
  deadline_at: time(),
  updated_at: time(),
})
export type ReviewRow = RowOf<typeof reviewTable>

export const REVIEW_TABLE = `
CREATE TABLE tasks_review (
  id TEXT PRIMARY KEY NOT NULL, task_id TEXT NOT NULL, run_id TEXT NOT NULL, attempt INTEGER NOT NULL, round INTEGER NOT NULL,
  parent_id TEXT, policy TEXT NOT NULL, status TEXT NOT NULL, reason TEXT, outcome TEXT, verdict_reason TEXT, confidence REAL,
  missing_work TEXT, guidance TEXT, text TEXT, delivery_id TEXT, reviewed_by_kind TEXT, reviewed_by_ref TEXT,
  session_id TEXT, agent_name TEXT, continuation_run TEXT, requested_at INTEGER NOT NULL, routed_at INTEGER,
  started_at INTEGER, reviewed_at INTEGER, deadline_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tasks_review_round ON tasks_review (run_id, round);
CREATE INDEX tasks_review_task ON tasks_review (task_id, requested_at);
CREATE INDEX tasks_review_open ON tasks_review (deadline_at, id) WHERE status IN ('requested', 'routed', 'in_review');
CREATE INDEX tasks_review_session ON tasks_review (session_id) WHERE status IN ('routed', 'in_review');`

/** A requested review. */
export interface ReviewWish {
  readonly round: number
  readonly policy: ReviewPolicy
  readonly reason: string | null
  /** Epoch milliseconds. */
  readonly deadline: number
  readonly parent: string | null
}

/** The row of a new review of a run; `now` in epoch milliseconds. */
export function newReview(id: string, now: number, run: RunRow, wish: ReviewWish): ReviewRow {
  return {
    id,
    task_id: run.task_id,
    run_id: run.id,
    attempt: run.attempt,
    round: wish.round,
    parent_id: wish.parent,
    policy: wish.policy,
    status: 'requested',
    reason: wish.reason,
    ...{ outcome: null, verdict_reason: null, confidence: null, missing_work: null, guidance: null, text: null },
    ...{ delivery_id: null, reviewed_by_kind: null, reviewed_by_ref: null, session_id: null, agent_name: null },
    ...{ continuation_run: null, routed_at: null, started_at: null, reviewed_at: null },
    requested_at: now,
    deadline_at: wish.deadline,
    updated_at: now,
  }
}

/** Placeholder for a time that is not set, where the contract requires one. */
export const NEVER = '0001-01-01T00:00:00Z'
const timeOf = (at: number | null) => (at === null ? NEVER : iso(at))

export function reviewToWire(row: ReviewRow): TaskReview {
  const { reviewed_by_kind: kind, reviewed_by_ref: ref } = row
  return {
    review_id: row.id,
    task_id: row.task_id,
    run_id: row.run_id,
    attempt: row.attempt,
    review_round: row.round,
    ...optionalMember('parent_review_id', row.parent_id),
    policy: row.policy,
    status: row.status,
    ...optionalMember('reason', row.verdict_reason ?? row.reason),
    ...(row.outcome === null ? {} : { outcome: row.outcome, confidence: row.confidence }),
    ...(row.missing_work === null ? {} : { missing_work: JSON.parse(row.missing_work) }),
    ...optionalMember('next_round_guidance', row.guidance),
    ...optionalMember('review_text', row.text),
    ...optionalMember('delivery_id', row.delivery_id),
    reviewed_by: kind === null ? null : actorToWire(kind, ref),
    ...optionalMember('reviewer_session_id', row.session_id),
    ...optionalMember('reviewer_agent_name', row.agent_name),
    created_at: iso(row.requested_at),
    requested_at: iso(row.requested_at),
    routed_at: timeOf(row.routed_at),
    started_at: timeOf(row.started_at),
    reviewed_at: timeOf(row.reviewed_at),
    deadline_at: iso(row.deadline_at),
    updated_at: iso(row.updated_at),
  }
}
