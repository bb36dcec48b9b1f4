import { setTimeout as sleep } from 'node:timers/promises'
import { daemonHolder, elsewhereFault, runningDaemon } from '../address.js'
import { CliFault } from '../fault.js'
import type { LocalContext } from '../local.js'
import { askToStop, isStopAsked } from './home-notes.js'
import { forgetEnds } from './restart-limit.js'

/** Time limit for the release of the lock, poll interval, and time limit for the exit after that. */
const waitMs = 15_000
const pollMs = 50
const lingerMs = 2000

/**
 * `daemon stop`: sends SIGTERM to the process that holds the lock and waits for its end. Without a daemon, only a successor just
 * started by the watchdog is made to give up.
 */
export async function stopDaemon(context: LocalContext): Promise<undefined> {
  const { home, out } = context
  const pid = await stopRunning(context)
  if (pid === undefined) {
    if (out.json) out.value({ status: 'not_running', home })
    else out.line(`no daemon is running at ${home}`)
    return undefined
  }
  if (out.json) out.value({ status: 'stopped', pid, home })
  else out.line(`daemon stopped (pid ${pid})`)
  return undefined
}

/** Stops the daemon of a home; resolves to its PID when it is gone, undefined when none ran. */
export async function stopRunning({
  home,
  signal,
  progress,
}: Pick<LocalContext, 'home' | 'signal' | 'progress'>): Promise<number | undefined> {
  const holder = await daemonHolder(home)
  if (holder?.visible === false) throw await elsewhereFault(home, holder)
  askToStop(home)
  const pid = await runningDaemon(home)
  if (pid !== undefined) {
    terminate(pid)
    const left = 'the daemon goes on to stop: svc status'
    await progress.during('waiting for the daemon to stop', () => untilGone(home, pid, signal), left)
  }
  forgetEnds(home)
  return pid
}

async function untilGone(home: string, pid: number, signal: AbortSignal): Promise<void> {
  const until = Date.now() + waitMs
  for (;;) {
    const holder = await runningDaemon(home)
    // A daemon started by a person in the meantime is another one; a successor ends as soon as it sees the stop request.
    if (holder === undefined || (holder !== pid && !isStopAsked(home))) break
    if (Date.now() > until) {
      const text = `the daemon (pid ${pid}) is still running ${waitMs / 1000} s after the stop request`
      throw new CliFault('daemon_stop_timeout', text, { next: `kill -9 ${pid}` })
    }
    await sleep(pollMs, undefined, { signal })
  }
  // The lock is released shortly before the process exits.
  const { inspectProcess } = await import('../../plugins/platform/processes/inspect.js')
  const runs = () => inspectProcess(pid, process.platform)?.ended === false
  for (const linger = Date.now() + lingerMs; runs() && Date.now() < linger; )
    await sleep(pollMs / 5, undefined, { signal })
}

function terminate(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ESRCH') return
    throw new CliFault('daemon_foreign', `the daemon (pid ${pid}) cannot be signalled: ${code}`, {
      exit: 6,
      next: 'run svc as the user that started the daemon',
      cause,
    })
  }
}
