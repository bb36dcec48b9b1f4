import type { FollowedPage } from '../api.js'
import type { SessionsContext } from '../context.js'
import { eventToWire } from '../events.js'

/** Stored events from a sequence on, once there are some; `isOver` when there are none and none will come. */
export async function followPage(
  { logs, table }: SessionsContext,
  id: string,
  from: number,
  signal: AbortSignal,
): Promise<FollowedPage> {
  return logs.use(id, async log => {
    const row = () => table.get(id)
    for (;;) {
      const current = row()
      const { last } = log
      if (current && from <= last) {
        const page = await log.page(from)
        return { events: page.events.map(event => eventToWire(event, current)), next: page.next, last, isOver: false }
      }
      if (!current || current.state === 'stopped' || signal.aborted)
        return { events: [], next: from, last, isOver: true }
      await log.changed(from - 1, signal)
    }
  })
}
