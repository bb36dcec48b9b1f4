/** Questions and commands of agents, and the recap for a returning reader. */
import * as v from 'valibot'
import { Integer, queryInteger, Timestamp } from '../kernel/common.js'
import { mapOf } from '../kernel/map-of.js'
import { TaskRun } from '../tasks/run.js'
import { TranscriptMessage } from './events.js'
import { CommandSource } from './prompts.js'
import { Session } from './session.js'

/** A question of an agent to a person; without `choices` the answer is text. */
export const Clarification = v.object({
  agent_name: v.string(),
  asked_at: Timestamp,
  choices: v.optional(v.array(v.string())),
  /** When the agent continues without an answer. */
  deadline: Timestamp,
  /** Type of a typed answer; absent: text, or one of the choices. */
  type: v.optional(v.picklist(['string', 'number', 'integer', 'boolean'])),
  /** The question may be skipped. */
  optional: v.optional(v.boolean()),
  /** Several choices may be selected. */
  multiple: v.optional(v.boolean()),
  /** For a form, whose fields are asked in turn: the number of this field and of all fields. */
  position: v.optional(Integer),
  total: v.optional(Integer),
  question: v.string(),
  request_id: v.string(),
  session_id: v.string(),
})
export type Clarification = v.InferOutput<typeof Clarification>

/** GET …/clarifications. */
export const ListClarificationsReply = v.object({ clarifications: v.array(Clarification) })
export type ListClarificationsReply = v.InferOutput<typeof ListClarificationsReply>

const MAX_CHOICES = 50
const MAX_SECONDS = 3600

/** POST …/clarifications: asks the person of a session; with `choices` the answer is one of them, otherwise text. */
export const AskClarificationBody = v.strictObject({
  question: v.pipe(v.string(), v.regex(/\S/, 'a question needs text'), v.maxLength(2000)),
  choices: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.regex(/\S/, 'a choice needs text'), v.maxLength(200))),
      v.minLength(1),
      v.maxLength(MAX_CHOICES),
    ),
  ),
  /** Default: 300. */
  timeout_seconds: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_SECONDS))),
})
export type AskClarificationBody = v.InferOutput<typeof AskClarificationBody>

/** POST …/clarifications: the person's answer; `fallback`: no answer in time, so the caller continues without one. */
export const AskClarificationReply = v.object({
  request_id: v.string(),
  choice: v.nullable(Integer),
  text: v.string(),
  fallback: v.boolean(),
  resolved_by: v.picklist(['person', 'timeout', 'cancel']),
})
export type AskClarificationReply = v.InferOutput<typeof AskClarificationReply>

/** POST …/clarifications/{request_id}/answer: one or several choices, text, or none. */
export const AnswerClarificationBody = v.strictObject({
  choice_index: v.nullish(Integer),
  /** For a question with `multiple`. */
  choice_indexes: v.optional(v.pipe(v.array(Integer), v.maxLength(MAX_CHOICES))),
  /** Skip an optional question. */
  skip: v.optional(v.boolean()),
  /** Decline this question and the rest of its form. */
  decline: v.optional(v.boolean()),
  text: v.optional(v.pipe(v.string(), v.maxLength(10_000))),
})
export type AnswerClarificationBody = v.InferOutput<typeof AnswerClarificationBody>

/** POST …/clarifications/{request_id}/answer. */
export const AnswerClarificationReply = v.object({
  choice: v.nullable(Integer),
  fallback: v.boolean(),
  text: v.string(),
})
export type AnswerClarificationReply = v.InferOutput<typeof AnswerClarificationReply>

/** GET …/commands. */
export const ListCommandsReply = v.object({
  commands: v.array(
    v.object({
      available: v.boolean(),
      canonical_token: v.string(),
      description: v.string(),
      display_name: v.string(),
      id: v.string(),
      input_hint: v.optional(v.string()),
      lane: v.string(),
      placements: v.array(v.string()),
      source: CommandSource,
      unavailable_reason: v.optional(v.string()),
    }),
  ),
  /** Changes with the commands. */
  revision: v.string(),
})
export type ListCommandsReply = v.InferOutput<typeof ListCommandsReply>

/** GET …/recap: the newest `limit` messages; default 6, at most 50. */
export const RecapQuery = v.object({ limit: v.optional(queryInteger(0)) })
export type RecapQuery = v.InferOutput<typeof RecapQuery>

/** GET …/recap. */
export const RecapReply = v.object({
  recap: v.object({
    /** The task run that the session works on; null: none. */
    active_run: v.nullable(TaskRun),
    pending_inputs: Integer,
    pending_markers: Integer,
    recent_markers: v.array(
      v.object({
        kind: v.string(),
        occurred_at: Timestamp,
        summary: v.string(),
        /** Code and message of the related failure. */
        diagnostic: v.optional(v.unknown()),
        evidence: v.optional(mapOf(v.string(), v.unknown())),
      }),
    ),
    recent_messages: v.array(TranscriptMessage),
    session: Session,
    snapshot: v.object({
      consistency: v.string(),
      event_cursor: Integer,
      generated_at: Timestamp,
      queue_generation: Integer,
      transcript_cursor: Integer,
    }),
  }),
})
export type RecapReply = v.InferOutput<typeof RecapReply>
