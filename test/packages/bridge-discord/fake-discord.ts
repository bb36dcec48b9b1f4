import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

export const TOKEN = 'test-token.of-a-bot.0123456789'
export const ME = '900'
export const GUILD = '1'

type Json = Readonly<Record<string, unknown>>
interface Call {
  readonly method: string
  readonly path: string
  readonly body: Json
}
interface Answer {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: unknown
}
export interface Message {
  readonly id: string
  readonly channel_id: string
  readonly author: Json
  content: string
  readonly nonce?: string
}

const CONTENT = 1 << 15
/** First millisecond of the ids of Discord. */
const EPOCH = 1_420_070_400_000

/** REST and gateway of Discord, as documented. */
export class FakeDiscord {
  readonly calls: Call[] = []
  readonly messages: Message[] = []
  /** What people wrote. */
  readonly written: Json[] = []
  readonly files = new Map<string, Buffer>()
  readonly identified: Json[] = []
  resumes = 0
  allowsContent = true
  listsNonces = true
  /** The gateway brings the bot's own messages as well. */
  echoes = true
  heartbeatMs = 1000
  /** Answers a call before Discord does. */
  answer: (call: Call) => Answer | undefined = () => undefined
  /** Events of the session, for those who resume. */
  readonly #events: { readonly s: number; readonly t: string; readonly d: unknown }[] = []
  readonly #live = new Set<WebSocket>()
  #n = 0

  private constructor(
    private readonly server: Server,
    private readonly sockets: WebSocketServer,
  ) {}

