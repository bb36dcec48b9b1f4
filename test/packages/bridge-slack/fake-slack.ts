import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

export const BOT_TOKEN = 'xoxb-1-test'
export const APP_TOKEN = 'xapp-1-test'
export const BOT = 'U0BOT'

type Fields = Readonly<Record<string, string>>
interface Call {
  readonly method: string
  readonly fields: Fields
}
interface Answer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: unknown
}
export interface Message {
  readonly ts: string
  readonly channel: string
  readonly thread_ts?: string
  text: string
  metadata?: unknown
}

const SCOPES = [
  'chat:write,app_mentions:read,im:history,channels:history,groups:history,channels:read,im:write,files:read,users:read',
]

/** Web API and Socket Mode of one workspace, as documented. */
export class FakeSlack {
  readonly calls: Call[] = []
  readonly messages: Message[] = []
  /** What people wrote. */
  readonly written: (Record<string, unknown> & { readonly channel: string; readonly ts: string })[] = []
  readonly files = new Map<string, { readonly type: string; readonly bytes: Buffer }>()
  readonly acks = new Set<string>()
  scopes = SCOPES[0] as string
  /** Answers a call before the workspace does. */
  answer: (call: Call) => Answer | undefined = () => undefined
  /** Milliseconds until an envelope without an acknowledgement is sent again. */
  redeliverMs = 300
  pingMs = 50
  /** Connections that were opened, and the most of them at one time. */
  opened = 0
  mostAtOnce = 0
  saysHello = true
  readonly #unacknowledged = new Map<string, { envelope: Record<string, unknown>; attempts: number }>()
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #pings = new Map<WebSocket, NodeJS.Timeout>()
  #n = 0

  private constructor(
    private readonly server: Server,
    private readonly sockets: WebSocketServer,
  ) {}

