/** What waits for a person, over all sessions and tasks. */
import * as v from 'valibot'
import { Timestamp } from '../kernel/common.js'

/** A pending request of an agent: for permission, or a question in words. */
export const InboxQuestion = v.object({
  session_id: v.string(),
  session_name: v.optional(v.string()),
  agent_name: v.string(),
  workspace_id: v.string(),
  workspace_path: v.string(),
  interaction_id: v.string(),
  turn_id: v.string(),
  /** Of the tool call: `edit`, `execute` …; `question` for one in words. */
  kind: v.string(),
  title: v.string(),
  /** Absent where the title is the command. */
  command: v.optional(v.string()),
  /** Paths outside of the workspace that it is about. */
  outside: v.optional(v.array(v.string())),
  /** Files that would change, each with its lines. */
  changes: v.optional(v.array(v.string())),
  /** What to run to see all of it. */
  show: v.optional(v.string()),
  /** What to run to answer it. */
  answer: v.string(),
  created_at: Timestamp,
  /** When the agent goes on without an answer; a permission is then rejected once. */
  expires_at: Timestamp,
})
export type InboxQuestion = v.InferOutput<typeof InboxQuestion>

/** A task that goes on when a person has approved it, looked at what went wrong, or reviewed a run that no reviewer was found for. */
export const InboxTask = v.object({
  task_id: v.string(),
  /** The run that needs attention or a review. */
  task_run_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
  kind: v.picklist(['approval', 'attention', 'review']),
  title: v.string(),
  /** What to run. */
  command: v.string(),
  created_at: Timestamp,
})
export type InboxTask = v.InferOutput<typeof InboxTask>

/** A job or trigger that somebody suggests and nobody has accepted or dismissed. */
export const InboxSuggestion = v.object({
  suggestion_id: v.string(),
  workspace_id: v.string(),
  kind: v.literal('suggestion'),
  title: v.string(),
  /** What to run. */
  command: v.string(),
  created_at: Timestamp,
})
export type InboxSuggestion = v.InferOutput<typeof InboxSuggestion>

/** What went wrong while nobody looked: listed until it is well again or acknowledged. */
export const InboxMishap = v.object({
  /** Of the item in the list of attention. */
  item_id: v.string(),
  kind: v.pipe(
    v.picklist(['failed', 'missed', 'expired']),
    v.description('a job failed, an occurrence of a job was not run, or nobody answered a question in time'),
  ),
  title: v.string(),
  workspace_id: v.optional(v.string()),
  session_id: v.optional(v.string()),
  agent_name: v.optional(v.string()),
  /** What to run to see more of it. */
  show: v.optional(v.string()),
  /** What to run when it was seen. */
  command: v.string(),
  created_at: Timestamp,
})
export type InboxMishap = v.InferOutput<typeof InboxMishap>

export const InboxItem = v.union([InboxQuestion, InboxTask, InboxSuggestion, InboxMishap])
export type InboxItem = v.InferOutput<typeof InboxItem>

/** GET /api/inbox: the oldest first. */
export const InboxReply = v.object({ items: v.array(InboxItem) })
export type InboxReply = v.InferOutput<typeof InboxReply>
