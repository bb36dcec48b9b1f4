import { Feed, follow, positionOf } from '../../../../kernel/kit/feed.js'
import { type Frame, type Timer, turn } from '../../../../kernel/plugin.js'
import type { LogEvent, LogsQuery, LogsReply, LogsStreamQuery } from '../../../../schemas/daemon/logs.js'
import { durationMs } from '../../../../schemas/duration.js'
import type { StoredEvent } from '../../../platform/events/api.js'
import type { K } from '../needs.js'
import { isFailure, logEventOf } from './wire.js'

const DEFAULT_LIMIT = 200
/** Positions read at once, and the maximum per request. */
const PAGE = 500
const MOST_EXAMINED = 100_000
/** Milliseconds from an appended event to the wake of streams, in which the event usually becomes durable. */
const SOON_MS = 20
/** Maximum number of waits for an event, because its transaction may be rolled back. */
const MOST_WAITS = 100

/** Wire form of an event that matches a query, else undefined. */
type Wanted = (event: StoredEvent) => LogEvent | undefined

/** Filtered events of the daemon, as a list and as a stream. Both read the event log; nothing extra is stored. */
export class Logs {
  readonly #feed = new Feed<never>()
  #readers = 0
  #newest = 0
  #waits = 0
  #timer: Timer | undefined

  constructor(private readonly kernel: K) {
    kernel.scope.defer('log streams', () => this.#timer?.cancel())
  }

  /** The newest matching events, oldest first; with `after_seq` the oldest after it. @throws Fault `workspace_not_found` */
  async list(query: LogsQuery): Promise<LogsReply> {
    const wanted = await this.#wanted(query)
    const limit = query.limit ?? DEFAULT_LIMIT
    return query.after_seq === undefined
      ? this.#newestOf(query, wanted, limit)
      : this.#behind(query.after_seq, query, wanted, limit)
  }

  /** Handles an appended event, whose transaction is still open. */
  happened(seq: number): void {
    if (this.#readers === 0) return
    this.#newest = Math.max(this.#newest, seq)
    this.#waits = 0
    this.#wakeSoon()
  }

  /** Live events, starting at the reader's last position, at `after_seq`, with `replay` at the newest ones, else now. */
  async stream(
    query: LogsStreamQuery,
    lastEventId: string | undefined,
  ): Promise<(signal: AbortSignal) => AsyncGenerator<Frame>> {
    // Validated before the stream begins.
    const wanted = await this.#wanted(query)
    return signal => this.#frames(query, wanted, positionOf(lastEventId) ?? query.after_seq, signal)
  }

  async *#frames(
    query: LogsStreamQuery,
    wanted: Wanted,
    was: number | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<Frame> {
    const { events } = this.kernel.needs
    this.#readers++
    try {
      let at = was ?? events.last()
      if (was === undefined && query.replay === true) {
        const { events: newest, last_seq: last } = await this.#newestOf(query, wanted, query.limit ?? DEFAULT_LIMIT)
        for (const event of newest) yield frameOf(event)
        at = last
      }
      let position = at
      let first = at + 1
      const source = {
        last: () => events.last(),
        read: async (after: number) => {
          const [oldest] = after < events.last() ? await events.list({ after, limit: 1 }) : []
          first = oldest?.seq ?? after + 1
          if (first > after + 1) return undefined
          const page = await events.list({ after, limit: PAGE })
          return { at: page.at(-1)?.seq ?? after, entries: page }
        },
        snapshot: () => {
          // Events follow the gap immediately.
          this.#feed.wake()
          return { at: first > position + 1 ? first - 1 : events.last(), snapshot: undefined }
        },
        next: () => this.#feed.next(),
      }
      for await (const item of follow(source, at, signal)) {
        if ('entries' in item) {
          for (const event of item.entries.flatMap(entry => wanted(entry) ?? [])) yield frameOf(event)
          if (item.entries.length === PAGE) await turn()
        } else yield missed(item.reset === 'ahead' ? 'reset' : 'gap', position, item.at)
        position = item.at
      }
    } finally {
      this.#readers--
    }
  }

  /** Searches the log backwards from its end. */
  async #newestOf(query: LogsQuery, wanted: Wanted, limit: number): Promise<LogsReply> {
    const { events } = this.kernel.needs
    const since = this.#since(query)
    const last = events.last()
    const found: LogEvent[] = []
    let upper = last
    while (upper > 0 && found.length < limit && last - upper < MOST_EXAMINED) {
      const lower = Math.max(0, upper - PAGE)
      const page = (await events.list({ ...named(query), after: lower, limit: PAGE })).filter(({ seq }) => seq <= upper)
      for (const event of page.toReversed()) {
        const wire = found.length < limit ? wanted(event) : undefined
        if (wire) found.push(wire)
      }
      upper = (page[0]?.at ?? since) < since ? 0 : lower
      await turn()
    }
    return { events: found.reverse(), last_seq: last, complete: upper === 0 || found.length === limit }
  }

  /** Searches the log forwards from a position, including its archive. */
  async #behind(after: number, query: LogsQuery, wanted: Wanted, limit: number): Promise<LogsReply> {
    const { events } = this.kernel.needs
    const found: LogEvent[] = []
    let at = after
    let examined = 0
    for (; examined < MOST_EXAMINED; examined += PAGE) {
      const page = await events.list({ ...named(query), after: at, limit: PAGE })
      for (const event of page) {
        const wire = wanted(event)
        if (wire) found.push(wire)
        at = event.seq
        if (found.length === limit) return { events: found, last_seq: at, complete: true }
      }
      if (page.length < PAGE) return { events: found, last_seq: Math.max(at, events.last()), complete: true }
      await turn()
    }
    return { events: found, last_seq: at, complete: false }
  }

