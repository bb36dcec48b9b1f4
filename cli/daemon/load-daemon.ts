import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { systemCall } from '../../kernel/kit/system-calls.js'
import { runCached } from './code-cache.js'
import type { DaemonOptions } from './run-daemon.js'

/** By then the code needed for a start is compiled, and the start is over. */
const startedAfterMs = 1000
/** Milliseconds of a start that hangs or takes long, after which its code is optimized too. */
const longStartMs = 10_000
/** Milliseconds in which a daemon is watched, and the part of them that an idle one works at most. */
const watchedMs = 2000
/** The same once memory was given back for the first time. */
const idleWatchedMs = 60_000
const idlePart = 0.05
/** V8 has cleaned up by then. */
const shrunkAfterMs = 30_000

/**
 * Modules of Node that a start needs, with those that they load. V8 accepts Node's compiled code of them only while all flags have
 * their defaults; compiling them anew takes a twentieth of a start.
 */
export const nodeModules =
  'assert child_process cluster dns fs/promises http os perf_hooks process timers/promises vm worker_threads zlib'.split(
    ' ',
  )

type Daemon = typeof import('./run-daemon.js')

/** Loads the code of the daemon: one file of the build with V8's code cache, or its modules. */
export async function loadDaemon(root: string, home: string): Promise<Daemon['runDaemon']> {
  // The heap keeps the size that the argument gave it. Set here, the flag is the same in a process that was started without it.
  setFlagsFromString('--max-semi-space-size=0')
  for (const name of nodeModules) process.getBuiltinModule(name)
  // SQLite functions are compiled on first call: most are never called, and compiling all would take a fifth of the start.
  setFlagsFromString('--wasm-lazy-compilation')
  // Prevents V8 from optimizing SQLite during the start, before there is any load.
  setFlagsFromString('--wasm-tiering-budget=200000000')
  // V8 would optimize code that a start runs often and a daemon hardly ever again, on threads that compete with the start.
  setFlagsFromString(NOT_OPTIMIZED)
  setTimeout(setFlagsFromString, longStartMs, OPTIMIZED).unref()
  limitAllocator()
  const { runDaemon, keep } = await loaded(root, home)
  const started = () => {
    // The next start finds the code only under the flags under which it loads it.
    setFlagsFromString(NOT_OPTIMIZED)
    keep?.()
    setFlagsFromString(OPTIMIZED)
    shrinkWhenIdle()
  }
  return (options: DaemonOptions) =>
    runDaemon({ ...options, onReady: () => setTimeout(started, startedAfterMs).unref() })
}

/** Not under load, which would run slower meanwhile. Again after each load, but only once it is over for long: work may come in bursts. */
function shrinkWhenIdle(hasWorked = true, hasShrunk = false): void {
  const before = performance.eventLoopUtilization()
  const judge = () => {
    const isWorking = performance.eventLoopUtilization(before).utilization > idlePart
    const shrinks = hasWorked && !isWorking
    if (shrinks) {
      setFlags(hasShrunk ? COMPACTING : SHRINKING)
      setTimeout(setFlags, shrunkAfterMs, SHRUNK).unref()
    }
    shrinkWhenIdle(isWorking, hasShrunk || shrinks)
  }
  setTimeout(judge, hasShrunk ? idleWatchedMs : watchedMs).unref()
}

function setFlags(flags: readonly string[]): void {
  for (const flag of flags) setFlagsFromString(flag)
}

const NOT_OPTIMIZED = '--no-opt'
const OPTIMIZED = '--opt'
/**
 * Makes V8 compact the heap when it is idle, some eight seconds after its last full collection, and drop the code that only the
 * start has run: 15 MiB, which it otherwise keeps for minutes. The other flags are V8's defaults.
 */
const SHRINKING = ['--optimize-for-size', '--bytecode-old-age=1']
/** Later the code stays: what a load has run is needed for the next one. */
const COMPACTING = ['--optimize-for-size']
const SHRUNK = ['--no-optimize-for-size', '--bytecode-old-age=6']

/**
 * Parameters of `mallopt` of the GNU C library. One arena for all threads, because each arena keeps freed memory. Fixed thresholds:
 * they would otherwise rise with each large buffer, and later buffers would leave holes in the heap that are never returned.
 */
const ALLOCATION = [
  ['M_ARENA_MAX', -8, 1],
  ['M_MMAP_THRESHOLD', -3, 256 * 1024],
  ['M_TRIM_THRESHOLD', -1, 512 * 1024],
] as const

/** Makes the allocator return freed memory: some 20 MiB in an idle daemon. Other C libraries have no such parameters. */
function limitAllocator(): void {
  if (process.platform !== 'linux') return
  try {
    const set = systemCall('int mallopt(int, int)')
    for (const [, parameter, value] of ALLOCATION) set(parameter, value)
  } catch {
    // The saved memory is not worth a failed start.
  }
}

/** Loads the daemon's code to check a configuration without a daemon. */
export async function loadCheck(root: string, home: string): Promise<Pick<Daemon, 'checkConfig' | 'configChecker'>> {
  return loaded(root, home)
}

/** Loads the daemon's code for its list of known database migrations. */
export async function loadMigrations(root: string, home: string): Promise<Pick<Daemon, 'knownMigrations'>> {
  return loaded(root, home)
}

async function loaded(root: string, home: string): Promise<Daemon & { readonly keep?: (() => void) | undefined }> {
  if (import.meta.url.endsWith('.ts')) return import('./run-daemon.js')
  const { exports, keep } = runCached(join(root, 'run-daemon.cjs'), join(home, 'cache', 'code'), join(root, 'cache'))
  return { ...(exports as Daemon), keep }
}
