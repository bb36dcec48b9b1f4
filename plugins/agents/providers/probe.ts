import { type Clock, within } from '../../../kernel/plugin.js'
import type { ProcessHandle } from '../../platform/processes/api.js'

/** Milliseconds for a login check. */
const DEADLINE_MS = 10_000

/** Result of a login check; the output may contain secrets and is discarded. */
export interface Probe {
  /** Epoch milliseconds. */
  readonly at: number
  readonly durationMs: number
  /** 0: logged in; -1: it did not answer in time or was ended by a signal. */
  readonly exitCode: number
}

/** Runs the program for at most 10 s; nothing of it is left afterwards. */
export async function runProbe(clock: Clock, start: () => Promise<ProcessHandle>): Promise<Probe> {
  const at = clock.now()
  const startedAt = clock.monotonic()
  const child = await start()
  child.stdin.end()
  child.stdout.resume()
  child.stderr.resume()
  const exit = await within(clock, DEADLINE_MS, child.exited).catch(() => undefined)
  await child.stop({ graceMs: 0 })
  return { at, durationMs: Math.max(0, Math.round(clock.monotonic() - startedAt)), exitCode: exit?.code ?? -1 }
}
