/** Items of all sessions and tasks that need a person. */
import * as v from 'valibot'
import { Timestamp } from '../kernel/common.js'

/** A pending permission request or question of an agent. */
export const InboxQuestion = v.object({
  session_id: v.string(),
  session_name: v.optional(v.string()),
  agent_name: v.string(),
  workspace_id: v.string(),
  workspace_path: v.string(),
  interaction_id: v.string(),
  turn_id: v.string(),
  /** Kind of the tool call, such as `edit` or `execute`; `question` for a question. */
  kind: v.string(),
  title: v.string(),
  /** Absent if the title is the command. */
  command: v.optional(v.string()),
  /** Affected paths outside of the workspace. */
  outside: v.optional(v.array(v.string())),
  /** Files that would change, with line counts. */
  changes: v.optional(v.array(v.string())),
  /** Command that shows all of it. */
  show: v.optional(v.string()),
  /** Command that answers it. */
  answer: v.string(),
  created_at: Timestamp,
  /** When the agent continues without an answer; a permission request is then rejected once. */
  expires_at: Timestamp,
})
export type InboxQuestion = v.InferOutput<typeof InboxQuestion>

/** A task that needs a person: an approval, a failure to resolve, or a review without a reviewer. */
export const InboxTask = v.object({
  task_id: v.string(),
  /** The run that needs attention or a review. */
  task_run_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
  kind: v.picklist(['approval', 'attention', 'review']),
  title: v.string(),
  /** Command to run. */
  command: v.string(),
  created_at: Timestamp,
})
export type InboxTask = v.InferOutput<typeof InboxTask>

/** A suggested job or trigger that is neither accepted nor dismissed. */
export const InboxSuggestion = v.object({
  suggestion_id: v.string(),
  workspace_id: v.string(),
  kind: v.literal('suggestion'),
  title: v.string(),
  /** Command to run. */
  command: v.string(),
  created_at: Timestamp,
})
export type InboxSuggestion = v.InferOutput<typeof InboxSuggestion>

/** An unseen failure, listed until it is resolved or acknowledged. */
export const InboxMishap = v.object({
  /** Id of the attention item. */
  item_id: v.string(),
  kind: v.pipe(
    v.picklist(['failed', 'missed', 'expired']),
    v.description('a job failed, an occurrence of a job was not run, or nobody answered a question in time'),
  ),
  title: v.string(),
  workspace_id: v.optional(v.string()),
  session_id: v.optional(v.string()),
  agent_name: v.optional(v.string()),
  /** Command that shows more. */
  show: v.optional(v.string()),
  /** Command that acknowledges it. */
  command: v.string(),
  created_at: Timestamp,
})
export type InboxMishap = v.InferOutput<typeof InboxMishap>

export const InboxItem = v.union([InboxQuestion, InboxTask, InboxSuggestion, InboxMishap])
export type InboxItem = v.InferOutput<typeof InboxItem>

/** GET /api/inbox: the oldest first. */
export const InboxReply = v.object({ items: v.array(InboxItem) })
export type InboxReply = v.InferOutput<typeof InboxReply>