  static async start(): Promise<FakeDiscord> {
    const server = createServer()
    const discord = new FakeDiscord(server, new WebSocketServer({ server }))
    server.on('request', (request, response) => void discord.#serve(request, response))
    discord.sockets.on('connection', socket => discord.#connected(socket))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return discord
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  get apiUrl(): string {
    return `${this.origin}/api`
  }

  /** An id whose time is now. */
  id(): string {
    return String((BigInt(Date.now() - EPOCH) << 22n) + BigInt(++this.#n))
  }

  called(method: string, pattern: RegExp): readonly Json[] {
    return this.calls.filter(call => call.method === method && pattern.test(call.path)).map(({ body }) => body)
  }

  /** A person writes; returns the message. @param isHeard the gateway brings it */
  write(content: string, more: Json = {}, isHeard = true): Json {
    const ann = { id: '42', username: 'ann', global_name: 'Ann', bot: false }
    const message = {
      ...{ id: this.id(), channel_id: '10', guild_id: GUILD, type: 0, author: ann, content, mentions: [] },
      ...{ attachments: [], embeds: [], timestamp: '2023-11-14T22:13:20.000000+00:00', edited_timestamp: null },
      ...more,
    }
    this.written.push(message)
    if (isHeard) this.dispatch('MESSAGE_CREATE', message)
    return message
  }

  dispatch(t: string, d: unknown): void {
    const event = { s: this.#events.length + 2, t, d }
    this.#events.push(event)
    for (const socket of this.#live) send(socket, { op: 0, ...event })
  }

  /** Sends a frame to every connection. */
  frame(value: unknown): void {
    for (const socket of this.#live) send(socket, value)
  }

  drop(code?: number): void {
    for (const socket of this.sockets.clients) {
      if (code === undefined) socket.terminate()
      else socket.close(code)
    }
  }

  async stop(): Promise<void> {
    this.drop()
    this.sockets.close()
    this.server.closeAllConnections()
    this.server.close()
  }

  #connected(socket: WebSocket): void {
    send(socket, { op: 10, d: { heartbeat_interval: this.heartbeatMs } })
    socket.on('close', () => this.#live.delete(socket))
    socket.on('error', () => {})
    socket.on('message', data => {
      const { op, d } = JSON.parse(String(data)) as { op: number; d: Record<string, never> }
      if (op === 1) send(socket, { op: 11 })
      if (op === 2) this.#identify(socket, d)
      if (op === 6) this.#resume(socket, d)
    })
  }

  #identify(socket: WebSocket, d: { readonly token?: string; readonly intents?: number } & Json): void {
    this.identified.push(d)
    const refusal = d.token !== TOKEN ? 4004 : !this.allowsContent && (d.intents ?? 0) & CONTENT ? 4014 : undefined
    if (refusal !== undefined) {
      socket.close(refusal)
      return
    }
    this.#live.add(socket)
    const user = { id: ME, username: 'svc', global_name: null, bot: true }
    const ready = { v: 10, user, guilds: [], session_id: 's1', resume_gateway_url: this.origin.replace('http', 'ws') }
    send(socket, { op: 0, t: 'READY', s: 1, d: ready })
    const channels = [
      { id: '10', type: 0, name: 'ops', last_message_id: this.#lastIn('10') },
      { id: '11', type: 2, name: 'voice' },
    ]
    const threads = [{ id: '20', type: 11, name: 'deploys', parent_id: '10', last_message_id: this.#lastIn('20') }]
    send(socket, { op: 0, t: 'GUILD_CREATE', s: 2, d: { id: GUILD, name: 'Example', channels, threads } })
  }

  #lastIn(channel: string): string | null {
    const found = [...this.messages, ...this.written].filter(one => one.channel_id === channel).sort(byId)
    return (found.at(-1)?.id as string | undefined) ?? null
  }

  #resume(socket: WebSocket, { seq }: { readonly seq?: number }): void {
    this.resumes++
    this.#live.add(socket)
    // One event more than it has missed: Discord may bring events again.
    for (const event of this.#events) if (event.s >= (seq ?? 0)) send(socket, { op: 0, ...event })
    send(socket, { op: 0, t: 'RESUMED', s: this.#events.length + 2, d: {} })
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', this.origin)
    if (pathname.startsWith('/files/')) {
      const file = this.files.get(pathname.slice('/files/'.length))
      response.writeHead(file ? 200 : 404).end(file)
      return
    }
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const text = Buffer.concat(parts).toString()
    const path = pathname.replace('/api/v10', '')
    const call = { method: request.method ?? '', path, body: (text === '' ? {} : JSON.parse(text)) as Json }
    this.calls.push(call)
    const isKnown = request.headers.authorization === `Bot ${TOKEN}`
    const refused = isKnown ? this.answer(call) : { status: 401, body: { code: 0, message: '401: Unauthorized' } }
    const { status, headers = {}, body } = refused ?? this.#result(call, searchParams)
    if (response.destroyed) return
    response.writeHead(status, { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers })
    response.end(body === undefined ? undefined : JSON.stringify(body))
  }

  #result({ method, path, body }: Call, query: URLSearchParams): Answer {
    const ok = (value: unknown) => ({ status: 200, body: value })
    if (path === '/gateway/bot') {
      const limit = { total: 1000, remaining: 999, reset_after: 86_400_000, max_concurrency: 1 }
      return ok({ url: this.origin.replace('http', 'ws'), shards: 1, session_start_limit: limit })
    }
    if (path === '/applications/@me') return ok({ id: '77', flags: this.allowsContent ? 1 << 19 : 0 })
    if (path === '/users/@me/channels') return ok({ id: `5${String(body.recipient_id)}`, type: 1 })
    const [, channel = '', rest = ''] = /^\/channels\/(\d+)(.*)$/.exec(path) ?? []
    if (rest === '') return ok({ id: channel, type: 11, name: 'found', parent_id: '10', guild_id: GUILD })
    if (method === 'GET') {
      const after = BigInt(query.get('after') ?? 0)
      const own = this.messages.map(({ nonce, ...one }) => (this.listsNonces ? { ...one, nonce } : one))
      // Only the gateway says of which server a message is.
      const all: Json[] = [...own, ...this.written.map(({ guild_id: _, member: __, ...one }) => one)]
      const found = all.filter(one => one.channel_id === channel && BigInt(String(one.id)) > after).sort(byId)
      return ok(found.slice(0, Number(query.get('limit') ?? 50)).reverse())
    }
    if (rest === '/typing') return { status: 204 }
    if (method === 'POST') return this.#create(channel, body)
    const id = rest.replace('/messages/', '')
    const at = this.messages.findIndex(one => one.id === id && one.channel_id === channel)
    const message = this.messages[at]
    if (!message) return { status: 404, body: { code: 10008, message: 'Unknown Message' } }
    if (method === 'DELETE') {
      this.messages.splice(at, 1)
      return { status: 204 }
    }
    message.content = String(body.content)
    return ok(message)
  }

  #create(channel: string, body: Json): Answer {
    const {
      content = '',
      nonce,
      enforce_nonce: isEnforced,
    } = body as { content?: string; nonce?: string; enforce_nonce?: boolean }
    const tooLong = [...content].length > 2000 || (nonce ?? '').length > 25
    if (tooLong) return { status: 400, body: { code: 50035, message: 'Invalid Form Body', errors: {} } }
    const before = isEnforced ? this.messages.find(one => one.nonce === nonce) : undefined
    if (before) return { status: 200, body: before }
    const author = { id: ME, username: 'svc', bot: true }
    const named = nonce === undefined ? {} : { nonce }
    const message = { id: this.id(), channel_id: channel, author, content, type: 0, mentions: [], ...named }
    this.messages.push(message)
    if (this.echoes) this.dispatch('MESSAGE_CREATE', { ...message, guild_id: GUILD, attachments: [], embeds: [] })
    return { status: 200, body: message }
  }
}

const byId = (a: { readonly id?: unknown }, b: { readonly id?: unknown }): number =>
  BigInt(String(a.id)) < BigInt(String(b.id)) ? -1 : 1

function send(socket: WebSocket, value: unknown): void {
  socket.send(JSON.stringify(value))
}
