import { readdir, readFile } from 'node:fs/promises'
import type { Clock } from '../../kernel/plugin.js'

/** Milliseconds between asking processes to end and ending them. */
const TERM_MS = 500
const POLL_MS = 50

/**
 * Ends what the processes of a session started in groups of their own, as agents do with tools, so that ending the agent's
 * group did not reach it. Such a process is known by its environment; without /proc none is found. Resolves when none is
 * left, or has been sent SIGKILL.
 */
export async function endLeftovers(clock: Clock, sessionId: string): Promise<void> {
  let left = await processesOf(sessionId)
  for (const pid of left) send(pid, 'SIGTERM')
  for (let waited = 0; left.length > 0 && waited < TERM_MS; waited += POLL_MS) {
    await clock.sleep(POLL_MS)
    left = await processesOf(sessionId)
  }
  for (const pid of left) send(pid, 'SIGKILL')
}

/** Processes that were started with the id of this session in their environment. */
async function processesOf(sessionId: string): Promise<number[]> {
  const mark = `\0SVC_SESSION_ID=${sessionId}\0`
  const names = await readdir('/proc').catch(() => [])
  const found: number[] = []
  for (const name of names) {
    const pid = Number(name)
    if (!Number.isInteger(pid) || pid === process.pid) continue
    // Ended ones that nobody has waited for have an empty environment.
    const environment = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '')
    if (`\0${environment}\0`.includes(mark)) found.push(pid)
  }
  return found
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended meanwhile.
  }
}
