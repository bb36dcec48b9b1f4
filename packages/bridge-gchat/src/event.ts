import { createHash } from 'node:crypto'
import { clip, fileName, type InboundEvent } from '../../bridge-kit/src/index.js'
import { isMessage, isSpace, isUser, threadOf } from './spaces.js'

/** A file uploaded to Google Chat with a message. */
export interface FileOf {
  readonly resource: string
  readonly name: string
  readonly type: string
}

/** The space of an event. */
export interface SpaceOf {
  readonly name: string
  readonly isDirect: boolean
  readonly title: string
}

/** The parsed content of an event. */
export interface Reading {
  readonly space?: SpaceOf
  /** The app was removed from the space. */
  readonly isRemoved?: boolean
  readonly event?: InboundEvent
  readonly files?: readonly FileOf[]
}

interface User {
  readonly name?: unknown
  readonly displayName?: unknown
  readonly email?: unknown
  readonly type?: unknown
}
interface Space {
  readonly name?: unknown
  readonly displayName?: unknown
  readonly spaceType?: unknown
  /** Fields of the older event format. */
  readonly type?: unknown
  readonly spaceThreadingState?: unknown
}
interface Message {
  readonly name?: unknown
  readonly sender?: User
  readonly createTime?: unknown
  readonly text?: unknown
  readonly argumentText?: unknown
  readonly thread?: { readonly name?: unknown }
  readonly slashCommand?: unknown
  readonly attachment?: unknown
  readonly quotedMessageMetadata?: { readonly name?: unknown }
  readonly space?: Space
}
interface Event {
  readonly type: 'MESSAGE' | 'APP_COMMAND' | 'ADDED_TO_SPACE' | 'REMOVED_FROM_SPACE' | 'CARD_CLICKED'
  readonly user?: User
  readonly space?: Space
  readonly message?: Message
  readonly eventTime?: unknown
  readonly action?: unknown
}

const TYPES = new Set(['MESSAGE', 'APP_COMMAND', 'ADDED_TO_SPACE', 'REMOVED_FROM_SPACE', 'CARD_CLICKED'])
/** Payloads of the Google Workspace add-on format. */
const PAYLOADS = {
  messagePayload: 'MESSAGE',
  appCommandPayload: 'APP_COMMAND',
  addedToSpacePayload: 'ADDED_TO_SPACE',
  removedFromSpacePayload: 'REMOVED_FROM_SPACE',
  buttonClickedPayload: 'CARD_CLICKED',
} as const
const MOST_FILES = 10
const RESOURCE = /^[A-Za-z0-9_=+-][A-Za-z0-9_=+/.-]{0,2000}$/

/** Reads an event in the Chat app or add-on format. Undefined: another kind of event. */
export function readEvent(payload: Readonly<Record<string, unknown>>): Reading | undefined {
  const event = 'chat' in payload ? fromAddOn(payload) : fromChat(payload)
  const { space, message } = event ?? {}
  const at = space ?? message?.space
  if (!event || !isSpace(at?.name)) return undefined
  const from = spaceOf(at, event.user)
  if (event.type === 'REMOVED_FROM_SPACE') return { space: from, isRemoved: true }
  if (event.type === 'CARD_CLICKED') return { space: from, ...clicked(event, from) }
  // If an app is added by a mention, this event carries the message.
  return message ? { space: from, ...written(message, event, from, at) } : { space: from }
}

function fromChat(payload: Readonly<Record<string, unknown>>): Event | undefined {
  const { type, action, common } = payload
  if (typeof type !== 'string' || !TYPES.has(type)) return undefined
  const method = (common as { invokedFunction?: unknown } | null | undefined)?.invokedFunction
  return {
    ...(payload as unknown as Event),
    action: method ?? (action as { actionMethodName?: unknown } | null | undefined)?.actionMethodName,
  }
}

function fromAddOn({ chat, commonEventObject: common }: Readonly<Record<string, unknown>>): Event | undefined {
  if (typeof chat !== 'object' || chat === null) return undefined
  for (const [name, type] of Object.entries(PAYLOADS)) {
    const payload = (chat as Record<string, unknown>)[name]
    if (typeof payload !== 'object' || payload === null) continue
    const { user, eventTime } = chat as Pick<Event, 'user' | 'eventTime'>
    const action = (common as { invokedFunction?: unknown } | null | undefined)?.invokedFunction
    return { ...(user ? { user } : {}), eventTime, action, ...(payload as object), type }
  }
  return undefined
}

