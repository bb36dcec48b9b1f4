import { messageOf, type Timer } from '../../../../kernel/plugin.js'
import { holderOf } from '../attach/lease.js'
import type { SessionsContext } from '../context.js'
import { activeRunOf } from '../read/session-run.js'
import type { LiveSession } from './live-session.js'
import { STOP_PROCESS } from './stopping.js'

/** The sessions in memory, as seen by the idle check. */
export interface RestingSessions {
  peek(id: string): LiveSession | undefined
  /** Runs `work` while no turn of a session runs or begins; undefined when one does, or it is not in memory. */
  atRest<T>(id: string, work: (live: LiveSession) => Promise<T>): Promise<T | undefined>
}

interface Rest {
  /** Milliseconds of the monotonic clock. */
  readonly since: number
  readonly timer: Timer | undefined
}

/**
 * Ends the agent processes of idle sessions: after `session.idle_process_timeout`, and when another session needs a slot. The
 * session stays active and starts a process with its next prompt.
 */
export class IdleProcesses {
  /** Sessions whose last turn is over and that may have a process. */
  readonly #resting = new Map<string, Rest>()

  constructor(
    private readonly context: SessionsContext,
    private readonly sessions: RestingSessions,
  ) {
    context.slots.others = this
    context.kernel.scope.defer('idle', () => this.close())
  }

  /** Called when the last turn of a session is over. */
  rests(id: string): void {
    const { kernel, limits } = this.context
    this.#wait(id, kernel.clock.monotonic(), limits.idleProcess)
  }

  /** Called when a turn begins, or the session is gone. */
  works(id: string): void {
    this.#resting.get(id)?.timer?.cancel()
    this.#resting.delete(id)
  }

  close(): void {
    for (const id of [...this.#resting.keys()]) this.works(id)
  }

  /** Whether a process could be ended for another session. */
  get canFree(): boolean {
    return this.#idle().length > 0
  }

  /**
   * Ends the process of the session that has been idle longest. An agent that can load its conversation is preferred to one that
   * would only get a summary. Resolves to false when no process could be ended.
   */
  async free(): Promise<boolean> {
    for (const { id } of this.#idle())
      if (await this.#end(id, 'another session needed one, and limits.max_concurrent_agents is reached')) return true
    return false
  }

  #idle(): LiveSession[] {
    const since = ({ id }: LiveSession) => this.#resting.get(id)?.since ?? 0
    return [...this.#resting.keys()]
      .flatMap(id => this.sessions.peek(id) ?? [])
      .filter(session => this.#busyMs(session) === 0)
      .sort((a, b) => (b.row.supports_load ?? 0) - (a.row.supports_load ?? 0) || since(a) - since(b))
  }

  /** Milliseconds until the session may be idle; 0: it is idle now; infinite when that cannot be known. */
  #busyMs({ id, row, turn, binding }: LiveSession): number {
    const { kernel, prompts, presence, table } = this.context
    if (!binding.running) return Number.POSITIVE_INFINITY
    const held = holderOf(row, kernel.clock.now())
    if (held) return held.until - kernel.clock.now()
    const isBusy =
      turn !== undefined ||
      binding.waitsForPerson ||
      binding.running.terminals.isRunning ||
      prompts.queued(id).length > 0 ||
      presence.sees(id) ||
      activeRunOf(kernel, id) !== null ||
      table.hasChildren(id)
    return isBusy ? Number.POSITIVE_INFINITY : 0
  }

  #wait(id: string, since: number, ms: number): void {
    this.works(id)
    const { kernel, limits } = this.context
    const due = () =>
      void this.#due(id).catch(error =>
        kernel.log.error('the process of an idle session was not ended', { id, error: messageOf(error) }),
      )
    const timer = limits.idleProcess === 0 ? undefined : kernel.clock.timeout(ms, due, { unref: true })
    this.#resting.set(id, { since, timer })
  }

  /** The end of most uses is not reported: a session in use counts as idle from now at the earliest. */
  async #due(id: string): Promise<void> {
    const session = this.sessions.peek(id)
    if (!session?.binding.running) return this.works(id)
    const { kernel, limits } = this.context
    const busyMs = this.#busyMs(session)
    if (busyMs === 0) {
      await this.#end(id, `the session was idle for ${limits.idleProcess / 1000} s`)
      return
    }
    const idleIn = Number.isFinite(busyMs) ? busyMs : 0
    this.#wait(id, kernel.clock.monotonic() + idleIn, idleIn + limits.idleProcess)
  }

  /** Resolves to whether a process was ended before a new prompt arrived. A prompt during the end waits for it. */
  async #end(id: string, why: string): Promise<boolean> {
    const ended = await this.sessions.atRest(id, async session => {
      if (this.#busyMs(session) !== 0) return false
      this.works(id)
      const text = `the agent process was ended: ${why}; the next prompt starts it again`
      session.log.append({ type: 'system', turnId: '', content: { note: 'idle_process_ended', text } })
      await session.binding.end(STOP_PROCESS)
      session.log.wake()
      this.context.health.note(id)
      return true
    })
    return ended ?? false
  }
}