  async #wanted(query: LogsQuery): Promise<Wanted> {
    const { needs, redact } = this.kernel
    const { workspace_id: reference, type, actor, error_only: failures } = query
    const workspace = reference === undefined ? undefined : (await needs.workspaces.find(reference)).id
    const since = this.#since(query)
    const start = type?.endsWith('*') ? type.slice(0, -1) : undefined
    const exact = [
      ['workspace_id', workspace],
      ['type', start === undefined ? type : undefined],
      ['run_id', query.run],
      ...(['session_id', 'agent_name', 'actor_kind', 'actor_id', 'provider', 'outcome', 'component'] as const).map(
        name => [name, query[name]] as const,
      ),
    ] as const
    return event => {
      if (event.at < since || (failures && !isFailure(event))) return undefined
      if (start !== undefined && !event.name.startsWith(start)) return undefined
      if (actor !== undefined && event.actor.id !== actor && `${event.actor.kind}/${event.actor.id}` !== actor)
        return undefined
      const wire = logEventOf(event, id => needs.sessions.current?.get(id))
      if (exact.some(([name, value]) => value !== undefined && wire[name] !== value)) return undefined
      // Redacts secrets that were registered after the event was stored.
      return redact.value(wire)
    }
  }

  #since({ since }: LogsQuery): number {
    if (since === undefined) return Number.NEGATIVE_INFINITY
    const ago = durationMs(since)
    return ago === undefined ? Date.parse(since) : this.kernel.clock.now() - ago
  }

  #wakeSoon(): void {
    this.#timer ??= this.kernel.clock.timeout(SOON_MS, () => {
      this.#timer = undefined
      this.#feed.wake()
      if (this.kernel.needs.events.last() < this.#newest && this.#waits++ < MOST_WAITS) this.#wakeSoon()
    })
  }
}

/** The part of the filter that the log itself supports. */
const named = ({ type }: LogsQuery) => (type === undefined || type.endsWith('*') ? {} : { name: type })
const frameOf = (event: LogEvent): Frame => ({ id: `${event.seq}`, event: event.type, data: event })
const missed = (reason: 'gap' | 'reset', position: number, at: number): Frame => ({
  id: `${at}`,
  event: reason,
  data: { reason, from: Math.min(position + 1, at), to: at },
})
