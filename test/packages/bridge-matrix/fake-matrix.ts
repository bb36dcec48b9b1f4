import { type Answer, HttpEndpoint, type Received } from '../../harness/http-endpoint.js'

export const BOT = '@helper:example.org'
export const ANN = '@ann:example.org'

type Content = Readonly<Record<string, unknown>>

export interface Kept {
  readonly room: string
  readonly event: {
    readonly type: string
    readonly event_id: string
    readonly sender: string
    readonly state_key?: string
    readonly origin_server_ts: number
    readonly content: Content
    readonly unsigned?: Content
  }
}

interface Room {
  readonly members: Set<string>
  readonly state: Map<string, Content>
}

/** The client-server API for the account of a bot, after the specification: rooms, a stream of events, transactions. */
export class FakeMatrix {
  endpoint!: HttpEndpoint
  readonly rooms = new Map<string, Room>()
  readonly log: Kept[] = []
  /** Events that were sent, by transaction: a repetition gets the same. */
  readonly transactions = new Map<string, string>()
  readonly #invites: { readonly room: string; readonly from: string; readonly at: number }[] = []
  #wake: () => void = () => {}
  token = 'syt_token'
  /** Files by server and id. */
  readonly files = new Map<string, string>()
  mediaPath = '/_matrix/client/v1/media/download/'
  /** Answers in place of the API, before it has done anything. */
  instead: (request: Received) => Answer | undefined = () => undefined
  /** Answers in place of the API, after it has done what it was asked. */
  afterwards: (request: Received) => Answer | undefined = () => undefined

