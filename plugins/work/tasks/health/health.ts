import type { SessionInfo } from '../../sessions/api.js'
import type { Recovery } from '../claims/recovery.js'

/** Maximum number of unresponsive sessions that are remembered. */
const REMEMBERED = 1024

/** Recovers the runs of sessions whose processes are unresponsive or have ended. */
export class Health {
  readonly #frozen = new Set<string>()

  constructor(
    private readonly recovery: Recovery,
    /** Consecutive failed health checks after which a run needs attention; 0: never. */
    private readonly threshold: () => number,
  ) {}

  /**
   * The process of a session is unresponsive. Its runs need attention once the threshold is reached or the process is killed.
   * With a threshold of 0, the session keeps them until their leases expire.
   */
  async checkFailed({ id }: SessionInfo, failures: number, isLast: boolean): Promise<void> {
    if (isLast) this.#remember(id)
    const threshold = this.threshold()
    if (threshold === 0 || (failures < threshold && !isLast)) return
    const reason = `session ${id} is unresponsive: it failed ${failures} health checks in a row`
    await this.recovery.sessionUnhealthy(id, reason)
  }

  /** A process that was killed because it was unresponsive did not exit unexpectedly. */
  async sessionStopped(session: SessionInfo): Promise<void> {
    if (this.threshold() === 0 && this.#frozen.has(session.id)) return
    await this.recovery.sessionStopped(session)
  }

  /** Whether the process of the session was killed because it was unresponsive. */
  hasFrozen(session: string | null): boolean {
    return session !== null && this.#frozen.has(session)
  }

  #remember(id: string): void {
    this.#frozen.add(id)
    const [oldest] = this.#frozen
    if (oldest !== undefined && this.#frozen.size > REMEMBERED) this.#frozen.delete(oldest)
  }
}
