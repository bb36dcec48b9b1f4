import { randomBytes } from 'node:crypto'
import type { TaskContext } from './task-context.js'

/** Seconds for which a terminal holds a session, and how often it says so again: one that is gone frees it soon. */
const HELD_SECONDS = 90
const RENEW_MS = 30_000

/**
 * Holds a session until the returned function is called, so that nobody else attaches to it meanwhile; ends the command where
 * somebody does already.
 */
export async function holdSession({ client, every }: TaskContext, base: string): Promise<() => Promise<void>> {
  const attached_to = `terminal-${randomBytes(4).toString('hex')}`
  const hold = (ttl_seconds: number) => client.request('POST', `${base}/attach`, { attached_to, ttl_seconds })
  await hold(HELD_SECONDS)
  const enough = every?.(RENEW_MS, () => hold(HELD_SECONDS).catch(() => {}))
  return async () => {
    enough?.()
    // There is nothing to release of a session that has stopped.
    await hold(1).catch(() => {})
  }
}
