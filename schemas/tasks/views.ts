/** Views of tasks and runs: timeline, tree, backlog, dashboard and inbox. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, Page, queryBoolean, queryInteger, Timestamp } from '../kernel/common.js'
import { ResolvedParticipation } from '../network.js'
import {
  ApprovalPolicy,
  ApprovalState,
  Owner,
  TaskActor,
  TaskOrigin,
  TaskPriority,
  TaskScope,
  TaskStatus,
  TaskSummary,
} from './definitions.js'
import { ActiveRun, InboxRun, TaskOverview, TaskRun, TaskRunStatus } from './run.js'

/** GET of the timeline of a task, and of its stream. */
export const TimelineQuery = v.object({
  after_sequence: v.optional(v.pipe(queryInteger(0), v.description('show only events after this sequence number'))),
  limit: v.optional(
    v.pipe(queryInteger(1, 1000), v.description('maximum number of events; default 200, at most 1000')),
  ),
})
export type TimelineQuery = v.InferOutput<typeof TimelineQuery>

/** An event of a task, with the current state of the task and the run. */
export const TimelineEntry = v.object({
  sequence: Integer,
  event_id: v.string(),
  event_type: v.string(),
  actor: TaskActor,
  origin: TaskOrigin,
  payload: v.optional(v.unknown()),
  /** The readable part of the payload. */
  note: v.optional(v.string()),
  run: v.nullish(ActiveRun),
  task: TaskSummary,
  timestamp: Timestamp,
})
export type TimelineEntry = v.InferOutput<typeof TimelineEntry>

export const TimelineReply = v.object({ timeline: v.array(TimelineEntry) })
export type TimelineReply = v.InferOutput<typeof TimelineReply>

/** The data of each frame of the stream of a task. */
export const TaskFrame = v.object({ sequence: Integer, timeline: TimelineEntry, type: v.string() })
export type TaskFrame = v.InferOutput<typeof TaskFrame>
export const TaskStreamFrame = v.object({ id: v.string(), event: v.string(), data: TaskFrame })

/** A task in its tree. */
export const TreeNode = v.object({
  task: TaskSummary,
  depth: Integer,
  parent_task_id: v.optional(v.string()),
  child_count: v.optional(Integer),
  active_run: v.nullish(ActiveRun),
  last_activity_at: Timestamp,
})
export type TreeNode = v.InferOutput<typeof TreeNode>

export const TreeReply = v.object({ tree: v.object({ root: TreeNode, descendants: v.optional(v.array(TreeNode)) }) })
export type TreeReply = v.InferOutput<typeof TreeReply>

const workspace = v.optional(v.pipe(v.string(), v.description('show only this workspace: ID, name or path')))

/** GET /api/scheduler/backlog. */
export const BacklogQuery = v.object({
  scope: v.optional(v.pipe(v.picklist(['all', 'global', 'workspace']), v.description('show only runs of this scope'))),
  workspace,
  include_paused: v.optional(v.pipe(queryBoolean(), v.description('include runs of paused tasks'))),
  limit: v.optional(v.pipe(queryInteger(1, 200), v.description('maximum number of runs; default 50, at most 200'))),
})
export type BacklogQuery = v.InferOutput<typeof BacklogQuery>

/** Queued runs in claim order, with their tasks. */
export const BacklogReply = v.object({
  backlog: v.object({ runs: v.array(v.object({ run: TaskRun, task: TaskOverview })), total: Integer }),
})
export type BacklogReply = v.InferOutput<typeof BacklogReply>

const scoped = {
  scope: v.optional(v.pipe(TaskScope, v.description('show only tasks of this scope'))),
  workspace,
  owner_kind: v.optional(v.pipe(Owner.entries.kind, v.description('show only tasks with an owner of this kind'))),
  owner_ref: v.optional(v.pipe(v.string(), v.description('show only tasks of this owner, such as a session ID'))),
}

/** GET /api/observe/tasks/dashboard. */
export const DashboardQuery = v.object({
  ...scoped,
  participation_channel: v.optional(
    v.pipe(v.string(), v.description('show only tasks that requested this network channel')),
  ),
  origin_kind: v.optional(v.pipe(TaskOrigin.entries.kind, v.description('show only tasks with this kind of origin'))),
})
export type DashboardQuery = v.InferOutput<typeof DashboardQuery>

/** An open run. */
export const DashboardRun = v.object({
  run_id: v.string(),
  run_status: TaskRunStatus,
  task_id: v.string(),
  task_identifier: v.optional(v.string()),
  task_title: v.string(),
  task_status: TaskStatus,
  task_priority: v.optional(TaskPriority),
  task_owner: v.nullish(Owner),
  scope: TaskScope,
  workspace_id: v.optional(v.string()),
  session_id: v.optional(v.string()),
  attempt: Integer,
  max_attempts: Integer,
  age_ms: Integer,
  stuck: v.boolean(),
  health_status: v.string(),
  error: v.optional(v.string()),
  /** The part of the task that this run of a fan-out works on. */
  part: v.optional(v.string()),
  agent_name: v.optional(v.string()),
  /** Why the run is not progressing. */
  why: v.optional(v.string()),
  /** The command to run next, if there is one. */
  next_action: v.optional(v.string()),
  latest_event_seq: Integer,
  last_activity_at: Timestamp,
  resolved_network_participation: v.nullish(ResolvedParticipation),
})
export type DashboardRun = v.InferOutput<typeof DashboardRun>

const Latency = v.object({ average_ms: Integer, maximum_ms: Integer, samples: Integer })

