/** The turn of a prompt in the stream protocol of the AI SDK. */
import * as v from 'valibot'

const Metadata = v.record(v.string(), v.unknown())
const Tool = { toolCallId: v.string(), dynamic: v.literal(true) }
const text = <const K extends 'text' | 'reasoning'>(kind: K) =>
  [
    v.strictObject({ type: v.literal(`${kind}-start`), id: v.string() }),
    v.strictObject({ type: v.literal(`${kind}-delta`), id: v.string(), delta: v.string() }),
    v.strictObject({ type: v.literal(`${kind}-end`), id: v.string() }),
  ] as const

/** A chunk of a message. */
export const UiChunk = v.variant('type', [
  v.strictObject({ type: v.literal('start'), messageId: v.string() }),
  v.strictObject({ type: v.picklist(['start-step', 'finish-step', 'abort']) }),
  ...text('text'),
  ...text('reasoning'),
  v.strictObject({
    type: v.literal('tool-input-available'),
    ...Tool,
    toolName: v.string(),
    title: v.optional(v.string()),
    input: v.unknown(),
  }),
  v.strictObject({ type: v.literal('tool-output-available'), ...Tool, output: v.unknown() }),
  v.strictObject({ type: v.literal('tool-output-error'), ...Tool, errorText: v.string() }),
  v.strictObject({ type: v.picklist(['data-permission', 'data-plan']), id: v.string(), data: v.unknown() }),
  v.strictObject({
    type: v.picklist(['data-runtime_warning', 'data-runtime_progress']),
    data: v.unknown(),
    transient: v.literal(true),
  }),
  v.strictObject({ type: v.literal('message-metadata'), messageMetadata: Metadata }),
  v.strictObject({ type: v.literal('finish'), messageMetadata: Metadata }),
  v.strictObject({ type: v.literal('error'), errorText: v.string() }),
])
export type UiChunk = v.InferOutput<typeof UiChunk>

/** One frame; the last one is no JSON. */
export const UiStreamFrame = v.strictObject({ data: v.union([UiChunk, v.literal('[DONE]')]) })
