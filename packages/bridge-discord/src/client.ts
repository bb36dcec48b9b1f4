import { createHash } from 'node:crypto'
import { API, type APIAttachment, type APIMessage, MessageFlags } from '@discordjs/core'
import { REST } from '@discordjs/rest'
import {
  type Address,
  type Attachment,
  bytesOf,
  clip,
  type Delivery,
  fileMissing,
  fileName,
  type Host,
  isAfter,
  NotSent,
  retrying,
  type SettleResult,
  type Timing,
} from '../../bridge-kit/src/index.js'
import type { Channels } from './channels.js'
import type { DiscordConfig } from './config.js'
import { codeOf, deliveryFailure, describe, isTokenRefused, isUnseen, pauseOf } from './failures.js'

/** Timeout of a message; with a short pause it stays below the 5 s that the daemon waits. */
const SEND_MS = 3500
/** The longest rate-limit pause that is waited out; a longer one is reported to the daemon. */
const MOST_WAIT_MS = 1000
const FILE_MS = 20_000
const MOST_BYTES = 8 * 1024 * 1024
const MOST_BYTES_IN_ALL = 2 * MOST_BYTES
const MOST_FILES = 10
/** Pages of 100 messages that are searched for our own message. */
const MOST_PAGES = 10
const SECOND_LOOK_MS = 4000
const MOST_NONCES = 500
/** Pages of 100 messages that are fetched after a disconnection, and their maximum age. */
const MOST_MISSED_PAGES = 5
const OLDEST_MS = 24 * 60 * 60_000
/** The epoch of Discord ids, in epoch milliseconds. */
const EPOCH = 1_420_070_400_000
const ID = /^\d{1,25}$/

/** The REST API with the token of the bot. */
export class DiscordClient {
  readonly rest: REST
  readonly api: API
  /** Own messages reported by the gateway: ids by nonce. */
  readonly #own = new Map<string, string>()

  constructor(
    private readonly config: DiscordConfig,
    private readonly host: Host,
    private readonly timing: Timing,
    private readonly places: Channels,
  ) {
    this.rest = new REST({
      api: config.apiUrl,
      version: '10',
      // The daemon retries: only it knows which calls are safe to repeat.
      retries: 0,
      timeout: SEND_MS,
      rejectOnRateLimit: ({ retryAfter, timeToReset, sublimitTimeout }) =>
        Math.max(retryAfter, timeToReset, sublimitTimeout) > MOST_WAIT_MS,
      hashSweepInterval: 0,
      handlerSweepInterval: 0,
    }).setToken(config.token)
    this.api = new API(this.rest)
  }

  /** Sends a message with the nonce and returns its id. */
  async post({ target, text, nonce, part, reply_to_message_id: replyTo }: Delivery): Promise<string> {
    try {
      const channel = await this.#channelOf(target)
      const sent = await this.api.channels.createMessage(channel, {
        content: text,
        nonce: markOf(nonce),
        // Within a few minutes, a repeated nonce returns the existing message.
        enforce_nonce: true,
        allowed_mentions: NOBODY,
        flags: MessageFlags.SuppressEmbeds,
        // Only the first part is a reply to the question.
        ...(part === 0 && replyTo !== undefined && ID.test(replyTo)
          ? { message_reference: { message_id: replyTo, fail_if_not_exists: false } }
          : {}),
      })
      return sent.id
    } catch (error) {
      throw deliveryFailure(error, false)
    }
  }

