import { messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import type { HookEvent } from '../../../schemas/hooks.js'
import type { Recorded, Sessions } from '../../sessions/api.js'
import { AsyncQueue } from './async-queue.js'

/** Sessions whose pieces are told at the same time. */
const WORKERS = 4
const EVENT: HookEvent = 'message.delta'

type Piece = Pick<Recorded, 'sessionId' | 'turnId' | 'content'>

/** What telling of pieces needs of the plugin. */
export interface DeltaHost {
  wanted(event: HookEvent, sessionId: string): boolean
  /** Resolves when the hooks have run. */
  deliver(event: HookEvent, piece: Piece): Promise<void>
}

/**
 * Tells hooks of the pieces of messages, read from the journal: a hook that is slower than its agent falls behind, and neither
 * holds the agent up nor misses a piece. Of one session each piece is told after the one before.
 */
export class Deltas {
  readonly #queue = new AsyncQueue(WORKERS, Number.POSITIVE_INFINITY)
  /** The newest piece that is known of, by session, of those that are read. */
  readonly #newest = new Map<string, number>()

  constructor(
    private readonly kernel: PluginKernel<{ sessions: typeof Sessions }>,
    private readonly host: DeltaHost,
  ) {}

  noticed({ sessionId, sequence = 0 }: Recorded): void {
    const isRead = this.#newest.has(sessionId)
    if (!isRead && !this.host.wanted(EVENT, sessionId)) return
    this.#newest.set(sessionId, sequence)
    if (!isRead && !this.#queue.add(() => this.#follow(sessionId, sequence))) this.#newest.delete(sessionId)
  }

  /** Takes no more; resolves when what was taken has been told. */
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
        // A journal that was closed meanwhile has no more of it.
        if (page.next <= next) return
        next = page.next
      }
    } catch (error) {
      log.warn('pieces of messages were not told to hooks', { session: sessionId, error: messageOf(error) })
    } finally {
      this.#newest.delete(sessionId)
    }
  }
}