/** Totals, active runs and health of the task subsystem. Durations in milliseconds. */
export const Dashboard = v.object({
  totals: v.object({
    tasks_total: Integer,
    draft_tasks: Integer,
    pending_tasks: Integer,
    blocked_tasks: Integer,
    ready_tasks: Integer,
    in_progress_tasks: Integer,
    completed_tasks: Integer,
    failed_tasks: Integer,
    canceled_tasks: Integer,
    awaiting_approval_tasks: Integer,
    dependency_blocked_tasks: Integer,
    runs_total: Integer,
    active_runs: Integer,
    queued_runs: Integer,
    claimed_runs: Integer,
    starting_runs: Integer,
    running_runs: Integer,
    completed_runs: Integer,
    failed_runs: Integer,
    canceled_runs: Integer,
    needs_attention_tasks: Integer,
    needs_attention_runs: Integer,
  }),
  status_breakdown: v.optional(v.array(v.object({ status: TaskStatus, count: Integer, share_percent: Integer }))),
  active_runs: v.object({
    total: Integer,
    queued: Integer,
    claimed: Integer,
    starting: Integer,
    running: Integer,
    items: v.optional(v.array(DashboardRun)),
  }),
  queue: v.object({
    total: Integer,
    backlog_status: v.string(),
    backlog_warning: v.boolean(),
    backlog_threshold_ms: Integer,
    oldest_queue_age_ms: Integer,
    oldest_queued_at: Timestamp,
    depth: v.optional(
      v.array(
        v.object({
          channel_id: v.optional(v.string()),
          count: Integer,
          oldest_queue_age_ms: Integer,
          oldest_queued_at: Timestamp,
        }),
      ),
    ),
  }),
  cards: v.object({
    blocked: v.object({
      tasks: Integer,
      awaiting_approval: Integer,
      awaiting_dependencies: Integer,
      health_status: v.string(),
    }),
    failed: v.object({ tasks: Integer, failed_runs: Integer, forced_stops: Integer, health_status: v.string() }),
    in_progress: v.object({
      tasks: Integer,
      active_runs: Integer,
      claimed_runs: Integer,
      queued_runs: Integer,
      running_runs: Integer,
      starting_runs: Integer,
      health_status: v.string(),
    }),
    latency: v.object({ claim_latency_ms: Latency, start_latency_ms: Latency }),
  }),
  health: v.object({
    status: v.string(),
    stuck_runs: Integer,
    active_orphan_runs: Integer,
    queue_backlog: v.boolean(),
  }),
  freshness: v.object({
    status: v.string(),
    stale: v.boolean(),
    stale_after_ms: Integer,
    age_ms: Integer,
    has_live_work: v.boolean(),
    latest_activity_at: Timestamp,
    observed_at: Timestamp,
  }),
})
export type Dashboard = v.InferOutput<typeof Dashboard>

export const DashboardReply = v.object({ dashboard: Dashboard })
export type DashboardReply = v.InferOutput<typeof DashboardReply>

/** Why a task is in the inbox. */
export const InboxLane = v.picklist(['my_work', 'approvals', 'failed_runs', 'blocked', 'archived'])
export type InboxLane = v.InferOutput<typeof InboxLane>

/** GET /api/observe/tasks/inbox; `query` is matched against title and identifier. */
export const InboxQuery = v.object({
  ...scoped,
  lane: v.optional(InboxLane),
  status: v.optional(TaskStatus),
  priority: v.optional(TaskPriority),
  unread: v.optional(queryBoolean()),
  query: v.optional(v.string()),
  cursor: v.optional(v.string()),
  limit: v.optional(queryInteger(1, 200)),
})
export type InboxQuery = v.InferOutput<typeof InboxQuery>

/** The inbox state of a task for one actor. */
export const Triage = v.object({
  task_id: v.string(),
  actor: TaskActor,
  read: v.boolean(),
  dismissed: v.boolean(),
  archived: v.boolean(),
  last_seen_activity_at: maybeTimestamp,
  updated_at: Timestamp,
})
export type Triage = v.InferOutput<typeof Triage>

export const TriageReply = v.object({ triage: Triage })
export type TriageReply = v.InferOutput<typeof TriageReply>

const { paused: _paused, effective_paused: _effective, paused_by_task_id: _by, ...inboxTask } = TaskSummary.entries

/** A task in the inbox. */
export const InboxItem = v.object({
  lane: InboxLane,
  task: v.object(inboxTask),
  run: v.nullish(InboxRun),
  triage: Triage,
  approval_policy: v.optional(ApprovalPolicy),
  approval_state: v.optional(ApprovalState),
  blocking_reason: v.optional(v.string()),
  latest_activity_at: Timestamp,
})
export type InboxItem = v.InferOutput<typeof InboxItem>

/** Totals and facets cover all matching tasks; groups hold the current page. */
export const Inbox = v.object({
  groups: v.array(
    v.object({ lane: InboxLane, count: Integer, unread_count: Integer, items: v.optional(v.array(InboxItem)) }),
  ),
  facets: v.object({
    statuses: v.array(v.object({ status: TaskStatus, count: Integer })),
    priorities: v.array(v.object({ priority: TaskPriority, count: Integer })),
  }),
  archived_total: Integer,
  unread_total: Integer,
  page: Page,
})
export type Inbox = v.InferOutput<typeof Inbox>

export const InboxReply = v.object({ inbox: Inbox })
export type InboxReply = v.InferOutput<typeof InboxReply>
