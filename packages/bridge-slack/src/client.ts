import { WebClient } from '@slack/web-api'
import {
  type Attachment,
  bytesOf,
  clip,
  type Delivery,
  fileMissing,
  fileName,
  type Host,
  isAfter,
  NotSent,
  type SettleResult,
  type Target,
  type Timing,
} from '../../bridge-kit/src/index.js'
import type { SlackConfig } from './config.js'
import type { ChannelLocation, Me, SlackFile, SlackMessage } from './events.js'
import { deliveryFailure, describe, slackCode } from './failures.js'
import { silent } from './socket.js'
import { mrkdwn } from './text.js'

/** Timeout of a message, below the 5 s that the daemon waits. */
const SEND_MS = 4500
/** Slack's limit of about one message per second and channel. */
const CHANNEL_MS = 1000
/** A message that would wait longer is refused with a retry delay. */
const MOST_WAIT_MS = 1200
const MOST_CHANNELS = 2000
/** Metadata event type that identifies the bot's deliveries. */
const MARK = 'svc_delivery'
/** Pages of 200 messages that are searched for our own message. */
const MOST_PAGES = 10
/** Pages of 200 messages that are fetched after a disconnection. */
const MOST_MISSED_PAGES = 5
const TS = /^\d{1,20}\.\d{1,10}$/
/** An aborted request may still take effect, so the search runs twice with this pause. */
const SECOND_LOOK_MS = 4000
const FILE_MS = 20_000
const MOST_BYTES = 8 * 1024 * 1024
const MOST_BYTES_IN_ALL = 2 * MOST_BYTES

/** The Web API with the token of the bot. */
export class SlackClient {
  readonly web: WebClient
  /** Direct-message channels by person. */
  readonly #direct = new Map<string, string>()
  readonly #next = new Map<string, number>()
  readonly #names = new Map<string, string>()
  #readsNames = true

  constructor(
    private readonly config: SlackConfig,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    this.web = new WebClient(config.botToken, {
      slackApiUrl: `${config.apiUrl}/`,
      logger: silent,
      // The daemon retries: only it knows which calls are safe to repeat.
      retryConfig: { retries: 0 },
      rejectRateLimitedCalls: true,
      timeout: SEND_MS,
      allowAbsoluteUrls: false,
    })
  }

  async me(): Promise<Me> {
    const {
      team_id: team = '',
      team: teamName = '',
      user_id: user = '',
      user: name = '',
      bot_id: bot = '',
    } = await this.web.auth.test()
    return { team, teamName, user, name, bot }
  }