  /** Shows for ten seconds that the bot is typing. */
  async typing({ target }: Pick<Delivery, 'target'>): Promise<void> {
    try {
      await this.api.channels.showTyping(await this.#channelOf(target))
    } catch (error) {
      throw deliveryFailure(error, true)
    }
  }

  async edit({ target, text }: Delivery, message: string): Promise<void> {
    try {
      const channel = await this.#channelOf(target)
      await this.api.channels.editMessage(channel, message, { content: text, allowed_mentions: NOBODY })
    } catch (error) {
      throw deliveryFailure(error, true)
    }
  }

  async delete({ target }: Delivery, message: string): Promise<void> {
    try {
      await this.api.channels.deleteMessage(await this.#channelOf(target), message)
    } catch (error) {
      // The message is already gone, perhaps by an attempt whose reply was lost.
      if (codeOf(error) !== 10008) throw deliveryFailure(error, true)
    }
  }

  /** Records an own message reported by the gateway. */
  learnOwn({ id, nonce }: Pick<APIMessage, 'id' | 'nonce'>): void {
    if (nonce === undefined) return
    this.#own.set(String(nonce), id)
    if (this.#own.size <= MOST_NONCES) return
    for (const oldest of this.#own.keys()) {
      this.#own.delete(oldest)
      return
    }
  }

  /** Searches for the message with the nonce: first in the gateway's reports, then in the bot's recent messages in the channel. */
  async find(delivery: Delivery, since: number, me: string): Promise<SettleResult> {
    try {
      const first = await this.#search(delivery, since, me)
      if (first.outcome !== 'absent') return first
      // An aborted request may still take effect, so the search runs twice.
      await this.timing.sleep(SECOND_LOOK_MS, this.host.signal)
      return await this.#search(delivery, since, me)
    } catch (error) {
      this.host.log(`a message could not be looked up: ${describe(error)}`)
      return { outcome: 'unknown' }
    }
  }

  async #search({ target, nonce, text }: Delivery, since: number, me: string): Promise<SettleResult> {
    const mark = markOf(nonce)
    const sentId = this.#own.get(mark)
    if (sentId !== undefined) return { outcome: 'delivered', remote_message_id: sentId }
    const channel = await this.#channelOf(target)
    let after = snowflakeOf(since)
    for (let page = 0; page < MOST_PAGES; page++) {
      const found = await this.api.channels.getMessages(channel, { after, limit: 100 })
      const own = found.filter(({ author }) => author.id === me)
      // If Discord lists no nonces, an own message with the same text since then counts as the message.
      const match = own.find(one =>
        one.nonce === undefined ? one.content === text.trim() : String(one.nonce) === mark,
      )
      if (match) return { outcome: 'delivered', remote_message_id: match.id }
      if (found.length < 100) return { outcome: 'absent' }
      after = found.reduce((newest, { id }) => (BigInt(id) > BigInt(newest) ? id : newest), after)
    }
    return { outcome: 'unknown' }
  }

  /** Messages of a channel after `message`, the oldest first: at most a day old and a few hundred. */
  async *since(channel: string, message: string): AsyncGenerator<APIMessage> {
    const earliest = snowflakeOf(Date.now() - OLDEST_MS)
    let after = isAfter(message, earliest) ? message : earliest
    for (let page = 0; page < MOST_MISSED_PAGES; page++) {
      const found = await retrying(() => this.api.channels.getMessages(channel, { after, limit: 100 }), {
        ...{ attempts: 5, signal: this.host.signal, timing: this.timing },
        transient: error => !isUnseen(error) && !isTokenRefused(error),
        retryAfter: pauseOf,
      })
      const ordered = [...found].sort((a, b) => (isAfter(a.id, b.id) ? 1 : -1))
      yield* ordered
      after = ordered.at(-1)?.id ?? after
      if (found.length < 100) return
    }
    this.host.log(`${channel} has more new messages than were fetched`)
  }

  /** The files of a message, and a note for each file that is unavailable. */
  async files(
    files: readonly APIAttachment[],
  ): Promise<{ readonly attachments: Attachment[]; readonly missing: string[] }> {
    const [attachments, missing]: [Attachment[], string[]] = [[], []]
    let room = MOST_BYTES_IN_ALL
    for (const file of files.slice(0, MOST_FILES)) {
      const name = fileName(file.filename, 'file')
      const most = Math.min(room, MOST_BYTES)
      const bytes = file.size > most ? undefined : await this.#download(file.url, most)
      if (bytes === undefined) missing.push(fileMissing(name, 'it is larger than 8 MiB'))
      else if (typeof bytes === 'string') missing.push(fileMissing(name, bytes))
      else {
        room -= bytes.length
        const type = clip(file.content_type ?? 'application/octet-stream', 255)
        attachments.push({ name, mime_type: type, data: bytes.toString('base64') })
      }
    }
    return { attachments, missing }
  }

  async #download(address: string, most: number): Promise<Buffer | string | undefined> {
    const isOwn = URL.canParse(address) && isDiscord(new URL(address), this.config.apiUrl)
    if (!isOwn) return 'it is stored by another service'
    try {
      const signal = AbortSignal.any([this.host.signal, AbortSignal.timeout(FILE_MS)])
      const response = await fetch(address, { signal, redirect: 'error' })
      if (!response.ok) throw new Error(`Discord answers ${response.status} for a file`)
      return await bytesOf(response, most)
    } catch (error) {
      this.host.log(`a file could not be fetched: ${describe(error)}`)
      return 'Discord did not deliver it'
    }
  }

  /** The channel of an address; a direct-message channel is opened if needed. */
  async #channelOf({ group_id: group, peer_id: peer, thread_id: thread }: Address): Promise<string> {
    const channel = thread ?? group
    const id = channel ?? peer ?? ''
    if (!ID.test(id))
      throw new NotSent('unknown_destination', `${JSON.stringify(clip(id, 80))} is not a Discord channel or user`)
    if (channel !== undefined) return channel
    const known = this.places.directOf(id)
    if (known !== undefined) return known
    const opened = await this.api.users.createDM(id).catch((error: unknown) => {
      // The message was not sent yet.
      throw deliveryFailure(error, true)
    })
    this.places.learnPerson(id, opened.id)
    return opened.id
  }
}

/** An agent's message notifies nobody, not even the author of the message it replies to. */
const NOBODY = { parse: [], replied_user: false }

/** The nonce in Discord's form, at most 25 characters. */
export const markOf = (nonce: string): string => createHash('sha256').update(nonce).digest('base64url').slice(0, 24)

/** The smallest message id at a time. */
const snowflakeOf = (ms: number): string => String(BigInt(Math.max(0, Math.floor(ms) - EPOCH)) << 22n)

function isDiscord(address: URL, api: string): boolean {
  if (address.origin === new URL(api).origin) return true
  return address.protocol === 'https:' && /^(?:cdn\.discordapp\.com|media\.discordapp\.net)$/.test(address.hostname)
}
