/** Events of the daemon for `svc logs events` and programs: GET /api/logs and its stream. */
import * as v from 'valibot'
import { DurationText } from '../duration.js'
import { Integer, queryBoolean, queryInteger, Timestamp } from '../kernel/common.js'

/** Maximum events in one reply. */
export const MOST_LOG_EVENTS = 1000

const text = (description: string) => v.optional(v.pipe(v.string(), v.maxLength(256), v.description(description)))

/** Query members that filter events. */
const filters = {
  workspace_id: text('only events of this workspace: ID, name or path'),
  session_id: text('only events of this session'),
  agent_name: text('only events of sessions of this agent'),
  type: text('only events of this type: task.run_failed, or task.* for all with this prefix'),
  run: text('only events of this task run or automation run'),
  actor: text('only events of this actor: its ID, or kind/ID'),
  actor_kind: text('only events of actors of this kind'),
  actor_id: text('only events of the actor with this ID'),
  provider: text('only events of this provider'),
  outcome: text('only events with this outcome'),
  component: text('only events whose type has this first word: task, session, bridge'),
  error_only: v.optional(v.pipe(queryBoolean(), v.description('only events that report a failure'))),
  after_seq: v.optional(v.pipe(queryInteger(0), v.description('only events after this position, oldest first'))),
  since: v.optional(
    v.pipe(
      v.union([Timestamp, DurationText]),
      v.description('only events since this time: a time, or a duration before now'),
    ),
  ),
  limit: v.optional(
    v.pipe(
      queryInteger(1, MOST_LOG_EVENTS),
      v.description(`maximum number of events, up to ${MOST_LOG_EVENTS}; default 200`),
    ),
  ),
}

/** GET /api/logs. */
export const LogsQuery = v.object(filters)
export type LogsQuery = v.InferOutput<typeof LogsQuery>

/** GET /api/logs/stream. */
export const LogsStreamQuery = v.object({
  ...filters,
  replay: v.optional(
    v.pipe(queryBoolean(), v.description('start with the newest matching events; default: only new events')),
  ),
})
export type LogsStreamQuery = v.InferOutput<typeof LogsStreamQuery>

const member = v.optional(v.string())

/** An event of the daemon. */
export const LogEvent = v.object({
  id: v.string(),
  seq: v.pipe(Integer, v.description('position in the log, ascending')),
  timestamp: Timestamp,
  type: v.string(),
  component: member,
  summary: member,
  outcome: member,
  agent_name: v.string(),
  session_id: v.string(),
  spawn_depth: Integer,
  workspace_id: member,
  task_id: member,
  run_id: member,
  workflow_id: member,
  provider: member,
  actor_kind: member,
  actor_id: member,
  parent_session_id: member,
  root_session_id: member,
  coordinator_session_id: member,
  hook_event: member,
  hook_name: member,
  claim_token_hash: member,
  lease_until: v.nullish(Timestamp),
  release_reason: member,
  scheduler_reason: member,
  content: v.optional(v.unknown()),
})
export type LogEvent = v.InferOutput<typeof LogEvent>

/** Reply of GET /api/logs, oldest first. */
export const LogsReply = v.object({
  events: v.array(LogEvent),
  last_seq: v.pipe(Integer, v.description('position of the newest event of the log: after_seq of the next request')),
  complete: v.pipe(v.boolean(), v.description('false: older events were not searched')),
})
export type LogsReply = v.InferOutput<typeof LogsReply>

/** Events missed by a reader of the stream: removed by retention (`gap`), or lost because the log restarted (`reset`). */
export const LogsMissed = v.object({ reason: v.picklist(['gap', 'reset']), from: Integer, to: Integer })
export type LogsMissed = v.InferOutput<typeof LogsMissed>

/** A frame of the stream: an event under its type, or `gap` or `reset` with the missed range. */
export const LogsFrame = v.object({ id: v.string(), event: v.string(), data: v.union([LogEvent, LogsMissed]) })
