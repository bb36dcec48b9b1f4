import { clip, fileName, type InboundEvent } from '../../bridge-kit/src/index.js'
import { isEvent, isUser } from './config.js'

/** A room event as sent by the server, unchecked. */
export interface RoomEvent {
  readonly type?: unknown
  readonly event_id?: unknown
  readonly sender?: unknown
  readonly state_key?: unknown
  readonly origin_server_ts?: unknown
  readonly content?: Readonly<Record<string, unknown>>
  readonly unsigned?: { readonly transaction_id?: unknown; readonly prev_content?: { readonly membership?: unknown } }
}

/** The identity of the bot. */
export interface Self {
  readonly user: string
  readonly name?: string
}

/** The context of an event. */
export interface Where {
  readonly room: string
  /** The room contains only the bot and one other person. */
  readonly direct: boolean
  /** Whether the bot wrote a message. */
  readonly isOwn: (event: string) => boolean
}

interface Relation {
  readonly rel_type?: unknown
  readonly event_id?: unknown
  readonly key?: unknown
  readonly is_falling_back?: unknown
  readonly 'm.in_reply_to'?: { readonly event_id?: unknown }
}

const FILES = new Set(['m.image', 'm.file', 'm.audio', 'm.video'])

/** Converts a room event; undefined: the event is not for the daemon. */
export function eventOf(event: RoomEvent, self: Self, where: Where): InboundEvent | undefined {
  const { type, event_id: id, sender, content, state_key: state } = event
  if (!isEvent(id) || !isUser(sender) || sender === self.user || state !== undefined) return undefined
  if (typeof content !== 'object' || content === null) return undefined
  const common = {
    idempotency_key: id,
    // Homeservers vouch for user ids; names are chosen freely.
    sender: { id: sender, authenticated: true },
    peer_id: sender,
    ...(where.direct ? {} : { group_id: where.room }),
    ...timeOf(event.origin_server_ts),
  }
  const relation = (content['m.relates_to'] ?? {}) as Relation
  if (type === 'm.reaction') return reaction(relation, common, where)
  if (type !== 'm.room.message') return undefined
  return message(content, relation, { ...common, message_id: id }, self, where)
}

type Common = Pick<InboundEvent, 'idempotency_key' | 'sender' | 'peer_id' | 'group_id' | 'received_at'>

function reaction({ rel_type: rel, event_id: to, key }: Relation, common: Common, where: Where) {
  if (rel !== 'm.annotation' || !isEvent(to) || typeof key !== 'string' || key.trim() === '') return undefined
  const name = clip(key, 100)
  return {
    ...common,
    family: 'reaction',
    message_id: to,
    text: name,
    action_id: name,
    addressed: where.isOwn(to),
  } as const
}

function message(
  content: Readonly<Record<string, unknown>>,
  relation: Relation,
  common: Common & Pick<InboundEvent, 'message_id'>,
  self: Self,
  where: Where,
): InboundEvent | undefined {
  const changed = relation.rel_type === 'm.replace' ? content['m.new_content'] : undefined
  const isEdit = changed !== undefined && isEvent(relation.event_id)
  const said = (isEdit ? changed : content) as Readonly<Record<string, unknown>> | null
  const replyTo = relation['m.in_reply_to']?.event_id
  const text = textOf(said, isEvent(replyTo))
  if (text === undefined || (text === '' && isEdit)) return undefined
  const thread = relation.rel_type === 'm.thread' && isEvent(relation.event_id) ? relation.event_id : undefined
  // In a thread, the reply may only be a fallback for clients without threads.
  const isReply = isEvent(replyTo) && !(thread !== undefined && relation.is_falling_back === true)
  const own = (isReply && where.isOwn(replyTo)) || (thread !== undefined && where.isOwn(thread))
  return {
    ...common,
    family: isEdit ? 'edit' : 'message',
    ...(isEdit ? { message_id: relation.event_id as string } : {}),
    ...(thread === undefined ? {} : { thread_id: thread }),
    ...(isReply ? { reply_to_message_id: replyTo } : {}),
    text: withoutMention(text, self),
    addressed: where.direct || own || names(said, text, self),
    ...(content.msgtype === 'm.notice' ? { automatic: true } : {}),
  }
}

function textOf(said: Readonly<Record<string, unknown>> | null, isReply: boolean): string | undefined {
  const { body, msgtype, filename } = said ?? {}
  if (typeof body !== 'string' || typeof msgtype !== 'string') return undefined
  // If the file has its own name, the body is a caption.
  if (FILES.has(msgtype)) return typeof filename === 'string' && filename !== body ? body.trim() : ''
  // Older clients quote the answered message in the body.
  const own = isReply ? body.replace(/^(?:> [^\n]*\n)+\n/, '') : body
  return own.trim() === '' ? undefined : own.trim()
}

/** A file of a message. */
export interface FileOf {
  readonly name: string
  readonly type: string
  /** Undefined if the address is invalid or the file is encrypted. */
  readonly at: { readonly server: string; readonly media: string } | undefined
  /** Bytes, as stated by the sender. */
  readonly size: number
}

/** The file of a message; undefined: none. */
export function fileOf({ content }: RoomEvent): FileOf | undefined {
  const { body, msgtype, filename, url, info } = content ?? {}
  if (typeof msgtype !== 'string' || !FILES.has(msgtype)) return undefined
  const { mimetype, size } = (info ?? {}) as { readonly mimetype?: unknown; readonly size?: unknown }
  const [, server = '', media = ''] =
    (typeof url === 'string' && /^mxc:\/\/([\w.:[\]-]{1,255})\/([\w-]{1,255})$/.exec(url)) || []
  const isType = typeof mimetype === 'string' && /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/.test(mimetype)
  const called = typeof filename === 'string' ? filename : body
  return {
    name: fileName(typeof called === 'string' ? called : undefined, msgtype),
    type: isType ? mimetype : 'application/octet-stream',
    at: media === '' ? undefined : { server, media },
    size: typeof size === 'number' ? size : 0,
  }
}

/** Whether a message mentions the bot: by its mention list, or by the bot's name in the text if it has no list. */
function names(said: Readonly<Record<string, unknown>> | null, text: string, self: Self): boolean {
  const mentions = said?.['m.mentions']
  if (typeof mentions === 'object' && mentions !== null) {
    const { user_ids: users } = mentions as { readonly user_ids?: unknown }
    return Array.isArray(users) && users.includes(self.user)
  }
  const lower = text.toLowerCase()
  return namesOf(self).some(name => {
    const at = lower.indexOf(name.toLowerCase())
    return at >= 0 && !WORD.test(lower[at - 1] ?? '') && !WORD.test(lower[at + name.length] ?? '')
  })
}

const WORD = /[\p{L}\p{N}_]/u

const namesOf = ({ user, name }: Self): readonly string[] => [
  user,
  ...(name !== undefined && name.trim() !== '' ? [name] : []),
  user.slice(1).split(':')[0] ?? user,
]

/** The text without a leading name of the bot. */
function withoutMention(text: string, self: Self): string {
  for (const name of namesOf(self))
    for (const begin of [name, `@${name}`])
      if (text.toLowerCase().startsWith(begin.toLowerCase()) && /^(?:[:,]|\s|$)/.test(text.slice(begin.length)))
        return text.slice(begin.length).replace(/^[\s:,]+/, '') || text
  return text
}

function timeOf(at: unknown): { readonly received_at?: number } {
  return Number.isSafeInteger(at) && (at as number) >= 0 && (at as number) <= 8.64e15
    ? { received_at: at as number }
    : {}
}
