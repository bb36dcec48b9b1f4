import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { type LogLevel, SocketModeClient } from '@slack/socket-mode'
import { Agent, buildConnector } from 'undici'
import type { Timing } from '../../bridge-kit/src/index.js'
import { clip } from '../../bridge-kit/src/index.js'
import type { SlackConfig } from './config.js'

/** Time limit from the address request to Slack's hello. */
const OPEN_MS = 20_000
const CALL_MS = 10_000
/** Limit of envelopes being handled. */
const MOST_WAITING = 1000

/** An envelope of Slack: an event, a command, or a pressed button. */
export interface Envelope {
  readonly type: string
  readonly body: unknown
  /** Acknowledges the envelope. */
  ack(): Promise<void>
}

interface Received extends Envelope {
  readonly ack: (response?: Record<string, unknown>) => Promise<void>
}

/** Disables the library's log, which contains messages of people and addresses that open the connection. */
export const silent = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  setLevel: () => {},
  getLevel: () => 'error' as LogLevel,
  setName: () => {},
}

/**
 * One Socket Mode connection; the bridge opens the next one. The library's reconnection is disabled: after a token is revoked it
 * throws where nothing can catch, and it waits up to 30 s for a dead peer.
 */
export class SlackSocket {
  /** Resolves with the reason when the connection ends. */
  readonly ended: Promise<string>
  readonly #client: SocketModeClient
  readonly #agent: Agent
  readonly #sockets = new Set<Socket>()
  readonly #over = new AbortController()
  #end: (why: string) => void = () => {}
  #url = ''
  #heardAt: number
  #waiting = 0

  private constructor(
    config: SlackConfig,
    private readonly timing: Timing,
    private readonly silenceMs: number,
    private readonly take: (envelope: Envelope) => Promise<void>,
  ) {
    this.#heardAt = timing.now()
    this.ended = new Promise(resolve => {
      this.#end = resolve
    })
    this.#agent = this.#ownSockets()
    this.#client = new SocketModeClient({
      appToken: config.appToken,
      autoReconnectEnabled: false,
      logger: silent,
      dispatcher: this.#agent,
      clientOptions: {
        slackApiUrl: `${config.apiUrl}/`,
        fetch: globalThis.fetch,
        retryConfig: { retries: 0 },
        rejectRateLimitedCalls: true,
        timeout: CALL_MS,
      },
    })
  }

  /** Connects and waits for the hello. Rejects with Slack's error, or with one that names the missing step. */
  static async open(
    config: SlackConfig,
    timing: Timing,
    silenceMs: number,
    signal: AbortSignal,
    take: (envelope: Envelope) => Promise<void>,
  ): Promise<SlackSocket> {
    const socket = new SlackSocket(config, timing, silenceMs, take)
    const close = () => socket.close('closed')
    signal.addEventListener('abort', close, { once: true })
    void socket.ended.then(() => signal.removeEventListener('abort', close))
    try {
      await socket.#start()
      return socket
    } catch (error) {
      socket.close('it did not open')
      throw error
    }
  }

  /** Milliseconds since the last frame from Slack. */
  get silentMs(): number {
    return this.timing.now() - this.#heardAt
  }

  /** Closes the connection at once, because Slack does not close it by itself. */
  close(why: string): void {
    if (this.#over.signal.aborted) return
    this.#over.abort()
    unsubscribe(PING, this.#ping)
    this.#client.removeAllListeners()
    // The library cleans up when its sockets are gone; its own disconnect would wait 30 s for Slack.
    for (const socket of this.#sockets) socket.destroy()
    void this.#agent.destroy().catch(() => {})
    this.#end(why)
  }

  async #start(): Promise<void> {
    const client = this.#client
    subscribe(PING, this.#ping)
    client.on('authenticated', ({ url }: { url?: string }) => {
      this.#url = url ?? ''
    })
    // Handled before the library, which would wait 30 s for Slack to close the connection.
    const handlers = client.listeners('ws_message') as ((data: unknown, isBinary: boolean) => unknown)[]
    client.removeAllListeners('ws_message')
    client.on('ws_message', (data: unknown, isBinary: boolean) => {
      this.#heardAt = this.timing.now()
      const reason = endOf(data)
      if (reason !== undefined) this.close(`Slack: ${reason}`)
      // The library rejects invalid frames.
      else for (const handler of handlers) void Promise.resolve(handler.call(client, data, isBinary)).catch(() => {})
    })
    client.on('slack_event', (received: Received) => void this.#receive(received))
    client.on('error', (error: unknown) => this.close(error instanceof Error ? error.message : 'the connection failed'))
    client.on('disconnected', () => this.close('the connection was lost'))
    const timeout = new AbortController()
    const late = this.timing.sleep(OPEN_MS, timeout.signal).then(() => {
      throw new Error(`Slack sent no hello within ${OPEN_MS / 1000} s`)
    })
    const lost = this.ended.then(why => {
      throw new Error(why)
    })
    for (const one of [late, lost]) one.catch(() => {})
    try {
      const started = client.start()
      started.catch(() => {})
      await Promise.race([started, late, lost])
    } finally {
      timeout.abort()
    }
    void this.#watch()
  }

  /** Detects a dead connection by silence: Slack pings every few seconds. */
  async #watch(): Promise<void> {
    const { signal } = this.#over
    while (!signal.aborted) {
      await this.timing.sleep(this.silenceMs / 4, signal).catch(() => {})
      if (!signal.aborted && this.silentMs > this.silenceMs)
        this.close(`no frame from Slack for ${Math.round(this.silentMs / 1000)} s although the connection was open`)
    }
  }

  async #receive({ type, body, ack }: Received): Promise<void> {
    // An envelope without acknowledgement is sent again.
    if (this.#waiting >= MOST_WAITING || this.#over.signal.aborted) return
    this.#waiting++
    try {
      await this.take({ type, body, ack: () => ack().catch(() => {}) })
    } finally {
      this.#waiting--
    }
  }

  #ping = (message: unknown) => {
    const { websocket } = message as { websocket?: { readonly url?: string } }
    if (this.#url !== '' && websocket?.url === new URL(this.#url).href) this.#heardAt = this.timing.now()
  }

  #ownSockets(): Agent {
    const connect = buildConnector({ allowH2: false, timeout: CALL_MS })
    return new Agent({
      connect: (options, callback) =>
        connect(options, (...result) => {
          const [, socket] = result
          if (socket) {
            if (this.#over.signal.aborted) socket.destroy()
            this.#sockets.add(socket)
            socket.once('close', () => this.#sockets.delete(socket))
          }
          callback(...result)
        }),
    })
  }
}

/** The reason in a frame with which Slack ends or replaces a connection. */
function endOf(data: unknown): string | undefined {
  if (typeof data !== 'string' || !data.includes('"disconnect"')) return undefined
  try {
    const { type, reason } = JSON.parse(data) as { type?: unknown; reason?: unknown }
    return type === 'disconnect' ? clip(String(reason), 80) : undefined
  } catch {
    return undefined
  }
}

/** Diagnostics channel that reports the pings of all connections in this process. */
const PING = 'undici:websocket:ping'
