import type { Notify, PluginKernel, Timer } from '../../kernel/plugin.js'
import type { SessionHealth } from '../../schemas/sessions.js'
import { HealthTimings } from './api.js'

/** Of the one who owns the configuration, where there is none (Behaviour 4.5). */
const STALE_AFTER_MS = 2 * 60_000
const TELL_EVERY_MS = 60_000
/** Sessions of which is remembered what was told last, before those are forgotten that are long told. */
const REMEMBERED = 1024

/**
 * Tells how a session is when that has changed, of each at most once in so long; what changes meanwhile is told of at the end
 * of that time, as it is by then.
 */
export class HealthNews {
  readonly #told = new Map<string, { readonly at: number; readonly what: string }>()
  readonly #waiting = new Map<string, Timer>()

  /** @param read how a session is; undefined when there is none */
  constructor(
    private readonly kernel: Pick<PluginKernel, 'clock' | 'collect'>,
    private readonly updated: Notify<[SessionHealth]>,
    private readonly read: (id: string) => SessionHealth | undefined,
  ) {}

  /** Milliseconds without a sign of life after which a process that waits is stale (Behaviour 6.1). */
  get staleAfterMs(): number {
    return this.#timing?.staleAfterMs() ?? STALE_AFTER_MS
  }

  /** Something happened to a session. */
  note(id: string): void {
    if (this.#waiting.has(id)) return
    const last = this.#told.get(id)
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
      this.#told.delete(id)
      return
    }
    const what = `${health.state} ${health.health}`
    if (what === this.#told.get(id)?.what) return
    const at = this.kernel.clock.monotonic()
    this.#told.set(id, { at, what })
    if (this.#told.size > REMEMBERED) {
      for (const [other, told] of this.#told) if (told.at + this.#tellEveryMs <= at) this.#told.delete(other)
    }
    void this.updated.call(health)
  }
}
