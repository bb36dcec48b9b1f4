import type { Update, UserFromGetMe } from 'grammy/types'
import {
  type Adapter,
  type Address,
  backoffMs,
  type Check,
  clip,
  type Delivery,
  type DeliveryResult,
  type Host,
  type InboundEvent,
  IngestRefused,
  type Instance,
  InstanceProblem,
  messageOf,
  NotSent,
  realTiming,
  Standing,
  type StateReport,
  type Target,
  type Timing,
} from '../../bridge-kit/src/index.js'
import { Chats } from './chats.js'
import { type ChatLocation, numberOf, TelegramClient } from './client.js'
import { configOf, isChat, type TelegramConfig } from './config.js'
import { eventOf, UPDATES } from './events.js'
import { conflictOf, describe, isTokenRefused, pauseOf } from './failures.js'

/** Maximum length of one message in UTF-16 units. */
const LONGEST = 4096
const CALL_MS = 15_000
/** Added to the long-poll time for the request timeout. */
const GRACE_MS = 15_000
/** An empty response that arrives faster is no long poll; the loop then waits this long. */
const IDLE_MS = 1000
/**
 * Consecutive conflicts, each within this time of the previous one, after which another program counts as polling permanently: an
 * aborted request alone causes one conflict.
 */
const MOST_CONFLICTS = 3
const CONFLICTS_MS = 120_000
/** Event errors for which a retry is useless. */
const HOPELESS = new Set(['bridge_event_invalid', 'invalid_params'])

/** Opens one instance, which polls for updates until it is closed. */
export function openTelegram(instance: Instance, host: Host, timing: Timing = realTiming): Adapter {
  return new TelegramBridge(configOf(instance), host, timing)
}

class TelegramBridge implements Adapter {
  readonly #client: TelegramClient
  readonly #places = new Chats()
  readonly #running: Promise<void>
  #me: UserFromGetMe | undefined
  /** Start time of the pending poll. */
  #askedAt: number | undefined
  #answers = 0
  /** Offset of the first update that the daemon lacks; undefined before the first update. */
  #offset: number | undefined
  #conflicts = 0
  #conflictAt = 0
  readonly #standing: Standing

  constructor(
    private readonly config: TelegramConfig,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    this.#client = new TelegramClient(config, host, timing)
    this.#standing = new Standing(host, timing)
    this.#running = this.#run()
  }

