import { spawn } from 'node:child_process'
import { closeSync, fstatSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { clip } from '../../kernel/kit/text.js'
import { leaveHomeCgroup } from '../../plugins/platform/processes/cgroup.js'
import { Operations, type StoredOperation } from '../../plugins/platform/restart/operations.js'
import { isOpen } from '../../plugins/platform/restart/states.js'
import type { RestartStatus } from '../../schemas/daemon/restart.js'
import { runningDaemon } from '../address.js'
import { isStopAsked } from './home-notes.js'
import { logPath, logTail, openLog } from './log-file.js'

/**
 * Milliseconds between two checks, and the time for a daemon to release its lock: four times the limit of a shutdown.
 */
const POLL_MS = 25
const RELEASE_MS = 60_000
/** Maximum number of started daemons before the restart fails; only a killed one is replaced. */
const MAX_STARTS = 3
/** Log lines that a failure quotes, and their maximum length. */
const TAIL_LINES = 3
const TAIL_CHARACTERS = 1000

export interface HelperOptions {
  readonly home: string
  /** ID of the operation. */
  readonly operation: string
  /** Node arguments that start a daemon which waits for the lock of the previous one. */
  readonly successor: readonly string[]
}

/** Exit code of a daemon that found the lock held. */
const ALREADY_RUNNING = 5

export interface HelperOptions {
  readonly home: string
  /** ID of the operation. */
  readonly operation: string
  /** Node arguments that start a daemon which waits for the lock of the previous one. */
  readonly successor: readonly string[]
}

/**
 * The process between two daemons: waits for the end of the first, starts the next one, which waits for the lock itself, and stays
 * until that daemon is ready or has failed. Returns the exit code.
 */
export async function runRestartHelper({ home, operation, successor }: HelperOptions): Promise<number> {
  leaveHomeCgroup(process.pid)
  await releasedByDaemon()
  const operations = new Operations(home)
  const now = () => operations.read(operation)
  const isOver = () => !isOpen(now()?.status ?? 'failed')
  const advance = (to: RestartStatus, more: Partial<StoredOperation> = {}) => {
    try {
      operations.advance(operation, to, new Date().toISOString(), more)
    } catch (error) {
      // A full disk must not prevent the start of the next daemon.
      process.stderr.write(`error: the restart ${operation} cannot be recorded: ${(error as Error).message}\n`)
    }
  }
  const fail = (why: string): number => {
    const failure_reason = isStopAsked(home) ? 'the daemon was stopped during the restart (svc daemon stop)' : why
    advance('failed', { failure_reason })
    return 1
  }
  // The previous daemon records its own stop, unless it is killed first.
  for (let at = now(); at?.status === 'pending' && (await runningDaemon(home)) === at.old_pid; at = now())
    await sleep(POLL_MS)
  if (isOver()) return 0
  advance('waiting_release')
  for (let n = 1; n <= MAX_STARTS; n++) {
    const ended = await runNext(home, successor, now)
    if (ended === undefined) return 0
    if (isStopAsked(home)) return fail('')
    // The previous daemon may be slow to end, or a person may have started one, which then ends the operation.
    const holder = await holderBehind(home, isOver)
    if (isOver()) return 0
    if (holder !== undefined) return fail(`the daemon (pid ${holder}) held its lock for another ${RELEASE_MS / 1000} s`)
    if (ended.code !== null && ended.code !== ALREADY_RUNNING)
      return fail(`the new daemon did not start: ${ended.said}`)
  }
  return fail(`the new daemon was killed ${MAX_STARTS} times while it started`)
}

/** Resolves when the daemon has stored the operation, or has ended. */
function releasedByDaemon(): Promise<void> {
  return new Promise(resolve => {
    if (!process.connected) return resolve()
    process.once('disconnect', resolve)
    // The daemon may already have ended.
    process.send?.('runs', () => {})
  })
}

/** Starts a daemon and waits until the operation is over (undefined) or the daemon has ended; `code` is null when it was killed. */
async function runNext(
  home: string,
  successor: readonly string[],
  now: () => StoredOperation | undefined,
): Promise<{ readonly code: number | null; readonly said: string } | undefined> {
  const log = logPath(home)
  const file = openLog(log)
  const { size } = fstatSync(file)
  const child = spawn(process.execPath, successor, { cwd: home, detached: true, stdio: ['ignore', file, file] })
  closeSync(file)
  let failed: Error | undefined
  child.once('error', error => {
    failed = error
  })
  const hasEnded = () => failed !== undefined || child.exitCode !== null || child.signalCode !== null
  while (!hasEnded()) {
    const at = now()
    if (at === undefined || !isOpen(at.status)) {
      // Another daemon got the lock for which the child waits.
      if (at?.status === 'ready' && at.new_pid !== child.pid) child.kill('SIGTERM')
      return undefined
    }
    await sleep(POLL_MS)
  }
  const said = failed?.message ?? (logTail(log, size, TAIL_LINES).join('; ') || `it ended with code ${child.exitCode}`)
  return { code: failed ? 1 : child.exitCode, said: clip(said, TAIL_CHARACTERS) }
}

/** Waits until no daemon holds the home or `isOver`; returns the PID of a daemon that holds it for too long. */
async function holderBehind(home: string, isOver: () => boolean): Promise<number | undefined> {
  const until = Date.now() + RELEASE_MS
  for (;;) {
    const holder = await runningDaemon(home)
    if (holder === undefined || isOver()) return undefined
    if (Date.now() > until) return holder
    await sleep(POLL_MS)
  }
}
