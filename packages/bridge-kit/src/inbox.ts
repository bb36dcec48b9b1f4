import { fileMissing } from './download.js'
import { RpcError } from './rpc.js'
import { clip, split } from './text.js'
import { type Backoff, backoffMs, type Timing } from './timing.js'
import { type Attachment, type InboundEvent, IngestRefused, type IngestResult } from './types.js'

/** Limit of events that wait for the daemon, per instance. */
const MOST_WAITING = 1000
/** Concurrent requests to the daemon over all conversations; it handles 64 of one process. */
const AT_ONCE = 16
/** How long a key is remembered: platforms repeat within seconds, and the daemon deduplicates for a day. */
const REMEMBERED_MS = 5 * 60_000
const MOST_REMEMBERED = 10_000
/** Attempts for an event when the daemon fails with an unknown reason. */
const MOST_FAILURES = 8

/** Error reasons after which an event is retried until it is accepted. */
const NOT_NOW = new Set(['bridge_not_accepting', 'too_many_requests', 'rate_limited', 'not_initialized'])
/** Permanent error reasons. */
const NEVER = new Set([
  'bridge_not_found',
  'bridge_event_invalid',
  'invalid_params',
  'capability_denied',
  'method_not_found',
  'method_unavailable',
])

/** Characters of a text and of a name that the daemon accepts. */
const LONGEST_TEXT = 1024 * 1024
const LONGEST_NAME = 512
const CUT = '… (cut)'
/** A longer line would end the process; the margin is for the rest of the request. */
const LONGEST_EVENT = 8 * 1024 * 1024 - 4096
const MOST_FILES = 10

const BACKOFF: Backoff = { baseMs: 200, capMs: 15_000 }

interface Known {
  readonly result: Promise<IngestResult>
  readonly at: number
}

/** Hands the events of one instance to the daemon: each once, and in order within a conversation. */
export class Inbox {
  readonly #conversations = new Map<string, Promise<unknown>>()
  readonly #known = new Map<string, Known>()
  #waiting = 0
  #running = 0
  readonly #free: (() => void)[] = []

  constructor(
    private readonly send: (event: InboundEvent) => Promise<unknown>,
    private readonly timing: Timing,
    private readonly signal: AbortSignal,
  ) {}

  /** See `Host.ingest`. */
  ingest(event: InboundEvent): Promise<IngestResult> {
    this.#forget()
    const before = this.#known.get(event.idempotency_key)
    if (before) return before.result
    if (this.#waiting >= MOST_WAITING)
      return Promise.reject(new IngestRefused('too_many_requests', `${MOST_WAITING} events wait for the daemon`))
    this.#waiting++
    const result = this.#inTurn(event).finally(() => {
      this.#waiting--
    })
    this.#known.set(event.idempotency_key, { result, at: this.timing.now() })
    // After a failure the event may be repeated.
    result.catch(() => this.#known.delete(event.idempotency_key))
    return result
  }

  #inTurn(event: InboundEvent): Promise<IngestResult> {
    const conversation = JSON.stringify([event.group_id, event.peer_id, event.thread_id])
    const before = this.#conversations.get(conversation) ?? Promise.resolve()
    const turn = before.then(() => this.untilTaken(() => this.send(bounded(event)))) as Promise<IngestResult>
    const done = turn.catch(() => {})
    this.#conversations.set(conversation, done)
    void done.then(() => {
      if (this.#conversations.get(conversation) === done) this.#conversations.delete(conversation)
    })
    return turn
  }

  /** Retries a request until the daemon accepts it. Rejects with {@link IngestRefused}. */
  async untilTaken(ask: () => Promise<unknown>): Promise<unknown> {
    let failures = 0
    for (let attempt = 1; ; attempt++) {
      if (this.signal.aborted) throw new IngestRefused('bridge_closed', 'the instance is closed')
      try {
        return await this.#limited(ask)
      } catch (error) {
        const reason = error instanceof RpcError ? error.reason : ''
        if (!(error instanceof RpcError)) throw new IngestRefused('connection_closed', String(error))
        if (NEVER.has(reason)) throw new IngestRefused(reason, error.message)
        if (!NOT_NOW.has(reason) && ++failures >= MOST_FAILURES) throw new IngestRefused(reason, error.message)
        const ms = error.retryAfterMs ?? backoffMs(attempt, this.timing, BACKOFF)
        await this.timing.sleep(ms, this.signal).catch(() => {})
      }
    }
  }

  async #limited<T>(call: () => Promise<T>): Promise<T> {
    if (this.#running >= AT_ONCE) await new Promise<void>(resolve => this.#free.push(resolve))
    this.#running++
    try {
      return await call()
    } finally {
      this.#running--
      this.#free.shift()?.()
    }
  }

  /** Keys are in insertion order, the oldest first. */
  #forget(): void {
    const now = this.timing.now()
    for (const [key, { at }] of this.#known) {
      if (now - at < REMEMBERED_MS && this.#known.size < MOST_REMEMBERED) return
      this.#known.delete(key)
    }
  }
}

/** The event within the daemon's limits; longer text is cut, so that the rest arrives. */
function bounded(event: InboundEvent): InboundEvent {
  const { attachments = [], ...rest } = event
  const short = withText(rest)
  let left = LONGEST_EVENT - bytesOf(short)
  const [kept, missing]: [Attachment[], string[]] = [[], []]
  for (const file of attachments) {
    const size = bytesOf(file) + 1
    // Reserves room for the notes about files that are dropped later.
    const why =
      kept.length >= MOST_FILES
        ? `a message has at most ${MOST_FILES} files`
        : size + 2048 * attachments.length > left
          ? 'with it the message would be longer than 8 MiB'
          : undefined
    if (why === undefined) {
      left -= size
      kept.push(file)
    } else missing.push(fileMissing(file.name, why))
  }
  const files = attachments.length === 0 ? {} : { attachments: kept }
  if (missing.length === 0) return { ...short, ...files }
  return { ...withText({ ...short, text: [event.text, ...missing].filter(Boolean).join('\n') }), ...files }
}

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** The event with its texts cut to the daemon's limits. */
function withText(event: InboundEvent): InboundEvent {
  const { text, sender } = event
  const name = (value: string | undefined) => clip(value ?? '', LONGEST_NAME) || undefined
  const { username, display_name: display, ...who } = sender
  const names = { username: name(username), display_name: name(display) }
  const kept = Object.fromEntries(Object.entries(names).filter(([, value]) => value !== undefined))
  if (text === undefined || text.length <= LONGEST_TEXT) return { ...event, sender: { ...who, ...kept } }
  const [head = ''] = split(clip(text, LONGEST_TEXT), LONGEST_TEXT - CUT.length, 'utf16')
  return { ...event, text: `${head}${CUT}`, sender: { ...who, ...kept } }
}
