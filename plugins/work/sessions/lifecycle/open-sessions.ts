import type { SessionsContext } from '../context.js'
import type { IdleProcesses } from './idle-processes.js'
import { LiveSession } from './live-session.js'

/** The sessions that are in memory, each once. */
export class OpenSessions {
  readonly #opening = new Map<string, Promise<LiveSession>>()
  readonly #live = new Map<string, LiveSession>()

  /** @param toolEnded told when a tool call of a running turn has its result */
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

  /** In memory, or about to be. */
  has(id: string): boolean {
    return this.#opening.has(id)
  }

  /** Opens it when it is not there; whether there is such a session is the caller's to know. */
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
