import { randomBytes } from 'node:crypto'
import type { TaskContext } from './task-context.js'

/** Seconds for which a terminal holds a session without saying so again, and after which it does when something happens. */
const HELD_SECONDS = 900
const RENEW_MS = 60_000

/** A session that is held by this terminal. */
export interface Held {
  /** Something happens here: it is held for longer. */
  stay(): void
  release(): Promise<void>
}

/** Holds a session, so that nobody else attaches to it meanwhile; ends the command where somebody does already. */
export async function holdSession({ client, terminal }: TaskContext, base: string): Promise<Held> {
  const attached_to = `terminal-${randomBytes(4).toString('hex')}`
  const hold = (ttl_seconds: number) => client.request('POST', `${base}/attach`, { attached_to, ttl_seconds })
  await hold(HELD_SECONDS)
  let last = terminal?.now() ?? 0
  return {
    stay() {
      const now = terminal?.now() ?? last
      if (now - last < RENEW_MS) return
      last = now
      hold(HELD_SECONDS).catch(() => {})
    },
    async release() {
      // There is nothing to release of a session that has stopped.
      await hold(1).catch(() => {})
    },
  }
}
