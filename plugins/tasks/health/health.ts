import type { SessionInfo } from '../../sessions/api.js'
import type { Recovery } from '../claims/recovery.js'

/** Sessions that are remembered to have stood still. */
const REMEMBERED = 1024

/** What becomes of the runs of sessions whose processes stand still, or have ended. */
export class Health {
  readonly #frozen = new Set<string>()

  constructor(
    private readonly recovery: Recovery,
    /** Checks that fail in a row until a run needs attention; 0: none does for that. */
    private readonly threshold: () => number,
  ) {}

  /**
   * The process of a session stands still. Its runs need attention when that was seen often enough, or when it is ended for
   * it; with a threshold of 0 they stay its own until their leases expire.
   */
  async checkFailed({ id }: SessionInfo, failures: number, isLast: boolean): Promise<void> {
    if (isLast) this.#remember(id)
    const threshold = this.threshold()
    if (threshold === 0 || (failures < threshold && !isLast)) return
    const reason = `session ${id} did not pass ${failures} health checks in a row: its process stands still`
    await this.recovery.sessionUnhealthy(id, reason)
  }

  /** A process that was ended because it stood still did not end unexpectedly. */
  async sessionStopped(session: SessionInfo): Promise<void> {
    if (this.threshold() === 0 && this.#frozen.has(session.id)) return
    await this.recovery.sessionStopped(session)
  }

  /** Was its process ended because it stood still? */
  hasFrozen(session: string | null): boolean {
    return session !== null && this.#frozen.has(session)
  }

  #remember(id: string): void {
    this.#frozen.add(id)
    const [oldest] = this.#frozen
    if (oldest !== undefined && this.#frozen.size > REMEMBERED) this.#frozen.delete(oldest)
  }
}
