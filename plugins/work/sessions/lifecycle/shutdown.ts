import { messageOf } from '../../../../kernel/plugin.js'
import type { SessionsContext } from '../context.js'
import { isUnused } from '../table.js'
import type { Stop } from './stopping.js'

/** Sessions without a process that are stopped at the same time. */
const AT_ONCE = 64
/** A prompt can undo it. */
const SHUTDOWN: Stop = { reason: 'shutdown' }

/** How sessions are stopped. */
export interface Stops {
  /** It is in memory, or about to be. */
  isOpen(id: string): boolean
  stop(id: string, how: Stop): Promise<void>
  /** Leaves the journal as it is. */
  stopRow(id: string, how: Stop): Promise<void>
}

/**
 * Stops all sessions within the time of a shutdown. Those that may have a process at once, for one that does not want to
 * end takes half of that time, and nobody waits for it; there are as many as `limits.max_concurrent_agents` allows. What
 * never had a process has an empty journal, which stays so.
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
