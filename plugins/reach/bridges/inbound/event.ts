import * as v from 'valibot'
import { issueLine } from '../../../../kernel/kit/issue-text.js'
import { BridgeErrors, type InboundEvent } from '../api.js'

/** Maximum size of a text in bytes. A longer text is refused in the chat. */
export const MAX_TEXT = 64 * 1024
/** Limits: files per event, and base64 characters per file and in total. */
const MAX_FILES = 10
const MAX_FILE = Math.ceil((8 * 1024 * 1024 * 4) / 3) + 4
const MAX_FILES_SIZE = 2 * MAX_FILE

const id = v.pipe(v.string(), v.minLength(1), v.maxLength(512))
const name = v.pipe(v.string(), v.maxLength(512))
const Event = v.object({
  bridge_instance_id: id,
  idempotency_key: id,
  family: v.picklist(['message', 'edit', 'command', 'action', 'reaction']),
  sender: v.object({
    id,
    username: v.optional(name),
    display_name: v.optional(name),
    authenticated: v.boolean(),
    is_bot: v.optional(v.boolean()),
  }),
  peer_id: v.optional(id),
  group_id: v.optional(id),
  thread_id: v.optional(id),
  message_id: v.optional(id),
  reply_to_message_id: v.optional(id),
  text: v.optional(v.string()),
  action_id: v.optional(v.pipe(v.string(), v.maxLength(512))),
  addressed: v.boolean(),
  automatic: v.optional(v.boolean()),
  received_at: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0))),
  attachments: v.optional(
    v.pipe(
      v.array(
        v.object({
          name,
          mime_type: v.pipe(v.string(), v.maxLength(255)),
          data: v.pipe(v.string(), v.maxLength(MAX_FILE)),
        }),
      ),
      v.maxLength(MAX_FILES),
      v.check(
        files => files.reduce((sum, { data }) => sum + data.length, 0) <= MAX_FILES_SIZE,
        'files of 16 MiB in all',
      ),
    ),
  ),
})

/** Validates an event from an adapter. @throws Fault `bridge_event_invalid` */
export function eventOf(value: unknown): InboundEvent {
  const read = v.safeParse(Event, value)
  if (!read.success) throw BridgeErrors.bridge_event_invalid(`not an event of a bridge: ${issueLine(read.issues[0])}`)
  return read.output as InboundEvent
}

/** The event as stored in the inbox: without file contents, and without a text that is too long. */
export function keptOf(event: InboundEvent): string {
  const { attachments, ...kept } = event
  return JSON.stringify(isTooLong(event) ? { ...kept, text: undefined } : kept)
}

export const isTooLong = ({ text = '' }: InboundEvent): boolean =>
  text.length > MAX_TEXT || Buffer.byteLength(text) > MAX_TEXT
