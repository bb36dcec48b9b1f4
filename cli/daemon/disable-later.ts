import { setTimeout as sleep } from 'node:timers/promises'
import {
  disableNotes,
  isExtensionName,
  leaveDisableNote,
  removeDisableNote,
} from '../../plugins/delivery/extensions/folders/disable-notes.js'
import { CliFault } from '../fault.js'
import type { Output } from '../show/output.js'

/** A daemon that does not answer is ended by its watchdog, and followed by another one, well within that time. */
const SUCCESSION_MS = 15_000
const AGAIN_MS = 250

/** What a daemon that cannot be asked fails with; `connection`: another one has taken its place meanwhile. */
const UNREACHED = ['no_daemon', 'daemon_unreachable', 'daemon_unresponsive', 'daemon_ended', 'connection']

export const isUnreached = (error: unknown): error is CliFault =>
  error instanceof CliFault && UNREACHED.includes(error.code)

export interface DisableLater {
  readonly home: string
  readonly name: string
  readonly out: Output
  readonly signal: AbortSignal
  /** Why the daemon could not be asked. */
  readonly unreached: CliFault
  /** Asks the daemon again. */
  readonly ask: () => Promise<void>
}

/**
 * `extension disable` where the daemon does not answer: leaves a note that its next start honours before it loads any extension,
 * and asks the successor, should one come. Throws what a daemon that answers says against it; the note is gone then.
 */
export async function disableLater({ home, name, out, signal, unreached, ask }: DisableLater): Promise<void> {
  if (!isExtensionName(name)) throw unreached
  try {
    leaveDisableNote(home, name)
  } catch {
    throw unreached
  }
  const until = Date.now() + SUCCESSION_MS
  while (unreached.code !== 'no_daemon' && Date.now() < until) {
    await sleep(AGAIN_MS, undefined, { signal })
    if (!disableNotes(home).includes(name)) break
    try {
      await ask()
      removeDisableNote(home, name)
      return
    } catch (error) {
      if (isUnreached(error)) continue
      removeDisableNote(home, name)
      throw error
    }
  }
  if (out.json) out.value({ extension: name, status: 'noted', reason: unreached.code })
  else out.essential(`${name} is off from the next start of the daemon: it cannot be asked now`)
}
