import { type APIUser, type GatewayDispatchPayload, GatewayIntentBits as Intents } from '@discordjs/core'
import type { REST } from '@discordjs/rest'
import { type SessionInfo, WebSocketShardEvents as Shard, WebSocketManager } from '@discordjs/ws'
import type { Timing } from '../../bridge-kit/src/index.js'

/** Time limit from the connection until the session is ready. */
const READY_MS = 60_000
/** Codes with which Discord refuses a bot; the library reports an error for each. */
const REFUSED: ReadonlySet<number> = new Set([4004, 4010, 4011, 4012, 4013, 4014])

/** Events of a gateway for the bridge. */
export interface GatewayEvents {
  dispatch(payload: GatewayDispatchPayload): void
  /**
   * The connection is ready.
   * @param isNew Whether this is a new session, which does not replay earlier events
   */
  live(me: APIUser, isNew: boolean): void
  /** The connection is lost; the library reconnects. */
  lost(why: string): void
}

/** The gateway connection of one bot. The library reconnects until it is closed or Discord refuses the bot. */
export class Gateway {
  /** Rejects with the reason if Discord refuses the bot; resolves when closed. */
  readonly ended: Promise<void>
  #end: (error?: Error) => void = () => {}
  #session: SessionInfo | null = null
  readonly #manager: WebSocketManager
  #ackAt: number
  #me: APIUser | undefined
  #isClosed = false

  constructor(
    token: string,
    rest: REST,
    content: boolean,
    private readonly timing: Timing,
    private readonly events: GatewayEvents,
  ) {
    this.#ackAt = timing.now()
    this.ended = new Promise((resolve, reject) => {
      this.#end = error => (error ? reject(error) : resolve())
    })
    this.ended.catch(() => {})
    const intents = Intents.Guilds | Intents.GuildMessages | Intents.DirectMessages
    this.#manager = new WebSocketManager({
      token,
      rest,
      intents: content ? intents | Intents.MessageContent : intents,
      shardCount: 1,
      helloTimeout: 20_000,
      handshakeTimeout: 15_000,
      // The library's default store is shared by all bots of a process.
      retrieveSessionInfo: () => this.#session,
      updateSessionInfo: (_, session) => {
        this.#session = session
      },
    })
  }

  /** Resolves when the session is ready. Rejects with an error of Discord or the network. */
  async open(signal: AbortSignal): Promise<void> {
    const manager = this.#manager
    manager.on(Shard.Ready, ({ user }: { user: APIUser }) => {
      this.#me = user
      this.#live(true)
    })
    manager.on(Shard.Resumed, () => this.#live(false))
    manager.on(Shard.HeartbeatComplete, () => {
      this.#ackAt = this.timing.now()
    })
    manager.on(Shard.Dispatch, (payload: GatewayDispatchPayload) => {
      if (!this.#isClosed) this.events.dispatch(payload)
    })
    manager.on(Shard.Closed, (code: number) => {
      if (!this.#isClosed && !REFUSED.has(code)) this.events.lost(`Discord closed the connection with ${code}`)
    })
    manager.on(Shard.SocketError, (error: Error) => {
      const { code = error.message } = error as { code?: string }
      if (!this.#isClosed) this.events.lost(`the connection to Discord failed: ${code}`)
    })
    manager.on(Shard.Error, (error: Error) => this.#end(error))
    const late = new AbortController()
    const timeout = this.timing.sleep(READY_MS, AbortSignal.any([signal, late.signal])).then(() => {
      throw new Error(`Discord did not report a ready session within ${READY_MS / 1000} s`)
    })
    const refused = this.ended.then(() => {
      throw new Error('closed')
    })
    for (const one of [timeout, refused]) one.catch(() => {})
    try {
      const connected = manager.connect()
      connected.catch(() => {})
      await Promise.race([connected, timeout, refused])
    } finally {
      late.abort()
    }
  }

  /** Milliseconds since Discord last answered a heartbeat. */
  get silentMs(): number {
    return this.timing.now() - this.#ackAt
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#end()
    await this.#manager.destroy({ reason: 'closed' })
  }

  #live(isNew: boolean): void {
    this.#ackAt = this.timing.now()
    if (this.#me && !this.#isClosed) this.events.live(this.#me, isNew)
  }
}