  async deliver({ event, target, text, ...delivery }: Delivery): Promise<DeliveryResult> {
    const location = locationOf(target)
    const { remote_message_id: remote, reply_to_message_id: replyTo } = delivery
    const id = remote === undefined ? undefined : numberOf(remote, 'message')
    if (event === 'delete') {
      if (id === undefined) throw new NotSent('unknown_destination', 'the message to delete has no id')
      await this.#client.delete(location, id)
      return { status: 'delivered', remote_message_id: String(id) }
    }
    if (event === 'typing') {
      await this.#client.typing(location)
      return { status: 'delivered' }
    }
    if (text.length > LONGEST)
      throw new NotSent('unsupported_capability', `a text of ${text.length} characters is longer than ${LONGEST}`)
    if (text.trim() === '')
      return { status: 'delivered', ...(remote === undefined ? {} : { remote_message_id: remote }) }
    if (id !== undefined) {
      await this.#client.edit(location, id, text)
      return { status: 'delivered', remote_message_id: String(id) }
    }
    const reply = replyTo !== undefined && /^\d{1,15}$/.test(replyTo) ? Number(replyTo) : undefined
    return { status: 'delivered', remote_message_id: await this.#client.send(location, text, reply) }
  }

  async targets(): Promise<readonly Target[]> {
    for (const chat of this.config.chats)
      if (!this.#places.has(chat))
        await this.#client.api.getChat(chat, this.#client.within(CALL_MS)).then(
          found => this.#places.add(found, chat),
          error => this.host.log(`the chat ${chat} is not known: ${describe(error)}`),
        )
    return this.#places.targets(this.#me?.username)
  }

  async verify(): Promise<readonly Check[]> {
    const checks: Check[] = []
    const add = (check: string, status: Check['status'], remediation: string) => {
      checks.push({ check, status, remediation: status === 'pass' ? '' : remediation })
    }
    const me = await this.#client.api.getMe(this.#client.within(CALL_MS)).catch(error => describe(error))
    if (typeof me === 'string') {
      add('telegram.token', 'fail', `Bind a valid bot_token: write /token to @BotFather in Telegram. ${me}`)
      return checks
    }
    add('telegram.token', 'pass', '')
    const deaf = this.deaf()
    add(
      'telegram.updates',
      this.#isReady && deaf === undefined ? 'pass' : 'fail',
      `${deaf ?? 'No updates are received.'}`,
    )
    const sees = me.can_read_all_group_messages || !this.config.answersAll
    add('telegram.privacy', sees ? 'pass' : 'fail', PRIVACY)
    for (const chat of this.config.chats) {
      const why = await this.#client.api.getChat(chat, this.#client.within(CALL_MS)).then(() => undefined, describe)
      add(`telegram.chat ${chat}`, why === undefined ? 'pass' : 'fail', `Add @${me.username} to the chat. ${why}`)
    }
    return checks
  }

  deaf(): string | undefined {
    if (this.#askedAt === undefined) return undefined
    const silentMs = this.timing.now() - this.#askedAt
    return silentMs > (this.config.pollSeconds * 1000 + GRACE_MS) * 2
      ? `Telegram has not answered requests for updates for ${Math.round(silentMs / 1000)} s`
      : undefined
  }

  close(): Promise<void> {
    return this.#running
  }

  get #isReady(): boolean {
    return this.#standing.last?.status === 'ready'
  }

  async #run(): Promise<void> {
    const { signal } = this.host
    for (let failures = 1; !signal.aborted; failures++) {
      const answers = this.#answers
      const error = await this.#poll().catch(problem => problem as unknown)
      if (signal.aborted) return
      if (this.#answers !== answers) failures = 1
      const problem = this.#problemOf(error)
      if (problem) {
        this.#standing.report(problem)
        return
      }
      const pause = pauseOf(error)
      const conflict = conflictOf(error)
      if (conflict === undefined || this.#conflicts > 1)
        this.#standing.report({
          status: 'degraded',
          reason: pause === undefined ? 'provider_timeout' : 'rate_limited',
          message: clip(describe(error), 500),
        })
      await this.timing.sleep(pause ?? backoffMs(failures, this.timing), signal).catch(() => {})
    }
  }

  /** The state that an unrecoverable error leaves the instance in until its restart; undefined: the error is transient. */
  #problemOf(error: unknown): StateReport | undefined {
    if (error instanceof InstanceProblem) return error.state
    if (isTokenRefused(error)) {
      const message =
        'Telegram refuses the token: write /token to @BotFather in Telegram and bind the value to bot_token'
      return { status: 'auth_required', reason: 'auth_failed', message }
    }
    if (conflictOf(error) === undefined) return undefined
    const now = this.timing.now()
    this.#conflicts = now - this.#conflictAt > CONFLICTS_MS ? 1 : this.#conflicts + 1
    this.#conflictAt = now
    if (this.#conflicts < MOST_CONFLICTS) return undefined
    return { status: 'error', reason: 'tenant_config_invalid', message: CONFLICT }
  }

