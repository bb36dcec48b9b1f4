import type { FollowedPage } from '../api.js'
import type { SessionsContext } from '../context.js'
import { eventToWire } from '../events.js'

/** Waits for stored events from a sequence on; `isOver` when there are none and none will follow. */
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
