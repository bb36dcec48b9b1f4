import type { Message } from 'grammy/types'
// The browser entry: the Node entry uses node-fetch, which relies on deprecated Node APIs.
import { Api } from 'grammy/web'
import { Agent, fetch as send } from 'undici'
import {
  type Attachment,
  bytesOf,
  clip,
  fileMissing,
  type Host,
  NotSent,
  retrying,
  type Timing,
} from '../../bridge-kit/src/index.js'
import type { TelegramConfig } from './config.js'
import { type FileOf, fileOf } from './events.js'
import { deliveryFailure, describe, isBadMarkup, isUnmodified, successorOf } from './failures.js'
import { type Styled, styled, unstyled } from './markup.js'

/** Timeout of a message, below the 5 s that the daemon waits. */
const SEND_MS = 4500
const FILE_MS = 30_000
/** Bytes of one file that the daemon accepts. */
const MOST_BYTES = 8 * 1024 * 1024

type Signal = Parameters<Api['getMe']>[0]
type ApiFetch = NonNullable<NonNullable<ConstructorParameters<typeof Api>[1]>['fetch']>

/** A chat and a topic in it. */
export interface ChatLocation {
  readonly chat: string
  readonly topic: number | undefined
}

/** The Bot API with one token. */
export class TelegramClient {
  readonly api: Api
  /**
   * Uses a new connection for each message: the other end may have closed an idle one, and a message written to it would count as
   * possibly sent.
   */
  readonly #sending: Api
  /** Groups that became supergroups, with their new ids. */
  readonly #moved = new Map<string, string>()

  constructor(
    private readonly config: TelegramConfig,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    const options = { apiRoot: config.apiRoot, timeoutSeconds: config.pollSeconds + 30 }
    // pipelining: 0 disables keep-alive.
    const dispatcher = new Agent({ pipelining: 0 })
    const alone = (url: string, init: object) => send(url, { ...init, dispatcher })
    this.api = new Api(config.token, options)
    this.#sending = new Api(config.token, { ...options, fetch: alone as unknown as ApiFetch })
  }

  /** A signal that aborts after `ms` milliseconds or when the instance is closed. */
  within(ms: number): Signal {
    return AbortSignal.any([this.host.signal, AbortSignal.timeout(ms)]) as unknown as Signal
  }

  /** Sends a message and returns its id. */
  async send(location: ChatLocation, text: string, replyTo: number | undefined): Promise<string> {
    const topic = location.topic === undefined ? {} : { message_thread_id: location.topic }
    const reply =
      replyTo === undefined
        ? {}
        : { reply_parameters: { message_id: replyTo, allow_sending_without_reply: true as const } }
    const sent = await this.#marked(text, false, location, (chat, { text: words, entities }) =>
      this.#sending.sendMessage(
        chat,
        words,
        { ...topic, ...reply, entities: [...entities], link_preview_options: { is_disabled: true } },
        this.within(SEND_MS),
      ),
    )
    return String((sent as Message).message_id)
  }

  async edit(location: ChatLocation, message: number, text: string): Promise<void> {
    await this.#marked(text, true, location, async (chat, { text: words, entities }) => {
      try {
        const more = { entities: [...entities], link_preview_options: { is_disabled: true } }
        await this.api.editMessageText(chat, message, words, more, this.within(SEND_MS))
      } catch (error) {
        if (!isUnmodified(error)) throw error
      }
    })
  }

  /** Shows for five seconds that the bot is typing. */
  async typing({ chat, topic }: ChatLocation): Promise<void> {
    const more = topic === undefined ? {} : { message_thread_id: topic }
    try {
      await this.api.sendChatAction(this.#moved.get(chat) ?? chat, 'typing', more, this.within(SEND_MS))
    } catch (error) {
      throw deliveryFailure(error, true)
    }
  }

  async delete({ chat }: ChatLocation, message: number): Promise<void> {
    try {
      await this.api.deleteMessage(this.#moved.get(chat) ?? chat, message, this.within(SEND_MS))
    } catch (error) {
      throw deliveryFailure(error, true)
    }
  }

  /** The file of a message, or a note if it is unavailable. */
  async fileIn(message: Message): Promise<Attachment | string | undefined> {
    const file = fileOf(message)
    if (!file) return undefined
    if ((file.size ?? 0) > MOST_BYTES) return without(file, 'it is larger than 8 MiB')
    try {
      const data = await retrying(() => this.#download(file), {
        attempts: 3,
        signal: this.host.signal,
        timing: this.timing,
      })
      return data === undefined
        ? without(file, 'it is larger than 8 MiB')
        : { name: file.name, mime_type: file.type, data }
    } catch (error) {
      this.host.log(`a file could not be fetched: ${describe(error)}`)
      return without(file, 'Telegram did not deliver it')
    }
  }

  async #download({ id }: FileOf): Promise<string | undefined> {
    const { file_path: path, file_size: size = 0 } = await this.api.getFile(id, this.within(FILE_MS))
    if (path === undefined) throw new Error('Telegram returned no path of the file')
    if (size > MOST_BYTES) return undefined
    const address = `${this.config.apiRoot}/file/bot${this.config.token}/${path.split('/').map(encodeURIComponent).join('/')}`
    const signal = AbortSignal.any([this.host.signal, AbortSignal.timeout(FILE_MS)])
    const response = await fetch(address, { signal, redirect: 'error' })
    if (!response.ok) throw new Error(`Telegram answers ${response.status} for the file`)
    return (await bytesOf(response, MOST_BYTES))?.toString('base64')
  }

  /** Makes a call with the styled text, and again unstyled if Telegram refuses the markup; follows a moved group. */
  async #marked<T>(
    text: string,
    isRepeatable: boolean,
    { chat }: ChatLocation,
    call: (chat: string, styled: Styled) => Promise<T>,
  ): Promise<T> {
    const rich = styled(text)
    const attempts = rich.text.trim() === '' ? [unstyled(text)] : [rich, unstyled(text)]
    for (let n = 0; ; ) {
      const to = this.#moved.get(chat) ?? chat
      try {
        return await call(to, attempts[n] as Styled)
      } catch (error) {
        const successor = successorOf(error)
        if (successor !== undefined && !this.#moved.has(chat)) this.#moved.set(chat, successor)
        else if (isBadMarkup(error) && n + 1 < attempts.length) n++
        else throw deliveryFailure(error, isRepeatable)
      }
    }
  }
}

/**
 * The numeric id of a message or topic.
 * @throws NotSent If it is invalid
 */
export function numberOf(id: string, what: string): number {
  if (/^\d{1,15}$/.test(id)) return Number(id)
  throw new NotSent('unknown_destination', `${JSON.stringify(clip(id, 80))} is no ${what} of Telegram`)
}

const without = ({ name }: FileOf, why: string): string => fileMissing(name, why)
