import type { IncomingMessage } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { exchange, readText, type Target } from '../client/exchange.js'
import { type ServerEvent, SseParser } from '../client/sse.js'

export type { ServerEvent } from '../client/sse.js'

/** Milliseconds that {@link EventReader.next} waits for an event. */
const NEXT_MS = 30_000

export interface StreamOptions {
  /** Resumes the stream after the event of this id. */
  readonly lastEventId?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Wraps waits: under a virtual clock, time has to pass meanwhile. */
type Waiting = <T>(work: Promise<T>) => Promise<T>

/**
 * The server-sent events of one response, in order and complete: early events are kept until they are read. `closing` and `error`
 * are ordinary events; an interrupted connection ends the stream.
 */
export class EventReader implements AsyncIterable<ServerEvent> {
  readonly #kept: ServerEvent[] = []
  /** Names of all events so far, for the error message of a missing event. */
  readonly #names: string[] = []
  #lastEventId: string | undefined
  #over = false
  #wake: () => void = () => {}

  private constructor(
    private readonly target: Target,
    private readonly url: string,
    private readonly options: StreamOptions,
    private readonly waiting: Waiting,
    private readonly response: IncomingMessage,
  ) {
    this.#lastEventId = options.lastEventId
    void this.#read()
  }

  /** Opens the stream. @throws Error with status and body when the status is not 200 */
  static async open(
    target: Target,
    url: string,
    options: StreamOptions = {},
    waiting: Waiting = work => work,
  ): Promise<EventReader> {
    const { lastEventId, headers } = options
    const behind = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    const sent = { ...headers, accept: 'text/event-stream', ...behind }
    const response = await waiting(exchange(target, { method: 'GET', path: url, headers: sent }))
    if (response.statusCode !== 200)
      throw new Error(`GET ${url} is answered with ${response.statusCode}: ${await waiting(readText(response))}`)
    return new EventReader(target, url, options, waiting, response)
  }

  /** Id of the last event that was returned. */
  get lastEventId(): string | undefined {
    return this.#lastEventId
  }

  /**
   * The next event, or the next of this name; events before it are skipped.
   * @throws Error when the stream ends first, or after 30 s without an event
   */
  async next(event?: string): Promise<ServerEvent> {
    const end = performance.now() + NEXT_MS
    for (;;) {
      const found = await this.#shift(end)
      if (found === undefined) throw new Error(`${this.url} ${this.#over ? 'ended' : 'waits'} ${this.#without(event)}`)
      if (event === undefined || found.event === event) return found
    }
  }

  /** Events until the stream ends or is closed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ServerEvent> {
    for (let found = await this.#shift(); found !== undefined; found = await this.#shift()) yield found
  }

  /** Closes this connection and resumes the stream in a new one after the last returned event, as a client does. */
  async resume(): Promise<EventReader> {
    this.close()
    const from = this.#lastEventId === undefined ? {} : { lastEventId: this.#lastEventId }
    return EventReader.open(this.target, this.url, { ...this.options, ...from }, this.waiting)
  }

  close(): void {
    this.#kept.length = 0
    this.#over = true
    this.response.destroy()
    this.#wake()
  }

  async #shift(end = Number.POSITIVE_INFINITY): Promise<ServerEvent | undefined> {
    while (this.#kept.length === 0 && !this.#over && performance.now() < end) {
      let timer: NodeJS.Timeout | undefined
      const arrival = new Promise<void>(resolve => {
        this.#wake = resolve
        if (end !== Number.POSITIVE_INFINITY) timer = setTimeout(resolve, Math.max(0, end - performance.now()))
      })
      await this.waiting(arrival).finally(() => clearTimeout(timer))
    }
    const found = this.#kept.shift()
    this.#lastEventId = found?.id ?? this.#lastEventId
    return found
  }

  async #read(): Promise<void> {
    const decoder = new StringDecoder('utf8')
    const parser = new SseParser()
    try {
      for await (const chunk of this.response) {
        const events = this.#over ? [] : parser.push(decoder.write(chunk))
        this.#names.push(...events.map(labelOf))
        this.#kept.push(...events)
        this.#wake()
      }
    } catch {
      // An interrupted connection is a normal end of a stream.
    }
    this.#over = true
    this.#wake()
  }

  #without(event: string | undefined): string {
    const received = this.#names.length === 0 ? 'none came' : `${this.#names.slice(-10).join(', ')} came`
    return `without ${event === undefined ? 'another event' : `the event ${event}`}; ${received}`
  }
}

/** An event in a message; an error with its data. */
const labelOf = ({ event = 'message', data }: ServerEvent) =>
  event === 'error' ? `error ${JSON.stringify(data)}` : event
