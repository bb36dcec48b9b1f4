import { messageOf, type Notify, type PluginKernel, type Timer } from '../../../../kernel/plugin.js'
import type { SessionHealth } from '../../../../schemas/sessions.js'
import type { Events } from '../../../platform/events/api.js'
import { HealthTimings, SessionHung, SessionRecovered, SessionUnhealthy } from '../api.js'

/** Defaults for a daemon without the plugin that owns these settings. */
const STALE_AFTER_MS = 2 * 60_000
const TELL_EVERY_MS = 60_000
/** Remembered sessions, before old entries are removed. */
const REMEMBERED = 1024

type Word = SessionHealth['health']

/** The log event for a change of health, if there is one. */
function newsOf(before: Word, now: Word) {
  if (before === now) return undefined
  if (now === 'stale') return SessionHung
  if (now === 'dead' || now === 'degraded') return SessionUnhealthy
  return now === 'healthy' && before !== 'unknown' ? SessionRecovered : undefined
}

/**
 * Reports changes of health, at most once per session and interval. A change within the interval is reported at its end, with the
 * health at that time.
 */
export class HealthNews {
  readonly #reported = new Map<string, { readonly at: number; readonly state: string; readonly health: Word }>()
  readonly #waiting = new Map<string, Timer>()

  /** @param read health of a session; undefined when there is none */
  constructor(
    private readonly kernel: Pick<
      PluginKernel<{ events: typeof Events }>,
      'clock' | 'collect' | 'db' | 'log' | 'needs'
    >,
    private readonly updated: Notify<[SessionHealth]>,
    private readonly read: (id: string) => SessionHealth | undefined,
  ) {}

  /** Milliseconds without activity after which a waiting process is stale. */
  get staleAfterMs(): number {
    return this.#timing?.staleAfterMs() ?? STALE_AFTER_MS
  }

  /** Checks the health of a session after a change. */
  note(id: string): void {
    if (this.#waiting.has(id)) return
    const last = this.#reported.get(id)
    const wait = last ? last.at + this.#tellEveryMs - this.kernel.clock.monotonic() : 0
    if (wait <= 0) {
      this.#tell(id)
      return
    }
    const later = () => {
      this.#waiting.delete(id)
      this.#tell(id)
    }
    this.#waiting.set(id, this.kernel.clock.timeout(wait, later, { unref: true }))
  }

  close(): void {
    for (const timer of this.#waiting.values()) timer.cancel()
    this.#waiting.clear()
  }

  get #tellEveryMs(): number {
    return this.#timing?.tellEveryMs() ?? TELL_EVERY_MS
  }

  get #timing() {
    const [contributed] = this.kernel.collect(HealthTimings)
    return contributed?.entry
  }

  #tell(id: string): void {
    const health = this.read(id)
    if (!health) {
      this.#reported.delete(id)
      return
    }
    const before = this.#reported.get(id)
    if (health.state === before?.state && health.health === before.health) return
    const at = this.kernel.clock.monotonic()
    this.#reported.set(id, { at, state: health.state, health: health.health })
    if (this.#reported.size > REMEMBERED) {
      for (const [other, report] of this.#reported)
        if (report.at + this.#tellEveryMs <= at) this.#reported.delete(other)
    }
    void this.updated.call(health)
    // Without an earlier report the session may have had this health before.
    if (before) this.#log(before.health, health)
  }

  #log(before: Word, { session_id, agent_name, workspace_id, health, last_error }: SessionHealth): void {
    const {
      db,
      log,
      needs: { events },
    } = this.kernel
    const news = newsOf(before, health)
    if (!news) return
    const payload = {
      id: session_id,
      agent_name,
      workspace_id,
      health,
      ...(last_error && { reason: last_error }),
    }
    db.tx(t => events.emit(t, news, payload, { scope: workspace_id, subject: session_id })).catch(error =>
      log.error(`the health of a session could not be reported: ${messageOf(error)}`, { id: session_id }),
    )
  }
}
