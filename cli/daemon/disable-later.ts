import { setTimeout as sleep } from 'node:timers/promises'
import {
  disableNotes,
  isExtensionName,
  leaveDisableNote,
  removeDisableNote,
} from '../../plugins/delivery/extensions/folders/disable-notes.js'
import { CliFault } from '../fault.js'
import type { Output } from '../show/output.js'

/** The watchdog ends an unresponsive daemon and starts its successor well within this time. */
const SUCCESSION_MS = 15_000
const AGAIN_MS = 250

/** Errors of an unreachable daemon; `connection`: another daemon has replaced it in the meantime. */
const UNREACHED = ['no_daemon', 'daemon_unreachable', 'daemon_unresponsive', 'daemon_ended', 'connection']

export const isUnreached = (error: unknown): error is CliFault =>
  error instanceof CliFault && UNREACHED.includes(error.code)

export interface DisableLater {
  readonly home: string
  readonly name: string
  readonly out: Output
  readonly signal: AbortSignal
  /** Reason for which the daemon was unreachable. */
  readonly unreached: CliFault
  /** Repeats the request to the daemon. */
  readonly ask: () => Promise<void>
}

/**
 * `extension disable` for an unresponsive daemon: writes a note that its next start applies before it loads any extension, and
 * repeats the request to a successor. An error reply of the daemon is thrown, and the note is removed.
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
  else out.essential(`the daemon does not answer; ${name} is disabled from its next start`)
}
