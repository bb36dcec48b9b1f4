import type { Chat, Message, MessageEntity, Update, User, UserFromGetMe } from 'grammy/types'
import { clip, fileName, type InboundEvent } from '../../bridge-kit/src/index.js'

/** Requested kinds of updates. */
export const UPDATES = [
  'message',
  'edited_message',
  'channel_post',
  'edited_channel_post',
  'callback_query',
  'my_chat_member',
] as const

/** The event in an update; undefined: the update is not for the daemon. */
export function eventOf(update: Update, me: UserFromGetMe): InboundEvent | undefined {
  const key = `${me.id}:${update.update_id}`
  const query = update.callback_query
  if (query) {
    const { data, message, from } = query
    if (data === undefined || !message) return undefined
    return {
      idempotency_key: key,
      family: 'action',
      sender: senderOf(from),
      ...placeOf(message.chat, String(from.id), threadOf(message as Message)),
      message_id: String(message.message_id),
      action_id: data,
      addressed: true,
    }
  }
  const edited = update.edited_message ?? update.edited_channel_post
  const message = update.message ?? update.channel_post ?? edited
  if (!message) return undefined
  const event = messageEvent(message, key, me)
  return edited && event ? { ...event, family: 'edit' } : event
}

function messageEvent(message: Message, key: string, me: UserFromGetMe): InboundEvent | undefined {
  const { from, sender_chat: as, chat } = message
  if (from?.id === me.id) return undefined
  const sender = as ? senderOfChat(as) : from ? senderOf(from) : undefined
  if (!sender) return undefined
  const words = wordsOf(message)
  if (words.text === '' && fileOf(message) === undefined) return undefined
  const { named, text, isCommand } = addressing(words, me)
  const answered = message.reply_to_message
  // Every message of a topic refers to the topic's first message, which is not a reply.
  const isReply = answered !== undefined && !('forum_topic_created' in answered)
  return {
    idempotency_key: key,
    family: isCommand ? 'command' : 'message',
    sender,
    ...placeOf(chat, sender.id, threadOf(message)),
    message_id: String(message.message_id),
    ...(isReply ? { reply_to_message_id: String(answered.message_id) } : {}),
    text,
    addressed: chat.type === 'private' || named || (isReply && answered.from?.id === me.id),
    ...(message.is_automatic_forward ? { automatic: true } : {}),
    received_at: receivedAt(message.date),
  }
}

/** A file of a message; of a photo, its largest size. */
export interface FileOf {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly size: number | undefined
}

/** The file of a message. */
export function fileOf(message: Message): FileOf | undefined {
  const photo = message.photo?.at(-1)
  if (photo) return named(photo, 'photo.jpg', 'image/jpeg')
  const { document, audio, voice, video, video_note: note, animation, sticker } = message
  if (animation) return named(animation, 'animation.mp4', 'video/mp4')
  if (document) return named(document, 'document', 'application/octet-stream')
  if (audio) return named(audio, 'audio.mp3', 'audio/mpeg')
  if (voice) return named(voice, 'voice.ogg', 'audio/ogg')
  if (video) return named(video, 'video.mp4', 'video/mp4')
  if (note) return named(note, 'video.mp4', 'video/mp4')
  return sticker && !sticker.is_animated && !sticker.is_video ? named(sticker, 'sticker.webp', 'image/webp') : undefined
}

interface AnyFile {
  readonly file_id: string
  readonly file_name?: string
  readonly mime_type?: string
  readonly file_size?: number
}

function named(file: AnyFile, name: string, type: string): FileOf {
  return {
    id: file.file_id,
    name: fileName(file.file_name, name),
    type: clip(file.mime_type ?? type, 255),
    size: file.file_size,
  }
}

/** The displayed name of a chat. */
export function titleOf(chat: Chat): string {
  if (chat.type !== 'private') return clip(chat.title || String(chat.id), 200)
  return nameOf(chat) || chat.username || String(chat.id)
}

const nameOf = ({ first_name: first = '', last_name: last = '' }: { first_name?: string; last_name?: string }) =>
  clip(`${first} ${last}`.trim(), 200)

function senderOf(user: User): InboundEvent['sender'] {
  const name = nameOf(user)
  return {
    id: String(user.id),
    ...(user.username ? { username: user.username } : {}),
    ...(name ? { display_name: name } : {}),
    authenticated: true,
    ...(user.is_bot ? { is_bot: true } : {}),
  }
}

/** The sender is a channel, or an anonymous group administrator: Telegram does not name the person. */
function senderOfChat(chat: Chat): InboundEvent['sender'] {
  const { username } = chat as { readonly username?: string }
  return {
    id: String(chat.id),
    ...(username ? { username } : {}),
    display_name: titleOf(chat),
    authenticated: false,
  }
}

function placeOf(chat: Chat, sender: string, thread: string | undefined) {
  const topic = thread === undefined ? {} : { thread_id: thread }
  if (chat.type === 'private') return { peer_id: String(chat.id), ...topic }
  return { group_id: String(chat.id), peer_id: sender, ...topic }
}

/** The forum topic. In other groups this member is the id of a reply chain. */
function threadOf(message: Message): string | undefined {
  const { is_topic_message: isTopic, message_thread_id: id } = message
  return isTopic && id !== undefined ? String(id) : undefined
}

interface Words {
  readonly text: string
  readonly entities: readonly MessageEntity[]
}

const wordsOf = ({ text, caption, entities, caption_entities: more }: Message): Words => ({
  text: text ?? caption ?? '',
  entities: (text === undefined ? more : entities) ?? [],
})

/** Whether a text addresses the bot, and the text without a leading mention. */
function addressing({ text, entities }: Words, me: UserFromGetMe) {
  const name = `@${me.username}`.toLowerCase()
  const isName = (words: string) => words.toLowerCase() === name
  let [isNamed, isCommand] = [false, false]
  let rest = text
  for (const entity of entities) {
    const words = text.slice(entity.offset, entity.offset + entity.length)
    const isMention =
      entity.type === 'mention' ? isName(words) : entity.type === 'text_mention' && entity.user.id === me.id
    if (entity.type === 'bot_command') {
      const at = words.indexOf('@')
      const isMine = at !== -1 && isName(words.slice(at))
      if (isMine) isNamed = true
      if (entity.offset !== 0) continue
      // A command for another bot is plain text.
      isCommand = at === -1 || isMine
      if (isMine) rest = words.slice(0, at) + text.slice(entity.length)
    } else if (isMention) {
      isNamed = true
      if (text.slice(0, entity.offset).trim() === '') rest = text.slice(entity.offset + entity.length)
    }
  }
  rest = rest.replace(/^[\s,:]+/, '').trimEnd()
  return { named: isNamed, isCommand, text: rest === '' ? text : rest }
}

const receivedAt = (seconds: number): number => Math.max(0, Math.round(seconds * 1000))