  static async start(): Promise<FakeMatrix> {
    const fake = new FakeMatrix()
    fake.endpoint = await HttpEndpoint.start(async request => {
      const answer = fake.instead(request) ?? (await fake.#answer(request))
      return fake.afterwards(request) ?? answer
    })
    return fake
  }

  asked(method: string, path: RegExp): Received[] {
    return this.endpoint.received.filter(one => one.method === method && path.test(decodeURIComponent(one.path)))
  }

  room(
    id: string,
    members: readonly string[],
    more: { readonly encrypted?: boolean; readonly name?: string } = {},
  ): void {
    const state = new Map<string, Content>()
    if (more.encrypted) state.set('m.room.encryption', { algorithm: 'm.megolm.v1.aes-sha2' })
    if (more.name) state.set('m.room.name', { name: more.name })
    this.rooms.set(id, { members: new Set(members), state })
  }

  invite(room: string, from: string): void {
    this.#invites.push({ room, from, at: this.log.length })
    // An invite has a place in the stream of its own.
    this.#put({ room: '', event: { type: 'invite', event_id: '', sender: from, origin_server_ts: 0, content: {} } })
  }

  /** Says a text, or another content, in a room. Returns the id of the event. */
  say(room: string, sender: string, content: string | Content, type = 'm.room.message', more: object = {}): string {
    const body = typeof content === 'string' ? { msgtype: 'm.text', body: content } : content
    const id = `$event${this.log.length}`
    const event = { type, event_id: id, sender, origin_server_ts: Date.now(), content: body, ...more }
    this.#put({ room, event })
    return id
  }

  /** What the bot has sent to a room, the contents in their order. */
  said(room: string): Content[] {
    return this.log
      .filter(one => one.room === room && one.event.sender === BOT && one.event.type === 'm.room.message')
      .map(({ event }) => event.content)
  }

  /** Resolves when the bot has sent something to a room. */
  async heardIn(room: string): Promise<void> {
    while (this.said(room).length === 0) await new Promise<void>(resolve => this.#heard.push(resolve))
  }
  readonly #heard: (() => void)[] = []

  #put(kept: Kept): void {
    this.log.push(kept)
    this.#wake()
    for (const resolve of this.#heard.splice(0)) resolve()
  }

  #join(id: string): Answer {
    const room = this.rooms.get(id)
    if (!room) return { status: 404, body: { errcode: 'M_NOT_FOUND', error: 'no such room' } }
    if (!room.members.has(BOT)) {
      room.members.add(BOT)
      const state = { state_key: BOT, unsigned: { prev_content: { membership: 'invite' } } }
      this.say(id, BOT, { membership: 'join' }, 'm.room.member', state)
    }
    return { body: { room_id: id } }
  }

  async #answer({ method, path, body, headers }: Received): Promise<Answer> {
    if (headers.authorization !== `Bearer ${this.token}`)
      return { status: 401, body: { errcode: 'M_UNKNOWN_TOKEN', error: 'unknown token', soft_logout: false } }
    const url = new URL(path, 'http://x')
    if (url.pathname.startsWith(this.mediaPath)) {
      const file = this.files.get(url.pathname.slice(this.mediaPath.length))
      return file === undefined ? { status: 404, body: { errcode: 'M_NOT_FOUND' } } : { body: file }
    }
    const [first = '', id = '', ...rest] = url.pathname
      .replace('/_matrix/client/v3/', '')
      .split('/')
      .map(decodeURIComponent)
    if (first === 'account') return { body: { user_id: BOT, device_id: 'DEVICE' } }
    if (first === 'profile') return { body: { displayname: 'Helper Bot' } }
    if (first === 'sync') return this.#sync(url.searchParams)
    if (first === 'joined_rooms')
      return {
        body: { joined_rooms: [...this.rooms].filter(([, { members }]) => members.has(BOT)).map(([room]) => room) },
      }
    if (first === 'join') return this.#join(id.replace(/^#ops:.*/, '!ops:example.org'))
    if (first !== 'rooms') return { status: 404, body: { errcode: 'M_UNRECOGNIZED' } }
    if (rest[0] === 'join') return this.#join(id)
    const room = this.rooms.get(id)
    if (!room?.members.has(BOT)) return { status: 403, body: { errcode: 'M_FORBIDDEN', error: 'not in the room' } }
    if (rest[0] === 'joined_members')
      return { body: { joined: Object.fromEntries([...room.members].map(user => [user, {}])) } }
    if (rest[0] === 'state') {
      const state = room.state.get(rest[1] ?? '')
      return state ? { body: state } : { status: 404, body: { errcode: 'M_NOT_FOUND' } }
    }
    if (rest[0] === 'event') {
      const found = this.log.find(one => one.room === id && one.event.event_id === rest[1])
      return found ? { body: found.event } : { status: 404, body: { errcode: 'M_NOT_FOUND' } }
    }
    if (rest[0] === 'messages') return this.#messages(id, url.searchParams)
    if (method === 'PUT') return { body: { event_id: this.#send(id, rest, JSON.parse(body)) } }
    return { status: 404, body: { errcode: 'M_UNRECOGNIZED' } }
  }

  #send(room: string, [kind = '', what = '', transaction = '']: readonly string[], content: Content): string {
    const known = this.transactions.get(transaction)
    if (known !== undefined) return known
    const type = kind === 'redact' ? 'm.room.redaction' : what
    const said = kind === 'redact' ? { ...content, redacts: what } : content
    const id = this.say(room, BOT, said, type, { unsigned: { transaction_id: transaction } })
    this.transactions.set(transaction, id)
    return id
  }

  async #sync(query: URLSearchParams): Promise<Answer> {
    const since = query.has('since') ? Number(query.get('since')?.slice(1)) : undefined
    if (Number.isNaN(since)) return { status: 400, body: { errcode: 'M_INVALID_PARAM', error: 'unknown since' } }
    if (since === this.log.length && Number(query.get('timeout')) > 0)
      await new Promise<void>(resolve => {
        // A request that was given up must not keep the process.
        const timer = setTimeout(resolve, Number(query.get('timeout'))).unref()
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    const most = JSON.parse(query.get('filter') ?? '{}').room.timeline.limit
    const join: Record<string, unknown> = {}
    for (const [id, { members }] of this.rooms) {
      const all = this.log.map((kept, at) => ({ ...kept, at })).filter(one => one.room === id && one.at >= (since ?? 0))
      const events = all.slice(-most)
      if (!members.has(BOT) || events.length === 0) continue
      const limited = all.length > events.length
      join[id] = {
        timeline: { limited, prev_batch: `s${events[0]?.at}`, events: events.map(({ event }) => event) },
        state: { events: [] },
      }
    }
    const invite = Object.fromEntries(
      this.#invites
        .filter(({ room, at }) => at >= (since ?? 0) && !this.rooms.get(room)?.members.has(BOT))
        .map(({ room, from }) => {
          const own = { type: 'm.room.member', state_key: BOT, sender: from, content: { membership: 'invite' } }
          return [room, { invite_state: { events: [own] } }]
        }),
    )
    return { body: { next_batch: `s${this.log.length}`, rooms: { join, invite } } }
  }

  #messages(room: string, query: URLSearchParams): Answer {
    const at = (name: string, fallback: number) => (query.has(name) ? Number(query.get(name)?.slice(1)) : fallback)
    const [from, to, limit] = [at('from', this.log.length), at('to', 0), Number(query.get('limit'))]
    const { senders, types } = JSON.parse(query.get('filter') ?? '{}')
    const all = this.log
      .map((kept, index) => ({ ...kept, index }))
      .filter(one => one.room === room && one.index >= to && one.index < from)
      .filter(({ event }) => (senders?.includes(event.sender) ?? true) && (types?.includes(event.type) ?? true))
      .reverse()
    const page = all.slice(0, limit)
    const more = all.length > page.length ? { end: `s${page.at(-1)?.index}` } : {}
    return { body: { chunk: page.map(({ event }) => event), start: `s${from}`, ...more } }
  }
}
