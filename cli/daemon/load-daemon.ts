import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { systemCall } from '../../kernel/kit/system-calls.js'
import { runCached } from './code-cache.js'
import { NODE_FLAGS } from './daemon-arguments.js'
import type { DaemonOptions } from './run-daemon.js'

/** By then the daemon has compiled what a start needs, and nobody waits for it any more. */
const keepAfterMs = 1000

type Daemon = typeof import('./run-daemon.js')

/** Loads the code of the daemon: in a build one file, run by V8's code cache, else its modules. */
export async function loadDaemon(root: string, home: string): Promise<Daemon['runDaemon']> {
  // The functions of SQLite are compiled when they are called: most never are, and those of a start take a fifth of all.
  setFlagsFromString('--wasm-lazy-compilation')
  // V8 would spend the first moments on optimizing SQLite for a load that is not there yet.
  setFlagsFromString('--wasm-tiering-budget=200000000')
  // Flags are part of a code cache: a process that was started without these can use it too.
  for (const flag of NODE_FLAGS) setFlagsFromString(flag)
  shareArena()
  const { runDaemon, keep } = await loaded(root, home)
  return (options: DaemonOptions) =>
    runDaemon({ ...options, ...(keep && { onReady: () => setTimeout(keep, keepAfterMs).unref() }) })
}

/** Parameter of `mallopt` of the GNU C library. */
const M_ARENA_MAX = -8

/**
 * Each thread that allocates has an arena of its own in the GNU C library, which keeps what was freed in it: some 15 MiB of an idle
 * daemon. Few of its threads allocate at once, so they share one. Other C libraries have no arenas.
 */
function shareArena(): void {
  if (process.platform !== 'linux') return
  try {
    systemCall('int mallopt(int, int)')(M_ARENA_MAX, 1)
  } catch {
    // The memory of arenas is not worth a start.
  }
}

/** The same code, for what is judged without a daemon. */
export async function loadCheck(root: string, home: string): Promise<Pick<Daemon, 'checkConfig' | 'configChecker'>> {
  return loaded(root, home)
}

/** The same code, for what it knows of databases. */
export async function loadMigrations(root: string, home: string): Promise<Pick<Daemon, 'knownMigrations'>> {
  return loaded(root, home)
}

async function loaded(root: string, home: string): Promise<Daemon & { readonly keep?: (() => void) | undefined }> {
  if (import.meta.url.endsWith('.ts')) return import('./run-daemon.js')
  const { exports, keep } = runCached(join(root, 'run-daemon.cjs'), join(home, 'cache', 'code'), join(root, 'cache'))
  return { ...(exports as Daemon), keep }
}
