/** The stored events of a session, and the frames of its stream. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'
import { SessionFailure, StopReason } from './session.js'

/** The goal prompt that an event belongs to. */
export const GoalPrompt = v.object({
  kind: v.picklist(['goal-work', 'goal-continuation', 'goal-compaction']),
  generation: Integer,
  item_index: Integer,
  node_id: v.string(),
  prompt_attempt: Integer,
  prompt_id: v.string(),
  run_id: v.string(),
  turn: v.nullable(Integer),
})
export type GoalPrompt = v.InferOutput<typeof GoalPrompt>

/** A stored event; within a generation, `sequence` increments by one and is never reused. */
export const SessionEvent = v.object({
  id: v.string(),
  actor_id: v.optional(v.string()),
  actor_kind: v.optional(v.string()),
  agent_name: v.string(),
  claim_token_hash: v.optional(v.string()),
  content: v.unknown(),
  coordinator_session_id: v.optional(v.string()),
  failure: v.nullish(SessionFailure),
  goal: v.nullish(GoalPrompt),
  hook_event: v.optional(v.string()),
  hook_name: v.optional(v.string()),
  lease_until: maybeTimestamp,
  parent_session_id: v.optional(v.string()),
  release_reason: v.optional(v.string()),
  root_session_id: v.optional(v.string()),
  run_id: v.optional(v.string()),
  scheduler_reason: v.optional(v.string()),
  sequence: Integer,
  session_id: v.string(),
  spawn_depth: Integer,
  stop_detail: v.optional(v.string()),
  stop_reason: v.optional(StopReason),
  task_id: v.optional(v.string()),
  timestamp: Timestamp,
  turn_id: v.string(),
  type: v.string(),
  workflow_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
  workspace_path: v.optional(v.string()),
})
export type SessionEvent = v.InferOutput<typeof SessionEvent>

/** A part of a message: text, thought, or a tool call with its input and output. */
export const MessagePart = v.object({
  id: v.optional(v.string()),
  data: v.optional(v.unknown()),
  errorText: v.optional(v.string()),
  input: v.optional(v.unknown()),
  output: v.optional(v.unknown()),
  preliminary: v.optional(v.boolean()),
  rawInput: v.optional(v.unknown()),
  state: v.optional(v.string()),
  text: v.optional(v.string()),
  title: v.optional(v.string()),
  toolCallId: v.optional(v.string()),
  toolName: v.optional(v.string()),
  type: v.string(),
})
export type MessagePart = v.InferOutput<typeof MessagePart>

/** A message in the transcript. */
export const TranscriptMessage = v.object({
  id: v.string(),
  metadata: v.optional(v.unknown()),
  parts: v.array(MessagePart),
  role: v.string(),
})
export type TranscriptMessage = v.InferOutput<typeof TranscriptMessage>

/** A message, built from the events `start_sequence` to `sequence`. */
export const TranscriptEntry = v.object({ message: TranscriptMessage, sequence: Integer, start_sequence: Integer })
export type TranscriptEntry = v.InferOutput<typeof TranscriptEntry>

/** New or changed entries. */
export const TranscriptDelta = v.object({
  cursor: Integer,
  entries: v.array(TranscriptEntry),
  epoch: Integer,
  generation: Integer,
  has_more: v.boolean(),
  max_sequence: Integer,
  session_id: v.string(),
  workspace_id: v.optional(v.string()),
  workspace_path: v.optional(v.string()),
})
export type TranscriptDelta = v.InferOutput<typeof TranscriptDelta>

/** The end of the transcript; `reset` if the reader's state is invalid, with the `reason`. */
export const TranscriptSnapshot = v.object({
  entries: v.array(TranscriptEntry),
  epoch: Integer,
  generation: Integer,
  has_older: v.boolean(),
  max_sequence: Integer,
  next_before_sequence: v.optional(Integer),
  reason: v.optional(v.string()),
  reset: v.boolean(),
  session_id: v.string(),
  workspace_id: v.optional(v.string()),
  workspace_path: v.optional(v.string()),
})
export type TranscriptSnapshot = v.InferOutput<typeof TranscriptSnapshot>

/** The goal of a session changed. */
export const GoalSnapshotChanged = v.object({
  bound_session_id: v.nullable(v.string()),
  cause: v.picklist(['start', 'replace', 'status', 'clear', 'reseed']),
  revision: Integer,
  run_id: v.nullable(v.string()),
  session_id: v.string(),
})
export type GoalSnapshotChanged = v.InferOutput<typeof GoalSnapshotChanged>

/** Payloads of stream frames by event name; each frame has one. */
export const SessionStreamFrames = v.object({
  goal_snapshot_changed: v.nullish(GoalSnapshotChanged),
  raw: v.nullish(SessionEvent),
  session_stopped: v.nullish(SessionEvent),
  transcript_delta: v.nullish(TranscriptDelta),
  transcript_snapshot: v.nullish(TranscriptSnapshot),
})
export type SessionStreamFrames = v.InferOutput<typeof SessionStreamFrames>

/** One frame of the stream; raw stored events use their type as the event name. */
export const SessionStreamFrame = v.variant('event', [
  v.object({ id: v.string(), event: v.literal('transcript_delta'), data: TranscriptDelta }),
  v.object({ id: v.string(), event: v.literal('transcript_snapshot'), data: TranscriptSnapshot }),
  v.object({ id: v.string(), event: v.string(), data: SessionEvent }),
])