  /** Polls for updates until an error. */
  async #poll(): Promise<never> {
    const { api } = this.#client
    this.#me ??= await api.getMe(this.#client.within(CALL_MS))
    // The first response is immediate and proves that no other program polls.
    for (let seconds = 0; ; seconds = this.config.pollSeconds) {
      const startedAt = this.timing.now()
      this.#askedAt = startedAt
      const updates = await this.#updates(seconds).finally(() => {
        this.#askedAt = undefined
      })
      this.#answers++
      this.#standing.report({ status: 'ready' })
      if (updates.length > 0) await this.#take(updates, this.#me)
      else if (seconds > 0 && this.timing.now() - startedAt < IDLE_MS)
        await this.timing.sleep(IDLE_MS, this.host.signal)
    }
  }

  async #updates(seconds: number): Promise<Update[]> {
    const { api } = this.#client
    const offset = this.#offset === undefined ? {} : { offset: this.#offset }
    const how = { ...offset, limit: 100, timeout: seconds, allowed_updates: [...UPDATES] }
    try {
      return await api.getUpdates(how, this.#client.within(seconds * 1000 + GRACE_MS))
    } catch (error) {
      if (!/webhook/i.test(conflictOf(error) ?? '')) throw error
      if (!this.config.replaceWebhook)
        throw new InstanceProblem({ status: 'error', reason: 'webhook_invalid', message: WEBHOOK })
      await api.deleteWebhook({}, this.#client.within(CALL_MS))
      return []
    }
  }

  /** Hands updates to the daemon and advances the offset to the first one that is not durable. */
  async #take(updates: readonly Update[], me: UserFromGetMe): Promise<void> {
    const taken: Promise<boolean>[] = []
    for (const update of updates) {
      const event = await this.#eventOf(update, me)
      if (event) taken.push(this.#ingest(event))
      else taken.push(Promise.resolve(true))
    }
    const first = (await Promise.all(taken)).indexOf(false)
    this.#offset = first === -1 ? (updates.at(-1)?.update_id ?? 0) + 1 : updates[first]?.update_id
    if (first !== -1) throw new Error('the daemon does not take an update')
  }

  /** Resolves with whether the event needs no further handling. */
  #ingest(event: InboundEvent): Promise<boolean> {
    return this.host.ingest(event).then(
      () => true,
      error => {
        if (this.host.signal.aborted) return false
        this.host.log(`an event was not accepted by the daemon: ${messageOf(error)}`)
        return error instanceof IngestRefused && HOPELESS.has(error.code)
      },
    )
  }

  async #eventOf(update: Update, me: UserFromGetMe): Promise<InboundEvent | undefined> {
    this.#places.learn(update)
    let event: InboundEvent | undefined
    try {
      event = eventOf(update, me)
    } catch (error) {
      this.host.log(`an update could not be parsed: ${messageOf(error)}`)
    }
    if (event?.family === 'action')
      void this.#client.api
        .answerCallbackQuery(update.callback_query?.id ?? '', {}, this.#client.within(CALL_MS))
        .catch(error => this.host.log(describe(error)))
    const message = update.message ?? update.channel_post
    if (!event || !message) return event
    const file = await this.#client.fileIn(message)
    if (file === undefined) return event
    if (typeof file !== 'string') return { ...event, attachments: [file] }
    return { ...event, text: [event.text, file].filter(Boolean).join('\n') }
  }
}

const PRIVACY =
  'group.reply is all, but Telegram hides messages that are not addressed to the bot: write /setprivacy to @BotFather, choose Disable, and add the bot to the group again.'
const WEBHOOK =
  'a webhook is set for this bot and gets its updates: stop the program that uses it, or set provider_config.replace_webhook to true, and restart the bridge'
const CONFLICT =
  'another program asks for the updates of this bot with the same token: stop it, or make a new token with /revoke at @BotFather and bind it, and restart the bridge'

/**
 * The chat and topic of an address.
 * @throws NotSent If the address is invalid
 */
function locationOf({ group_id: group, peer_id: peer, thread_id: thread }: Address): ChatLocation {
  const chat = group ?? peer ?? ''
  if (!isChat(chat))
    throw new NotSent('unknown_destination', `${JSON.stringify(clip(chat, 80))} is not a Telegram chat`)
  return { chat, topic: thread === undefined ? undefined : numberOf(thread, 'topic') }
}
