import { messageOf } from '../../../../kernel/plugin.js'
import type { SessionsContext } from '../context.js'
import { isUnused } from '../table.js'
import type { Stop } from './stopping.js'

/** Sessions without a process that are stopped at the same time. */
const AT_ONCE = 64
/** A stop that a prompt can undo. */
const SHUTDOWN: Stop = { reason: 'shutdown' }

/** Operations to stop sessions. */
export interface Stops {
  /** Whether the session is in memory, or is being opened. */
  isOpen(id: string): boolean
  stop(id: string, how: Stop): Promise<void>
  /** Stops the row only and leaves the journal as it is. */
  stopRow(id: string, how: Stop): Promise<void>
}

/**
 * Stops all sessions within the time of a shutdown. Sessions that may have a process are stopped concurrently, because a process
 * that does not exit takes half of that time; `limits.max_concurrent_agents` bounds their number. A session that never had a
 * process keeps its empty journal.
 */
export async function stopSessions({ kernel, table }: SessionsContext, stops: Stops): Promise<void> {
  const rows = table.unstopped()
  const told = (id: string, stopped: Promise<void>) =>
    stopped.catch(error => kernel.log.error('a session could not be stopped', { id, error: messageOf(error) }))
  const open = rows.filter(({ id }) => stops.isOpen(id)).map(({ id }) => told(id, stops.stop(id, SHUTDOWN)))
  const others = rows.filter(({ id }) => !stops.isOpen(id))
  const lane = async (): Promise<void> => {
    for (let row = others.pop(); row; row = others.pop()) {
      const isEmpty = isUnused(row) && !stops.isOpen(row.id)
      await told(row.id, isEmpty ? stops.stopRow(row.id, SHUTDOWN) : stops.stop(row.id, SHUTDOWN))
    }
  }
  await Promise.all([...open, ...Array.from({ length: AT_ONCE }, lane)])
}
