import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runCached } from './code-cache.js'
import type { DaemonOptions } from './run-daemon.js'

/** By then the daemon has compiled what a start needs, and nobody waits for it any more. */
const keepAfterMs = 1000

/** Loads the code of the daemon: in a build one file, run by V8's code cache, else its modules. */
export async function loadDaemon(root: string, home: string): Promise<(options: DaemonOptions) => Promise<number>> {
  // V8 would spend the first moments on optimizing SQLite for a load that is not there yet. Flags are part of a code cache.
  setFlagsFromString('--wasm-tiering-budget=200000000')
  if (import.meta.url.endsWith('.ts')) return (await import('./run-daemon.js')).runDaemon
  const { exports, keep } = runCached(join(root, 'run-daemon.cjs'), join(home, 'cache', 'code'), join(root, 'cache'))
  const { runDaemon } = exports as typeof import('./run-daemon.js')
  return options => runDaemon({ ...options, ...(keep && { onReady: () => setTimeout(keep, keepAfterMs).unref() }) })
}
