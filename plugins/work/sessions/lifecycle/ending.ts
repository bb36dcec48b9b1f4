import { type Gate, messageOf } from '../../../../kernel/plugin.js'
import { SessionErrors, type SessionInfo } from '../api.js'
import type { SessionsContext } from '../context.js'
import { aboutToStop } from '../gates.js'
import { isUnused } from '../table.js'
import { infoOf } from '../wire.js'
import { removeSession } from './catalog.js'
import type { OpenSessions } from './open-sessions.js'
import { keptBy } from './retire.js'
import { cancelTurn, recordStop, type Stop, tellStop } from './stopping.js'

/** Sessions without a process that are stopped at the same time. */
const AT_ONCE = 64
/** A stop that a prompt can undo. */
const SHUTDOWN: Stop = { reason: 'shutdown' }

/** Ends turns and sessions: stops, removals, and the stop of all sessions at a shutdown. */
export class Endings {
  constructor(
    private readonly context: SessionsContext,
    private readonly open: OpenSessions,
    private readonly retiring: Gate<[SessionInfo]>,
  ) {}

  /** Cancels the running turn and waits for its end, up to a time limit. */
  cancel(id: string) {
    return cancelTurn(id, this.open.peek(id)?.turn, this.context.kernel.clock)
  }

  /** Idempotent; resolves when the process group is gone and the stop is durable. */
  async stop(id: string, how: Stop): Promise<void> {
    const { kernel, table } = this.context
    const row = table.get(id)
    if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
    const asked = aboutToStop(this.context, row, how)
    if (asked) await asked
    const live = this.open.peek(id)
    if (live) return live.stop(how)
    if (row.state === 'stopped' || table.get(id)?.state === 'stopped') return
    const opened = await this.open.open(id).catch(error => {
      kernel.log.error('a session is stopped without its journal', { id, error: messageOf(error) })
    })
    if (opened) return opened.stop(how)
    await this.#stopRow(id, how)
  }

  /** Stops a session and removes it with its history. */
  async remove(id: string, isRefusable = true): Promise<void> {
    await this.stop(id, { reason: 'user_canceled', detail: 'deleted', isRefusable })
    await removeSession(this.context, id)
  }

  /** Removes a session whose workspace is gone, if it still exists. */
  async removeAlways(id: string): Promise<void> {
    if (this.context.table.get(id)) await this.remove(id, false)
  }

  /** Removes the session of a deleted run, unless it is still in use. */
  async retire(id: string, endedAt: number): Promise<'removed' | 'kept' | 'referred'> {
    await this.context.archive.restore(id)
    const row = this.context.table.get(id)
    if (!row) return 'removed'
    const kept = keptBy(this.context, row, endedAt)
    if (kept === 'used') return 'kept'
    if (kept || (await this.retiring.ask(infoOf(row)))) return 'referred'
    await this.remove(id, false)
    return 'removed'
  }

  /**
   * Stops all sessions within the time of a shutdown. Sessions that may have a process are stopped concurrently, because a process
   * that does not exit takes half of that time; `limits.max_concurrent_agents` bounds their number. A session that never had a
   * process keeps its empty journal.
   */
  async stopAll(): Promise<void> {
    const { kernel, table } = this.context
    const rows = table.unstopped()
    const told = (id: string, stopped: Promise<void>) =>
      stopped.catch(error => kernel.log.error('a session could not be stopped', { id, error: messageOf(error) }))
    const open = rows.filter(({ id }) => this.open.has(id)).map(({ id }) => told(id, this.stop(id, SHUTDOWN)))
    const others = rows.filter(({ id }) => !this.open.has(id))
    const lane = async (): Promise<void> => {
      for (let row = others.pop(); row; row = others.pop()) {
        const isEmpty = isUnused(row) && !this.open.has(row.id)
        await told(row.id, isEmpty ? this.#stopRow(row.id, SHUTDOWN) : this.stop(row.id, SHUTDOWN))
      }
    }
    await Promise.all([...open, ...Array.from({ length: AT_ONCE }, lane)])
  }

  /** Stops a session whose journal cannot be written, or is empty. */
  async #stopRow(id: string, how: Stop): Promise<void> {
    const info = await recordStop(this.context, id, how, { bytes: this.context.table.get(id)?.journal_bytes ?? 0 })
    if (info) await tellStop(this.context, info)
    this.context.health.note(id)
  }
}
