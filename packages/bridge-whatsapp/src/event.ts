import { clip, fileName, type InboundEvent } from '../../bridge-kit/src/index.js'

/** A file of a message, fetched by its id. */
export interface Media {
  readonly id: string
  readonly name: string
  readonly type: string
}

/** One message of a webhook. `ignored`: valid but not for the daemon, with the reason. */
export type Reading = { readonly event: InboundEvent; readonly media?: Media } | { readonly ignored: string }

/** The status of a sent message. */
export interface Status {
  readonly id: string
  readonly status: 'sent' | 'delivered' | 'read' | 'failed'
  /** The error code of a failure. */
  readonly code: number
  readonly message: string
}

/** The contents of a webhook, in order. */
export interface Update {
  readonly readings: readonly Reading[]
  readonly statuses: readonly Status[]
  /** Numbers of the same app that belong to other instances. */
  readonly others: readonly string[]
}

interface Entry {
  readonly changes?: unknown
}
interface Value {
  readonly metadata?: { readonly phone_number_id?: unknown; readonly display_phone_number?: unknown }
  readonly contacts?: unknown
  readonly messages?: unknown
  readonly statuses?: unknown
}
interface Contact {
  readonly wa_id?: unknown
  readonly user_id?: unknown
  readonly profile?: { readonly name?: unknown; readonly username?: unknown }
}
interface Message {
  readonly id?: unknown
  readonly from?: unknown
  /** Set if the person hides the number behind a username. */
  readonly from_user_id?: unknown
  readonly group_id?: unknown
  readonly timestamp?: unknown
  readonly type?: unknown
  readonly context?: { readonly id?: unknown; readonly from?: unknown }
  readonly [kind: string]: unknown
}

/** Limit of messages and statuses per request; Meta sends up to a thousand. */
const MOST = 2000
const ID = /^[\x21-\x7e]{1,256}$/
/** A phone number, or the business-scoped id of a person. */
const PERSON = /^(?:\d{3,20}|[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128})$/
const GROUP = /^[A-Za-z0-9@._=+/-]{1,200}$/
/** Button ids of a permission question. */
const DECISION = /^(?:allow|deny):/

export const isPerson = (text: string): boolean => PERSON.test(text)
export const isGroup = (text: string): boolean => GROUP.test(text)

/** Reads the body of a webhook for one number. */
export function readUpdate(payload: Readonly<Record<string, unknown>>, phoneNumberId: string): Update {
  const readings: Reading[] = []
  const statuses: Status[] = []
  const others = new Set<string>()
  const changes = listOf<Entry>(payload.entry).flatMap(entry =>
    listOf<{ field?: unknown; value?: Value }>(entry.changes),
  )
  for (const { field, value } of changes) {
    if (field !== 'messages' || typeof value !== 'object' || value === null) {
      readings.push({ ignored: `the field ${clip(String(field), 64)}` })
      continue
    }
    const { metadata, contacts, messages, statuses: rawStatuses } = value
    const number = metadata?.phone_number_id
    if (number !== phoneNumberId) {
      others.add(clip(String(number), 64))
      continue
    }
    const own = textOf(metadata?.display_phone_number).replace(/\D/g, '')
    for (const message of listOf<Message>(messages)) readings.push(readMessage(message, listOf(contacts), own))
    for (const status of listOf<Record<string, unknown>>(rawStatuses)) statuses.push(...readStatus(status))
  }
  return { readings, statuses, others: [...others] }
}

