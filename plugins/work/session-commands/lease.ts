import { randomBytes } from 'node:crypto'
import { hostname, userInfo } from 'node:os'
import { clip } from '../../../kernel/kit/text.js'
import type { TaskContext } from './task-context.js'
import { confirm } from './typed.js'

/** Seconds of the terminal's lease, and the interval of its renewal. A short lease frees the session soon after a crash. */
const HELD_SECONDS = 60
const RENEW_MS = 15_000
/** Milliseconds after which a released lease has ended: the shortest lease has one second. */
const RELEASED_MS = 1100
/** Maximum shown length of an account or machine name, in characters. */
const MAX_NAME = 60

/** A session that is held by this terminal. */
export interface HeldSession {
  /** Renews the lease; false: another terminal took over. */
  renew(): Promise<boolean>
  release(): Promise<void>
}

/**
 * Holds a session, so that no other terminal attaches. A session held elsewhere is taken over with `--take-over` or on request of
 * the caller; else the command ends. `lost` is called once when another terminal takes over.
 */
export async function holdSession(context: TaskContext, base: string, lost: () => void): Promise<HeldSession> {
  const { client, every, options } = context
  const attached_to = `terminal-${randomBytes(4).toString('hex')} (${personName()}@${clip(hostname(), MAX_NAME)})`
  const hold = (body: object) => client.request('POST', `${base}/attach`, { attached_to, ...body })
  const begin = (take_over: boolean) => hold({ ttl_seconds: HELD_SECONDS, ...(take_over && { take_over }) })
  const takesOver = options['take-over'] === true
  try {
    await begin(takesOver).catch(async error => {
      if (!isHeld(error) || takesOver) throw error
      // The daemon's clock ends a released lease, so the daemon does the waiting too.
      await client.request('POST', `${base}/wait`, { timeout_ms: RELEASED_MS, until: ['stopped'] }, { waits: true })
      await begin(false)
    })
  } catch (error) {
    if (!isHeld(error) || !context.terminal) throw error
    context.out.line((error as Error).message)
    if (!(await confirm(context, 'Take it over? That terminal is detached.', false))) throw error
    await begin(true)
  }
  let isLost = false
  const renew = async () => {
    try {
      await hold({ ttl_seconds: HELD_SECONDS })
    } catch (error) {
      // An unreachable daemon says nothing about the holder.
      if (isHeld(error) && !isLost) {
        isLost = true
        lost()
      }
    }
    return !isLost
  }
  const enough = every?.(RENEW_MS, () => void renew())
  return {
    renew,
    async release() {
      enough?.()
      // A stopped session, or one held by another terminal, needs no release.
      if (!isLost) await hold({ ttl_seconds: 1 }).catch(() => {})
    },
  }
}

const isHeld = (error: unknown) => (error as { code?: unknown }).code === 'session_attached'

/** Some accounts have no name. */
function personName(): string {
  try {
    return clip(userInfo().username, MAX_NAME)
  } catch {
    return 'somebody'
  }
}