  /** Records the direct-message channel of a person. */
  learn(user: string, channel: string): void {
    put(this.#direct, user, channel)
  }

  /** Sends a message with the nonce and returns its id. */
  async post({ target, text, nonce, reply_to_message_id: replyTo }: Delivery): Promise<string> {
    try {
      const channel = await this.#channelOf(target)
      await this.#turn(channel)
      const thread = target.thread_id ?? replyTo
      const sent = await this.web.chat.postMessage({
        channel,
        text: mrkdwn(text),
        mrkdwn: true,
        parse: 'none',
        link_names: false,
        unfurl_links: false,
        unfurl_media: false,
        ...(thread === undefined ? {} : { thread_ts: thread }),
        metadata: { event_type: MARK, event_payload: { nonce } },
      } as Parameters<WebClient['chat']['postMessage']>[0])
      if (sent.ts === undefined) throw new Error('Slack accepted the message but returned no id')
      return sent.ts
    } catch (error) {
      throw deliveryFailure(error, false)
    }
  }

  async update({ target, text, nonce }: Delivery, ts: string): Promise<void> {
    try {
      const channel = await this.#channelOf(target)
      await this.#turn(channel)
      await this.web.chat.update({
        channel,
        ts,
        text: mrkdwn(text),
        parse: 'none',
        link_names: false,
        metadata: { event_type: MARK, event_payload: { nonce } },
      })
    } catch (error) {
      throw deliveryFailure(error, true)
    }
  }

  async delete({ target }: Delivery, ts: string): Promise<void> {
    try {
      await this.web.chat.delete({ channel: await this.#channelOf(target), ts })
    } catch (error) {
      // The message is already gone, perhaps by an attempt whose reply was lost.
      if (slackCode(error) !== 'message_not_found') throw deliveryFailure(error, true)
    }
  }

  /** Searches for the message with the nonce in the recent messages of its channel or thread. */
  async find(delivery: Delivery, since: number): Promise<SettleResult> {
    try {
      const first = await this.#search(delivery, since)
      if (first.outcome !== 'absent') return first
      await this.timing.sleep(SECOND_LOOK_MS, this.host.signal)
      return await this.#search(delivery, since)
    } catch (error) {
      this.host.log(`a message could not be looked up: ${describe(error)}`)
      return { outcome: 'unknown' }
    }
  }

  async #search({ target, nonce, reply_to_message_id: replyTo }: Delivery, since: number): Promise<SettleResult> {
    const channel = await this.#channelOf(target)
    const ts = target.thread_id ?? replyTo
    let cursor: string | undefined
    for (let page = 0; page < MOST_PAGES; page++) {
      const how = {
        channel,
        oldest: String(Math.max(0, since) / 1000),
        include_all_metadata: true,
        limit: 200,
        ...(cursor === undefined ? {} : { cursor }),
      }
      const found =
        ts === undefined
          ? await this.web.conversations.history(how)
          : await this.web.conversations.replies({ ...how, ts })
      for (const { ts: id, metadata } of (found.messages ?? []) as readonly Marked[])
        if (metadata?.event_type === MARK && metadata.event_payload?.nonce === nonce && id !== undefined)
          return { outcome: 'delivered', remote_message_id: id }
      cursor = found.response_metadata?.next_cursor
      if (!cursor) return found.has_more ? { outcome: 'unknown' } : { outcome: 'absent' }
    }
    return { outcome: 'unknown' }
  }

  /** Messages of a channel or thread after `oldest`, the oldest first; at most a thousand. */
  async since({ channel, thread }: ChannelLocation, oldest: string): Promise<readonly SlackMessage[]> {
    const all: SlackMessage[] = []
    let cursor: string | undefined
    for (let page = 0; page < MOST_MISSED_PAGES; page++) {
      const how = { channel, oldest, inclusive: false, limit: 200, ...(cursor === undefined ? {} : { cursor }) }
      const found =
        thread === undefined
          ? await this.web.conversations.history(how)
          : await this.web.conversations.replies({ ...how, ts: thread })
      all.push(...((found.messages ?? []) as readonly SlackMessage[]))
      cursor = found.response_metadata?.next_cursor
      if (!cursor) break
    }
    if (cursor) this.host.log(`${channel} has more new messages than were fetched`)
    // Slack lists a thread together with its parent message.
    const since = all.filter(({ ts = '' }) => TS.test(ts) && isAfter(ts, oldest))
    return since.sort((a, b) => (isAfter(String(a.ts), String(b.ts)) ? 1 : -1))
  }

  /** Channels of the bot, and the senders of direct messages. */
  async targets(me: Me): Promise<readonly Target[]> {
    const targets: Target[] = []
    let cursor = ''
    for (let page = 0; page < MOST_PAGES; page++) {
      const found = await this.web.users.conversations({
        types: 'public_channel,private_channel,mpim',
        exclude_archived: true,
        limit: 200,
        ...(cursor === '' ? {} : { cursor }),
      })
      for (const { id, name, is_mpim: isGroup } of found.channels ?? [])
        if (id !== undefined)
          targets.push({
            group_id: id,
            display_name: isGroup ? (name ?? id) : `#${name ?? id}`,
            target_type: isGroup ? 'group' : 'channel',
            qualifier: me.teamName,
          })
      cursor = found.response_metadata?.next_cursor ?? ''
      if (cursor === '') break
    }
    for (const user of this.#direct.keys())
      targets.push({
        peer_id: user,
        display_name: `@${this.#names.get(user) ?? user}`,
        target_type: 'user',
        qualifier: me.teamName,
      })
    return targets
  }

  /** The name of a person; undefined if the app may not look it up. */
  async nameOf(user: string): Promise<string | undefined> {
    const known = this.#names.get(user)
    if (known !== undefined || !this.#readsNames) return known
    try {
      const { user: found } = await this.web.users.info({ user })
      const name = found?.name ?? user
      put(this.#names, user, name)
      return name
    } catch (error) {
      if (slackCode(error) === 'missing_scope') this.#readsNames = false
      return undefined
    }
  }

  /** The files of a message, and a note for each file that is unavailable. */
  async files(
    files: readonly SlackFile[],
  ): Promise<{ readonly attachments: Attachment[]; readonly missing: string[] }> {
    const [attachments, missing]: [Attachment[], string[]] = [[], []]
    let room = MOST_BYTES_IN_ALL
    for (const file of files) {
      const name = fileName(file.name, 'file')
      try {
        const bytes = await this.#download(file, Math.min(room, MOST_BYTES))
        room -= bytes.length
        const type = clip(file.mimetype ?? 'application/octet-stream', 255)
        attachments.push({ name, mime_type: type, data: bytes.toString('base64') })
      } catch (error) {
        const why = error instanceof Missing ? error.message : 'Slack did not deliver it'
        if (!(error instanceof Missing)) this.host.log(`a file could not be fetched: ${describe(error)}`)
        missing.push(fileMissing(name, why))
      }
    }
    return { attachments, missing }
  }

  async #download(file: SlackFile, most: number): Promise<Buffer> {
    const address = file.url_private_download ?? file.url_private ?? ''
    // Only Slack may receive the token, and a file may be on another service.
    if (!URL.canParse(address) || !isSlack(new URL(address), this.config.apiUrl))
      throw new Missing('it is stored by another service')
    if ((file.size ?? 0) > most) throw new Missing(TOO_LARGE)
    const response = await fetch(address, {
      headers: { authorization: `Bearer ${this.config.botToken}` },
      signal: AbortSignal.any([this.host.signal, AbortSignal.timeout(FILE_MS)]),
      redirect: 'manual',
    })
    // Without the scope, Slack returns its login page.
    const isPage = (response.headers.get('content-type') ?? '').startsWith('text/html') && file.mimetype !== 'text/html'
    if (response.status === 302 || response.status === 403 || isPage) {
      await response.body?.cancel().catch(() => {})
      throw new Missing('the app lacks the scope files:read')
    }
    if (!response.ok) throw new Error(`Slack answers ${response.status} for a file`)
    const bytes = await bytesOf(response, most)
    if (!bytes) throw new Missing(TOO_LARGE)
    return bytes
  }

  /** The channel of an address; a direct-message channel is opened if needed. */
  async #channelOf({ group_id: group, peer_id: peer }: Delivery['target']): Promise<string> {
    const id = group ?? peer ?? ''
    if (!/^[A-Z][A-Z0-9]{1,40}$/.test(id))
      throw new NotSent('unknown_destination', `${JSON.stringify(clip(id, 80))} is not a Slack channel or user`)
    if (!/^[UW]/.test(id)) return id
    const known = this.#direct.get(id)
    if (known !== undefined) return known
    const opened = await this.web.conversations.open({ users: id }).catch(error => {
      // The message was not sent yet.
      throw deliveryFailure(error, true)
    })
    const channel = opened.channel?.id
    if (channel === undefined)
      throw new NotSent('unknown_destination', `Slack did not open a direct message with ${id}`)
    this.learn(id, channel)
    return channel
  }

  /** Resolves when the next message to a channel may be sent. */
  async #turn(channel: string): Promise<void> {
    const now = this.timing.now()
    const at = Math.max(now, this.#next.get(channel) ?? 0)
    if (at - now > MOST_WAIT_MS)
      throw new NotSent('transient_delivery_failure', 'Slack takes one message a second in a channel', {
        retryAfterMs: at - now,
      })
    put(this.#next, channel, at + CHANNEL_MS)
    if (at > now) await this.timing.sleep(at - now, this.host.signal)
  }
}

interface Marked {
  readonly ts?: string
  readonly metadata?: { readonly event_type?: string; readonly event_payload?: { readonly nonce?: unknown } }
}

/** An unavailable file, with a reason for people. */
class Missing extends Error {}
const TOO_LARGE = 'it is larger than 8 MiB'

function isSlack(address: URL, api: string): boolean {
  if (address.origin === new URL(api).origin) return true
  return (
    address.protocol === 'https:' &&
    /(?:^|\.)(?:slack\.com|slack-edge\.com|slack-files\.com|slack-gov\.com)$/.test(address.hostname)
  )
}

function put<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= MOST_CHANNELS) return
  for (const oldest of map.keys()) {
    map.delete(oldest)
    return
  }
}