function spaceOf({ name, displayName, spaceType, type }: Space, user: User | undefined): SpaceOf {
  const isDirect = spaceType === 'DIRECT_MESSAGE' || (spaceType === undefined && type === 'DM')
  const title = isDirect ? textOf(user?.displayName) : textOf(displayName)
  return { name: String(name), isDirect, title: clip(title || String(name), 200) }
}

function written(message: Message, { type, user }: Event, from: SpaceOf, space: Space): Omit<Reading, 'space'> {
  const { name, sender = user, createTime, text, argumentText, thread, slashCommand, attachment } = message
  if (!isMessage(name) || !isUser(sender?.name)) return {}
  const isCommand = type === 'APP_COMMAND' || (typeof slashCommand === 'object' && slashCommand !== null)
  const quoted = message.quotedMessageMetadata?.name
  const at = typeof createTime === 'string' ? Date.parse(createTime) : Number.NaN
  // The text without the app's mention; a command occurs only in the full text.
  const said = isCommand ? textOf(text).replace(/^[^/]*(?=\/)/, '') : textOf(argumentText ?? text)
  return {
    files: filesOf(attachment),
    event: {
      idempotency_key: name,
      family: isCommand ? 'command' : 'message',
      ...whence(sender, from, isThreaded(space) ? threadOf(from.name, thread?.name) : undefined),
      message_id: name,
      ...(isMessage(quoted) ? { reply_to_message_id: quoted } : {}),
      text: said.trim(),
      // In a space, an app receives only messages that mention it.
      addressed: true,
      ...(Number.isFinite(at) ? { received_at: at } : {}),
    },
  }
}

function clicked({ user, message, eventTime, action }: Event, from: SpaceOf): Omit<Reading, 'space'> {
  const name = message?.name
  if (!isUser(user?.name) || typeof action !== 'string' || action === '') return {}
  const parts = JSON.stringify([from.name, name, user.name, action, eventTime])
  const key = createHash('sha256').update(parts).digest('hex')
  return {
    event: {
      idempotency_key: `click-${key}`,
      family: 'action',
      ...whence(user, from, threadOf(from.name, message?.thread?.name)),
      ...(isMessage(name) ? { message_id: name } : {}),
      action_id: clip(action, 512),
      addressed: true,
    },
  }
}

function whence({ name, displayName, email, type }: User, from: SpaceOf, thread: string | undefined) {
  return {
    sender: {
      id: String(name),
      ...(textOf(email) === '' ? {} : { username: textOf(email) }),
      ...(textOf(displayName) === '' ? {} : { display_name: textOf(displayName) }),
      // Verified by Google's signature.
      authenticated: true,
      ...(type === 'BOT' ? { is_bot: true } : {}),
    },
    ...(from.isDirect ? { peer_id: from.name } : { peer_id: String(name), group_id: from.name }),
    ...(from.isDirect || thread === undefined ? {} : { thread_id: thread }),
  }
}

const isThreaded = ({ spaceType, type, spaceThreadingState: state }: Space): boolean =>
  state !== 'UNTHREADED_MESSAGES' && (spaceType === 'SPACE' || (spaceType === undefined && type === 'ROOM'))

function filesOf(value: unknown): readonly FileOf[] {
  if (!Array.isArray(value)) return []
  return value.slice(0, MOST_FILES).flatMap(one => {
    const { contentName, contentType, attachmentDataRef } = (one ?? {}) as {
      contentName?: unknown
      contentType?: unknown
      attachmentDataRef?: { resourceName?: unknown }
    }
    const resource = textOf(attachmentDataRef?.resourceName)
    const name = fileName(textOf(contentName), 'file')
    const type = clip(textOf(contentType), 255) || 'application/octet-stream'
    // A Drive file has no resource name.
    return [{ resource: RESOURCE.test(resource) && !resource.includes('..') ? resource : '', name, type }]
  })
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
