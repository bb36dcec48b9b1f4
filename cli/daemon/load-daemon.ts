import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { systemCall } from '../../kernel/kit/system-calls.js'
import { runCached } from './code-cache.js'
import { NODE_FLAGS } from './daemon-arguments.js'
import type { DaemonOptions } from './run-daemon.js'

/** By then the code needed for a start is compiled, and the start is over. */
const keepAfterMs = 1000

type Daemon = typeof import('./run-daemon.js')

/** Loads the code of the daemon: one file of the build with V8's code cache, or its modules. */
export async function loadDaemon(root: string, home: string): Promise<Daemon['runDaemon']> {
  // SQLite functions are compiled on first call: most are never called, and compiling all would take a fifth of the start.
  setFlagsFromString('--wasm-lazy-compilation')
  // Prevents V8 from optimizing SQLite during the start, before there is any load.
  setFlagsFromString('--wasm-tiering-budget=200000000')
  // Flags are part of the code cache key: set here, they also apply in a process that was started without them.
  for (const flag of NODE_FLAGS) setFlagsFromString(flag)
  shareArena()
  const { runDaemon, keep } = await loaded(root, home)
  return (options: DaemonOptions) =>
    runDaemon({ ...options, ...(keep && { onReady: () => setTimeout(keep, keepAfterMs).unref() }) })
}

/** Parameter of `mallopt` of the GNU C library. */
const M_ARENA_MAX = -8

/**
 * Shares one malloc arena between threads. In the GNU C library each allocating thread has its own arena, which keeps freed memory:
 * some 15 MiB in an idle daemon. Other C libraries have no arenas.
 */
function shareArena(): void {
  if (process.platform !== 'linux') return
  try {
    systemCall('int mallopt(int, int)')(M_ARENA_MAX, 1)
  } catch {
    // The saved memory is not worth a failed start.
  }
}

/** Loads the same code for a configuration check without a daemon. */
export async function loadCheck(root: string, home: string): Promise<Pick<Daemon, 'checkConfig' | 'configChecker'>> {
  return loaded(root, home)
}

/** Loads the same code for its known database migrations. */
export async function loadMigrations(root: string, home: string): Promise<Pick<Daemon, 'knownMigrations'>> {
  return loaded(root, home)
}

async function loaded(root: string, home: string): Promise<Daemon & { readonly keep?: (() => void) | undefined }> {
  if (import.meta.url.endsWith('.ts')) return import('./run-daemon.js')
  const { exports, keep } = runCached(join(root, 'run-daemon.cjs'), join(home, 'cache', 'code'), join(root, 'cache'))
  return { ...(exports as Daemon), keep }
}
