import type { Chat, Update } from 'grammy/types'
import type { Target } from '../../bridge-kit/src/index.js'
import { clip } from '../../bridge-kit/src/index.js'
import { titleOf } from './events.js'

const MOST_PLACES = 1000

/** Known chats: Telegram offers no list. */
export class Chats {
  readonly #targets = new Map<string, Target>()

  has(chat: string): boolean {
    return this.#targets.has(chat)
  }

  /** Adds a chat, under its configured name if it has one. */
  add(chat: Chat, name = String(chat.id)): void {
    const id = String(chat.id)
    const isPerson = chat.type === 'private'
    this.#put(name, {
      ...(isPerson ? { peer_id: id } : { group_id: id }),
      display_name: titleOf(chat),
      target_type: isPerson ? 'user' : chat.type === 'channel' ? 'channel' : 'group',
    })
  }

  /** Records the chat and topic of an update, and forgets a chat that the bot has left. */
  learn(update: Update): void {
    const { my_chat_member: membership } = update
    if (membership) {
      const { chat, new_chat_member: now } = membership
      const isIn = now?.status !== 'left' && now?.status !== 'kicked'
      if (isIn) this.add(chat)
      else
        for (const [key, { group_id: group, peer_id: peer }] of this.#targets)
          if ((group ?? peer) === String(chat.id)) this.#targets.delete(key)
      return
    }
    const message = update.message ?? update.edited_message ?? update.channel_post
    if (!message?.chat) return
    this.add(message.chat)
    const { is_topic_message: isTopic, message_thread_id: topic, reply_to_message: first, chat } = message
    if (!isTopic || topic === undefined || chat.type === 'private') return
    const name = first?.forum_topic_created?.name ?? message.forum_topic_created?.name
    const known = this.#targets.get(`${chat.id}/${topic}`)?.display_name
    this.#put(`${chat.id}/${topic}`, {
      group_id: String(chat.id),
      thread_id: String(topic),
      display_name: clip(name ?? known ?? `topic ${topic}`, 200),
      target_type: 'thread',
      qualifier: titleOf(chat),
    })
  }

  targets(bot: string | undefined): readonly Target[] {
    const qualifier = bot === undefined ? {} : { qualifier: `@${bot}` }
    return [...this.#targets.values()].map(target => ({ ...qualifier, ...target }))
  }

  #put(key: string, target: Target): void {
    this.#targets.delete(key)
    this.#targets.set(key, target)
    if (this.#targets.size <= MOST_PLACES) return
    for (const oldest of this.#targets.keys()) {
      this.#targets.delete(oldest)
      return
    }
  }
}
