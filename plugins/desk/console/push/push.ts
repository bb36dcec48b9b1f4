import { command } from '../../../../kernel/kit/commands/command-line.js'
import { clip } from '../../../../kernel/kit/text.js'
import { messageOf, type Tx } from '../../../../kernel/plugin.js'
import type { ConsolePushBody, ConsolePushReply, ConsolePushSubscription } from '../../../../schemas/daemon/console.js'
import { DownloadError, judgeAddress } from '../../../delivery/extensions/api.js'
import type { ChannelMessage, NotificationChannel } from '../../../reach/notifications/api.js'
import { ConsoleErrors } from '../api.js'
import type { K } from '../needs.js'
import { type PushPayload, payloadOf } from './message.js'
import type { ServerKey } from './sender.js'
import { PushSettings } from './settings.js'
import { type SubscriptionRow, subscriptions, toWire } from './subscriptions.js'

/** The private key; `console/` of the vault is open to this plugin only. */
const KEY = 'vault:console/push/key'
const MOST_SUBSCRIPTIONS = 20
/** Maximum number of waiting messages. The attention list keeps what they report. */
const MOST_WAITING = 200
/** Pauses in milliseconds before each further attempt. */
const PAUSES_MS = [5_000, 30_000]

/** Sends the messages of presets to browsers, through the push services of the browser vendors. */
export class Push {
  readonly channel: NotificationChannel = {
    name: 'browser',
    displayName: 'browsers with push',
    problem: () => this.#problem(),
    post: (t, message) => this.#post(t, message),
  }
  #key: Promise<ServerKey> | undefined
  #waiting: PushPayload[] = []
  #wake: () => void = () => {}

  /**
   * @param isOpen whether a session of the console has not ended
   * @param named tests send to this address, which is inside the machine
   */
  constructor(
    private readonly kernel: K,
    private readonly isOpen: (session: string) => boolean,
    private readonly named?: URL,
  ) {}