  static async start(): Promise<FakeSlack> {
    const server = createServer()
    const slack = new FakeSlack(server, new WebSocketServer({ server, path: '/link' }))
    server.on('request', (request, response) => void slack.#serve(request, response))
    slack.sockets.on('connection', socket => slack.#connected(socket))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return slack
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  get apiUrl(): string {
    return `${this.origin}/api`
  }

  called(method: string): readonly Fields[] {
    return this.calls.filter(call => call.method === method).map(({ fields }) => fields)
  }

  get live(): number {
    return this.sockets.clients.size
  }

  ts(): string {
    return `${Math.floor(Date.now() / 1000)}.${String(++this.#n).padStart(6, '0')}`
  }

  /** Sends an event of the Events API; returns the id of its envelope. */
  event(event: Record<string, unknown>): string {
    const n = ++this.#n
    return this.envelope('events_api', { team_id: 'T1', type: 'event_callback', event_id: `Ev${n}`, event })
  }

  /** A person writes; returns the ts. @param isHeard the connection brings it */
  write(channel: string, text: string, more: Record<string, unknown> = {}, isHeard = true): string {
    const ts = this.ts()
    const kind = channel.startsWith('D') ? 'im' : 'channel'
    this.written.push({ type: 'message', channel, user: 'U1ANN', text, ts, ...more })
    if (isHeard)
      this.event({ type: 'message', channel, channel_type: kind, user: 'U1ANN', text, ts, event_ts: ts, ...more })
    return ts
  }

  envelope(type: string, payload: unknown): string {
    const id = `env-${++this.#n}`
    this.#unacknowledged.set(id, {
      envelope: { envelope_id: id, type, payload, accepts_response_payload: false },
      attempts: 0,
    })
    this.#send(id)
    return id
  }

  /** Sends a frame of its own to every connection. */
  frame(value: unknown): void {
    for (const socket of this.sockets.clients) socket.send(JSON.stringify(value))
  }

  /** Connections stay open and answer pings, and nothing else comes through them. */
  goDeaf(): void {
    for (const timer of this.#pings.values()) clearInterval(timer)
    this.#pings.clear()
  }

  /** Slack has repeated them often enough. */
  forgetEnvelopes(): void {
    this.#unacknowledged.clear()
  }

  drop(): void {
    for (const socket of this.sockets.clients) socket.terminate()
  }

  async stop(): Promise<void> {
    for (const timer of [...this.#timers, ...this.#pings.values()]) clearTimeout(timer)
    this.drop()
    this.sockets.close()
    this.server.closeAllConnections()
    this.server.close()
  }

  #connected(socket: WebSocket): void {
    this.opened++
    this.mostAtOnce = Math.max(this.mostAtOnce, this.live)
    socket.on('message', data => {
      const { envelope_id: id = '' } = JSON.parse(String(data)) as { envelope_id?: string }
      this.acks.add(id)
      this.#unacknowledged.delete(id)
    })
    this.#pings.set(
      socket,
      setInterval(() => socket.ping(), this.pingMs),
    )
    socket.on('close', () => {
      clearInterval(this.#pings.get(socket))
      this.#pings.delete(socket)
    })
    socket.on('error', () => {})
    if (this.saysHello) socket.send(JSON.stringify({ type: 'hello', num_connections: this.live }))
    for (const id of this.#unacknowledged.keys()) this.#send(id)
  }

  #send(id: string): void {
    const waiting = this.#unacknowledged.get(id)
    // One that is deaf gets nothing.
    const socket = [...this.sockets.clients].find(one => this.#pings.has(one))
    if (!waiting || !socket) return
    const again = waiting.attempts++ === 0 ? {} : { retry_attempt: waiting.attempts - 1, retry_reason: 'timeout' }
    socket.send(JSON.stringify({ ...waiting.envelope, ...again }))
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      this.#send(id)
    }, this.redeliverMs)
    this.#timers.add(timer)
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '', this.origin)
    const token = request.headers.authorization?.replace('Bearer ', '') ?? ''
    if (pathname.startsWith('/files/')) {
      const file = token === BOT_TOKEN ? this.files.get(pathname.slice('/files/'.length)) : undefined
      if (file) response.writeHead(200, { 'content-type': file.type }).end(file.bytes)
      else response.writeHead(302, { location: `${this.origin}/login` }).end()
      return
    }
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const fields = Object.fromEntries(new URLSearchParams(Buffer.concat(parts).toString()))
    const call = { method: pathname.replace('/api/', ''), fields }
    this.calls.push(call)
    const wanted = call.method === 'apps.connections.open' ? APP_TOKEN : BOT_TOKEN
    const refused = token === wanted ? this.answer(call) : { body: { ok: false, error: 'invalid_auth' } }
    const { status = 200, headers = {}, body = await this.#result(call) } = refused ?? {}
    if (response.destroyed) return
    const all = { 'content-type': 'application/json', 'x-oauth-scopes': this.scopes, ...headers }
    response.writeHead(status, all).end(JSON.stringify(body))
  }

  /** Messages of people and of the bot, which do not say in which channel they are, the newest first. */
  #page({ cursor = '0', limit = '100' }: Fields, isListed: (one: Message) => boolean): unknown {
    const all = [...this.messages, ...(this.written as unknown as Message[])].filter(isListed)
    const listed = all.sort((a, b) => (a.ts < b.ts ? 1 : -1)).map(({ channel: _, ...one }) => one)
    const [from, most] = [Number(cursor), Number(limit)]
    const next = from + most < listed.length ? String(from + most) : ''
    const page = listed.slice(from, from + most)
    return { ok: true, messages: page, has_more: next !== '', response_metadata: { next_cursor: next } }
  }

  async #result({ method, fields }: Call): Promise<unknown> {
    const { channel = '', text = '', ts = '' } = fields
    const of = (one: Message) => one.channel === channel && Number(one.ts) >= Number(fields.oldest ?? 0)
    switch (method) {
      case 'auth.test':
        return { ok: true, team_id: 'T1', team: 'Example', user_id: BOT, user: 'svc', bot_id: 'B0BOT' }
      case 'apps.connections.open':
        return { ok: true, url: `${this.origin.replace('http', 'ws')}/link?ticket=${++this.#n}` }
      case 'chat.postMessage': {
        if (channel === 'CNONE') return { ok: false, error: 'channel_not_found' }
        if (channel === 'COUT') return { ok: false, error: 'not_in_channel' }
        const metadata = fields.metadata === undefined ? {} : { metadata: JSON.parse(fields.metadata) as unknown }
        const thread = fields.thread_ts === undefined ? {} : { thread_ts: fields.thread_ts }
        // Beyond 40,000 characters Slack cuts.
        const message = { ts: this.ts(), channel, text: text.slice(0, 40_000), ...thread, ...metadata }
        this.messages.push(message)
        return { ok: true, channel, ts: message.ts }
      }
      case 'chat.update': {
        const message = this.messages.find(one => one.ts === ts && one.channel === channel)
        if (!message) return { ok: false, error: 'message_not_found' }
        message.text = text
        return { ok: true, channel, ts }
      }
      case 'chat.delete': {
        const at = this.messages.findIndex(one => one.ts === ts && one.channel === channel)
        if (at === -1) return { ok: false, error: 'message_not_found' }
        this.messages.splice(at, 1)
        return { ok: true }
      }
      case 'conversations.history':
        return this.#page(fields, one => of(one) && !one.thread_ts)
      case 'conversations.replies':
        return this.#page(fields, one => one.ts === ts || (of(one) && one.thread_ts === ts))
      case 'conversations.open':
        return { ok: true, channel: { id: `D${String(fields.users).slice(1)}` } }
      case 'users.conversations':
        return fields.cursor === 'more'
          ? { ok: true, channels: [{ id: 'C2', name: 'deploys' }], response_metadata: { next_cursor: '' } }
          : { ok: true, channels: [{ id: 'C1', name: 'ops' }], response_metadata: { next_cursor: 'more' } }
      case 'users.info':
        return { ok: true, user: { id: fields.user, name: String(fields.user).slice(2).toLowerCase() } }
      default:
        return { ok: false, error: 'unknown_method' }
    }
  }
}
