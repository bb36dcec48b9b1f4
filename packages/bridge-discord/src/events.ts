import { type APIMessage, type APIUser, MessageType } from '@discordjs/core'
import type { Address, InboundEvent } from '../../bridge-kit/src/index.js'

/** A message of the gateway. */
export type GatewayMessage = APIMessage & {
  readonly guild_id?: string
  readonly member?: { readonly nick?: string | null }
}

/** Messages that people write; other types report changes of a channel. */
const WRITTEN: ReadonlySet<MessageType> = new Set([MessageType.Default, MessageType.Reply])

/** The event in a message; undefined: the message is not for the daemon. */
export function messageEvent(message: GatewayMessage, address: Address, me: APIUser): InboundEvent | undefined {
  const { author, content = '', type, webhook_id: webhook, referenced_message: answered } = message
  if (author.id === me.id || !WRITTEN.has(type)) return undefined
  const mentions = message.mentions ?? []
  const isDirect = message.guild_id === undefined
  const text = readable(content, mentions, me)
  const reference = message.message_reference?.message_id
  const nick = message.member?.nick ?? author.global_name
  return {
    idempotency_key: `${message.channel_id}:${message.id}`,
    family: 'message',
    sender: {
      id: author.id,
      username: author.username,
      ...(nick ? { display_name: nick } : {}),
      // A webhook may use any name.
      authenticated: webhook === undefined,
      ...(author.bot || webhook !== undefined ? { is_bot: true } : {}),
    },
    ...address,
    peer_id: author.id,
    message_id: message.id,
    ...(reference === undefined ? {} : { reply_to_message_id: reference }),
    text,
    addressed: isDirect || mentions.some(({ id }) => id === me.id) || answered?.author?.id === me.id,
    ...timeOf(message.timestamp),
  }
}

/** The event of an edit. Discord also reports an edit when it has loaded the preview of a link. */
export function editEvent(message: GatewayMessage, address: Address, me: APIUser): InboundEvent | undefined {
  if (!message.edited_timestamp || !message.author) return undefined
  const event = messageEvent(message, address, me)
  return event && { ...event, family: 'edit', idempotency_key: `${event.idempotency_key}:${message.edited_timestamp}` }
}

/** Whether the text of a person's message is missing, as it is without the message content intent. */
export function isWithoutContent(message: GatewayMessage, me: APIUser): boolean {
  const {
    author,
    content,
    type,
    attachments,
    embeds,
    sticker_items: stickers,
    poll,
    message_snapshots: forwarded,
  } = message
  const hasOther =
    [attachments, embeds, stickers, forwarded].some(list => (list?.length ?? 0) > 0) || poll !== undefined
  return content === '' && !hasOther && WRITTEN.has(type) && author.id !== me.id && !author.bot
}

/** The readable form of a text, without a leading mention of the bot. */
export function readable(content: string, mentions: readonly APIUser[], me: APIUser): string {
  const rest = content.trim().replace(new RegExp(`^<@!?${me.id}>[\\s,:]*`), '')
  const names = new Map(mentions.map(user => [user.id, user.global_name ?? user.username]))
  return (rest === '' ? content : rest)
    .replace(/<@!?(\d+)>/g, (_, id: string) => `@${names.get(id) ?? id}`)
    .replace(/<a?(:\w+:)\d+>/g, '$1')
    .trim()
}

function timeOf(timestamp: string): { readonly received_at?: number } {
  const ms = Date.parse(timestamp)
  return Number.isSafeInteger(ms) && ms >= 0 ? { received_at: ms } : {}
}