function readMessage(message: Message, contacts: readonly Contact[], own: string): Reading {
  const { id, from, from_user_id: userId, group_id: group, context, timestamp, type } = message
  if (!isText(id, ID)) return { ignored: 'it lacks an id' }
  const person = isText(from, PERSON) ? from : isText(userId, PERSON) ? userId : undefined
  if (person === undefined) return { ignored: 'it names no sender' }
  if (group !== undefined && !isText(group, GROUP)) return { ignored: 'its group has no id' }
  const content = contentOf(message)
  if ('ignored' in content) return content
  const { text, family = 'message', media, action, about } = content
  const profile = contacts.find(one => one.wa_id === person || one.user_id === userId)?.profile
  const repliedTo = about ?? (isText(context?.id, ID) ? context.id : undefined)
  const seconds = Number(timestamp)
  const isNamed = own !== '' && (textOf(context?.from) === own || text.includes(`@${own}`))
  return {
    ...(media ? { media } : {}),
    event: {
      idempotency_key: id,
      family,
      sender: {
        id: person,
        ...(textOf(profile?.username) === '' ? {} : { username: textOf(profile?.username) }),
        ...(textOf(profile?.name) === '' ? {} : { display_name: textOf(profile?.name) }),
        // Verified by Meta's signature.
        authenticated: true,
      },
      peer_id: person,
      ...(group === undefined ? {} : { group_id: group }),
      message_id: id,
      ...(repliedTo === undefined ? {} : { reply_to_message_id: repliedTo }),
      text: own === '' ? text : text.replace(new RegExp(`^\\s*@${own}[\\s,:]*`), ''),
      ...(action === undefined ? {} : { action_id: action }),
      addressed: group === undefined || isNamed,
      ...(type !== undefined && Number.isFinite(seconds) && seconds > 0 ? { received_at: seconds * 1000 } : {}),
    },
  }
}

interface Content {
  readonly text: string
  readonly family?: InboundEvent['family']
  readonly media?: Media
  readonly action?: string
  /** The message that a reaction refers to. */
  readonly about?: string
}

const TYPES: Readonly<Record<string, readonly [name: string, type: string]>> = {
  image: ['image.jpg', 'image/jpeg'],
  audio: ['audio.ogg', 'audio/ogg'],
  video: ['video.mp4', 'video/mp4'],
  document: ['document', 'application/octet-stream'],
  sticker: ['sticker.webp', 'image/webp'],
}

function contentOf(message: Message): Content | { readonly ignored: string } {
  const { type } = message
  const kind = typeof type === 'string' ? type : ''
  const body = (message[kind] ?? {}) as Readonly<Record<string, unknown>>
  if (typeof body !== 'object') return { ignored: `the ${kind} is not an object` }
  if (kind === 'text') return { text: textOf(body.body) }
  const file = Object.hasOwn(TYPES, kind) ? TYPES[kind] : undefined
  if (file) {
    const [name, usual] = file
    if (!isText(body.id, /^[A-Za-z0-9_-]{1,128}$/)) return { ignored: `the ${kind} has no id` }
    const mime = clip(textOf(body.mime_type), 255) || usual
    return {
      text: textOf(body.caption),
      media: { id: body.id, name: fileName(textOf(body.filename), name), type: mime },
    }
  }
  if (kind === 'reaction') {
    if (!isText(body.message_id, ID)) return { ignored: 'the reaction refers to no message' }
    return { text: textOf(body.emoji), family: 'reaction', about: body.message_id }
  }
  if (kind === 'button') return pressed(body.payload, body.text)
  if (kind === 'interactive') {
    const reply = (body.button_reply ?? body.list_reply) as { id?: unknown; title?: unknown } | null | undefined
    return reply ? pressed(reply.id, reply.title) : { ignored: `the interactive ${clip(textOf(body.type), 64)}` }
  }
  if (kind === 'location') {
    const { latitude, longitude, name } = body
    if (!Number.isFinite(latitude) || !Number.isFinite(longitude)) return { ignored: 'the location has no coordinates' }
    return { text: `[Location: ${[textOf(name), `${latitude}, ${longitude}`].filter(Boolean).join(', ')}]` }
  }
  return { ignored: `the type ${clip(kind, 64)}` }
}

/** A button press counts as text, unless it answers a permission question. */
function pressed(id: unknown, title: unknown): Content {
  const action = clip(textOf(id), 512)
  return DECISION.test(action) ? { text: textOf(title), family: 'action', action } : { text: textOf(title) || action }
}

function readStatus({ id, status, errors }: Readonly<Record<string, unknown>>): readonly Status[] {
  if (!isText(id, ID) || !isText(status, /^(?:sent|delivered|read|failed)$/)) return []
  const [error] = listOf<{ code?: unknown; title?: unknown; error_data?: { details?: unknown } }>(errors)
  const message = textOf(error?.error_data?.details) || textOf(error?.title)
  return [{ id, status: status as Status['status'], code: Number(error?.code) || 0, message: clip(message, 200) }]
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const isText = (value: unknown, form: RegExp): value is string => typeof value === 'string' && form.test(value)

function listOf<T>(value: unknown): readonly T[] {
  return Array.isArray(value) ? value.slice(0, MOST).filter(one => typeof one === 'object' && one !== null) : []
}
