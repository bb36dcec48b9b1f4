import { type Host, isAfter, Positions, retrying, type Timing } from '../../bridge-kit/src/index.js'
import type { SlackClient } from './client.js'
import type { ChannelLocation, Found, SlackMessage } from './events.js'
import { describe, isTokenRefused, pauseOf, slackCode } from './failures.js'

/** Channels and threads that are caught up after a disconnection, the most recently used first. */
const MOST_PLACES = 40
const OLDEST_MS = 24 * 60 * 60_000
const ATTEMPTS = 8

/** Tracks the read position of channels and threads and fetches missed messages: Slack repeats an event for only six minutes. */
export class Missed {
  readonly #positions: Positions
  #running: Promise<void> = Promise.resolve()

  constructor(
    private readonly client: SlackClient,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    this.#positions = new Positions(host, timing)
  }

  load(): Promise<void> {
    return this.#positions.load().catch(error => this.host.log(`positions are not known: ${describe(error)}`))
  }

  /** Tracks an event; `taken` resolves with whether it needs no further handling. */
  watch({ location, event }: Found, taken: Promise<boolean>): void {
    const { message_id: ts } = event
    if (location === undefined || ts === undefined || event.family !== 'message') return
    const key = keyOf(location)
    this.#positions.taking(key, ts)
    // A message to the bot starts a thread, whose later messages may be missed too.
    if (event.addressed && location.thread === undefined && event.thread_id !== undefined)
      this.#positions.begin(keyOf({ ...location, thread: ts }), ts)
    void taken.then(
      isTaken => isTaken && this.#positions.taken(key, ts),
      () => {},
    )
  }

  /** Fetches missed messages, the oldest of each place first, and hands them on. */
  fetch(hand: (message: SlackMessage, channel: string) => Promise<boolean>): void {
    const places = this.#positions
      .places()
      .slice(0, MOST_PLACES)
      .map(key => ({ key, release: this.#positions.hold(key) }))
    this.#running = this.#running.then(async () => {
      for (const { key, release } of places) {
        const at = this.#positions.of(key)
        if (at !== undefined && !this.host.signal.aborted) await this.#fetch(key, at, hand)
        release()
      }
    })
  }

  async #fetch(key: string, at: string, hand: (message: SlackMessage, channel: string) => Promise<boolean>) {
    const location = locationOf(key)
    const earliest = `${Math.floor((Date.now() - OLDEST_MS) / 1000)}.000000`
    const oldest = isAfter(at, earliest) ? at : earliest
    try {
      const found = await retrying(() => this.client.since(location, oldest), {
        ...{ attempts: ATTEMPTS, signal: this.host.signal, timing: this.timing, retryAfter: pauseOf },
        transient: error => !isTokenRefused(error) && slackCode(error) === undefined,
      })
      for (const message of found) {
        const ts = String(message.ts)
        this.#positions.taking(key, ts)
        void hand(message, location.channel).then(isTaken => isTaken && this.#positions.taken(key, ts))
      }
    } catch (error) {
      // The bot was removed from the channel or lacks the history scope.
      if (slackCode(error) !== undefined && !isTokenRefused(error)) this.#positions.forget(key)
      this.host.log(`messages written in ${key} meanwhile could not be fetched: ${describe(error)}`)
    }
  }
}

const keyOf = ({ channel, thread }: ChannelLocation): string =>
  thread === undefined ? channel : `${channel}/${thread}`

function locationOf(key: string): ChannelLocation {
  const [channel = '', thread] = key.split('/')
  return thread === undefined ? { channel } : { channel, thread }
}