  /** Whether push is on, the public key for subscriptions, and the subscriptions. */
  async list(current: string | undefined): Promise<ConsolePushReply> {
    const all = this.#open().map(toWire)
    const own = all.find(({ session_id: id }) => id === current)
    const base = { enabled: this.#isEnabled(), subscriptions: all, ...(own && { current: own.id }) }
    return base.enabled ? { ...base, public_key: (await this.#serverKey()).publicKey } : base
  }

  /**
   * Subscribes the browser of a session, replacing its previous subscription. @throws Fault `console_push_off`,
   * `console_session_required`, `console_push_refused`, `console_push_full`
   */
  async add(session: string | undefined, { endpoint, keys }: ConsolePushBody): Promise<ConsolePushSubscription> {
    if (!this.#isEnabled()) throw ConsoleErrors.console_push_off()
    if (session === undefined) throw ConsoleErrors.console_session_required()
    await this.#judge(endpoint)
    const row = {
      ...{ id: this.kernel.ids.id('psh'), session_id: session, endpoint, p256dh: keys.p256dh, auth: keys.auth },
      ...{ created_at: this.kernel.clock.now(), sent_at: null, last_error: null },
    }
    await this.kernel.db.tx(t => {
      for (const { id, session_id: of } of subscriptions.all(t))
        if (of === session || !this.isOpen(of)) subscriptions.delete(t, { id })
      if (subscriptions.all(t).length >= MOST_SUBSCRIPTIONS)
        throw ConsoleErrors.console_push_full(`${MOST_SUBSCRIPTIONS} browsers have subscribed already`)
      subscriptions.insert(t, row)
    })
    return toWire(row)
  }

  /** @throws Fault `console_push_not_found` */
  async remove(id: string): Promise<void> {
    const removed = await this.kernel.db.tx(t => subscriptions.delete(t, { id }))
    if (removed === 0) throw ConsoleErrors.console_push_not_found()
  }

  /** Sends waiting messages until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake(), { once: true })
    while (!signal.aborted) {
      const payload = this.#waiting.shift()
      if (payload === undefined) {
        await new Promise<void>(resolve => {
          this.#wake = resolve
        })
        continue
      }
      await Promise.all(this.#open().map(row => this.#send(row, payload, signal)))
    }
  }

  #isEnabled(): boolean {
    return this.kernel.config.get(PushSettings.enabled)
  }

  /** Subscriptions of sessions that have not ended. */
  #open(): SubscriptionRow[] {
    const rows = subscriptions.all(this.kernel.db, {}, 'ORDER BY created_at, id')
    return rows.filter(({ session_id: session }) => this.isOpen(session))
  }

  #problem(): string | undefined {
    if (!this.#isEnabled()) return `push is off: ${command('config set', 'console.push.enabled', 'true')}`
    return this.#open().length === 0 ? 'no browser has subscribed to push' : undefined
  }

  /** Sends the message when the transaction is durable: a browser must not learn of an event that a kill then undoes. */
  #post(t: Tx, message: ChannelMessage): string | undefined {
    const problem = this.#problem()
    if (problem !== undefined) return problem
    this.kernel.db.onDurable(t, () => {
      this.#waiting.push(payloadOf(message))
      this.#waiting = this.#waiting.slice(-MOST_WAITING)
      this.#wake()
    })
    return undefined
  }

  async #send(row: SubscriptionRow, payload: PushPayload, signal: AbortSignal): Promise<void> {
    const { clock, config, db, log } = this.kernel
    const { id } = row
    try {
      const { send } = await import('./sender.js')
      const options = {
        ...{ clock, key: await this.#serverKey(), contact: config.get(PushSettings.contact) },
        ...(this.named && { named: this.named }),
      }
      for (let attempt = 0; !signal.aborted && this.#isEnabled(); attempt++) {
        const sent = await send(row, payload, options)
        if (sent.is === 'gone') {
          await db.tx(t => subscriptions.delete(t, { id }))
          return
        }
        if (sent.is === 'sent') {
          await db.tx(t => subscriptions.update(t, { id }, { sent_at: clock.now(), last_error: null }))
          return
        }
        const pause = PAUSES_MS[attempt]
        if (sent.is === 'refused' || pause === undefined) {
          await db.tx(t => subscriptions.update(t, { id }, { last_error: clip(sent.why, 200) }))
          return
        }
        await clock.sleep(pause, signal).catch(() => {})
      }
    } catch (error) {
      log.warn('a browser did not get a message', { subscription: id, error: messageOf(error) })
    }
  }

  /**
   * Refuses an address that cannot be a push service's. An unreachable address is accepted and tried with each message.
   */
  async #judge(endpoint: string): Promise<void> {
    const url = new URL(endpoint)
    const named = this.named ?? new URL('https://push-service.invalid')
    const refused = (why: string) => ConsoleErrors.console_push_refused(`the address of the subscription: ${why}`)
    if (url.protocol !== 'https:' && url.origin !== this.named?.origin) throw refused('it is not https')
    if (url.username || url.password) throw refused('it carries a password')
    await judgeAddress(url, { named }).catch(error => {
      if (!(error instanceof DownloadError)) throw error
      if (error.problem === 'private') throw refused(error.message)
    })
  }

  /** The key of this daemon, created on first use. */
  #serverKey(): Promise<ServerKey> {
    this.#key ??= this.#readKey()
    this.#key.catch(() => {
      this.#key = undefined
    })
    return this.#key
  }

  async #readKey(): Promise<ServerKey> {
    const { keyOf, newKey } = await import('./sender.js')
    const vault = this.kernel.needs.vault.current
    if (!vault) throw ConsoleErrors.console_push_off('push needs the plugin vault, which does not run')
    const known = await vault.reveal(KEY)
    if (known !== undefined) return keyOf(known)
    const key = newKey()
    await vault.put(KEY, key.privateKey, { kind: 'push_key' })
    return key
  }
}
