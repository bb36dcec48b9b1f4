/** Questions of agents, commands that they offer, and what a returning reader wants to know. */
import * as v from 'valibot'
import { Integer, queryInteger, Timestamp } from '../kernel/common.js'
import { TaskRun } from '../tasks/run.js'
import { TranscriptMessage } from './events.js'
import { CommandSource } from './prompts.js'
import { Session } from './session.js'

/** A question of an agent that waits for a person; without `choices` a text is wanted. */
export const Clarification = v.object({
  agent_name: v.string(),
  asked_at: Timestamp,
  choices: v.optional(v.array(v.string())),
  /** When the agent goes on without an answer. */
  deadline: Timestamp,
  /** What a typed answer has to be; absent: a text, or one of the choices. */
  type: v.optional(v.picklist(['string', 'number', 'integer', 'boolean'])),
  /** It may be skipped. */
  optional: v.optional(v.boolean()),
  /** Several of the choices may be given. */
  multiple: v.optional(v.boolean()),
  /** Of a form, whose fields are asked one after the other: which of them it is, and how many there are. */
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

/** POST …/clarifications: a question to the person of a session; with `choices` one of them is the answer, otherwise a text. */
export const AskClarificationBody = v.strictObject({
  question: v.pipe(v.string(), v.regex(/\S/, 'a question has words'), v.maxLength(2000)),
  choices: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.regex(/\S/, 'a choice has words'), v.maxLength(200))),
      v.minLength(1),
      v.maxLength(MAX_CHOICES),
    ),
  ),
  /** Default: 300. */
  timeout_seconds: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_SECONDS))),
})
export type AskClarificationBody = v.InferOutput<typeof AskClarificationBody>

/** POST …/clarifications: what the person answered; `fallback`: nobody did, and whoever asks goes on by itself. */
export const AskClarificationReply = v.object({
  request_id: v.string(),
  choice: v.nullable(Integer),
  text: v.string(),
  fallback: v.boolean(),
  resolved_by: v.picklist(['person', 'timeout', 'cancel']),
})
export type AskClarificationReply = v.InferOutput<typeof AskClarificationReply>

/** POST …/clarifications/{request_id}/answer: one or several of the choices, a text, or none. */
export const AnswerClarificationBody = v.strictObject({
  choice_index: v.nullish(Integer),
  /** For a question with `multiple`. */
  choice_indexes: v.optional(v.pipe(v.array(Integer), v.maxLength(MAX_CHOICES))),
  /** Leaves an optional question without an answer. */
  skip: v.optional(v.boolean()),
  /** Answers neither this question nor the rest of its form. */
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
  /** Another one when the commands are. */
  revision: v.string(),
})
export type ListCommandsReply = v.InferOutput<typeof ListCommandsReply>

/** GET …/recap: the newest `limit` messages, 6 unless told, at most 50. */
export const RecapQuery = v.object({ limit: v.optional(queryInteger(0)) })
export type RecapQuery = v.InferOutput<typeof RecapQuery>

/** GET …/recap. */
export const RecapReply = v.object({
  recap: v.object({
    /** What it works on for a task; null: nothing. */
    active_run: v.nullable(TaskRun),
    pending_inputs: Integer,
    pending_markers: Integer,
    recent_markers: v.array(
      v.object({
        kind: v.string(),
        occurred_at: Timestamp,
        summary: v.string(),
        /** Code and message of the failure that it tells of. */
        diagnostic: v.optional(v.unknown()),
        evidence: v.optional(v.record(v.string(), v.unknown())),
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
