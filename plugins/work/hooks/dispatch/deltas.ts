import { messageOf } from '../../../../kernel/plugin.js'
import type { HookEvent } from '../../../../schemas/hooks.js'
import type { Recorded } from '../../sessions/api.js'
import type { K } from '../needs.js'
import { AsyncQueue } from './async-queue.js'

/** Sessions processed concurrently. */
const WORKERS = 4
const EVENT: HookEvent = 'message.delta'

type Piece = Pick<Recorded, 'sessionId' | 'turnId' | 'content'>

/** The plugin as the delta delivery sees it. */
export interface DeltaHost {
  wanted(event: HookEvent, sessionId: string): boolean
  /** Resolves when the hooks have run. */
  deliver(event: HookEvent, piece: Piece): Promise<void>
}

/**
 * Delivers message deltas to hooks, reading them from the journal. A hook slower than its agent falls behind, but neither
 * blocks the agent nor misses a delta. The deltas of a session are delivered in order.
 */
export class Deltas {
  readonly #queue = new AsyncQueue(WORKERS, Number.POSITIVE_INFINITY)
  /** Sequence of the newest known delta, by session being read. */
  readonly #newest = new Map<string, number>()

  constructor(
    private readonly kernel: K,
    private readonly host: DeltaHost,
  ) {}

  noticed({ sessionId, sequence = 0 }: Recorded): void {
    const isRead = this.#newest.has(sessionId)
    if (!isRead && !this.host.wanted(EVENT, sessionId)) return
    this.#newest.set(sessionId, sequence)
    if (!isRead && !this.#queue.add(() => this.#follow(sessionId, sequence))) this.#newest.delete(sessionId)
  }

  /** Accepts no more deltas; resolves when all accepted ones are delivered. */
  drain(): Promise<void> {
    return this.#queue.drain()
  }

  async #follow(sessionId: string, from: number): Promise<void> {
    const { log, needs, scope } = this.kernel
    try {
      for (let next = from; next <= (this.#newest.get(sessionId) ?? 0) && !scope.signal.aborted; ) {
        const page = await needs.sessions.points.journal(sessionId, next, scope.signal)
        for (const { type, turnId, content } of page.events) {
          if (!this.host.wanted(EVENT, sessionId)) return
          if (type === 'agent_message') await this.host.deliver(EVENT, { sessionId, turnId, content })
        }
        // The journal was closed in the meantime.
        if (page.next <= next) return
        next = page.next
      }
    } catch (error) {
      log.warn('message deltas were not delivered to hooks', { session: sessionId, error: messageOf(error) })
    } finally {
      this.#newest.delete(sessionId)
    }
  }
}
