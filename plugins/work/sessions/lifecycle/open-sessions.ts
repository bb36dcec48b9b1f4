import type { SessionsContext } from '../context.js'
import type { IdleProcesses } from './idle-processes.js'
import { LiveSession } from './live-session.js'

/** The sessions in memory, one object per session. */
export class OpenSessions {
  readonly #opening = new Map<string, Promise<LiveSession>>()
  readonly #live = new Map<string, LiveSession>()

  /** @param toolEnded called when a tool call of a running turn has its result */
  constructor(
    private readonly context: SessionsContext,
    private readonly toolEnded: (id: string) => void,
    private readonly idle: Pick<IdleProcesses, 'works' | 'rests'>,
  ) {}

  get all(): LiveSession[] {
    return [...this.#live.values()]
  }

  peek(id: string): LiveSession | undefined {
    return this.#live.get(id)
  }

  /** Whether the session is in memory, or is being opened. */
  has(id: string): boolean {
    return this.#opening.has(id)
  }

  /** Opens a session unless it is in memory. The caller has to make sure that it exists. */
  open(id: string): Promise<LiveSession> {
    const known = this.#opening.get(id)
    if (known) return known
    const gone = () => {
      this.#live.delete(id)
      this.#opening.delete(id)
      this.idle.works(id)
      this.context.health.note(id)
    }
    const { idle } = this
    const listener = {
      gone,
      toolEnded: () => this.toolEnded(id),
      works: () => idle.works(id),
      rests: () => idle.rests(id),
    }
    const opening = LiveSession.open(id, this.context, listener).then(
      session => {
        this.#live.set(id, session)
        return session
      },
      error => {
        this.#opening.delete(id)
        throw error
      },
    )
    this.#opening.set(id, opening)
    return opening
  }
}
