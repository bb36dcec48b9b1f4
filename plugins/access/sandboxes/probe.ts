import { type Clock, messageOf, within } from '../../../kernel/plugin.js'
import { keep, OutputStart, type ProcessesApi } from '../../platform/processes/api.js'
import { NAMESPACES } from './bubblewrap.js'

/** Milliseconds before an attempt times out. */
const DEADLINE_MS = 5000
const SAID_BYTES = 300
const INSTALL = 'install it: apt-get install bubblewrap'

/** Whether sandboxes work here, and with which namespaces. */
export type Support =
  | { readonly works: true; readonly program: string; readonly namespaces: readonly string[] }
  | { readonly works: false; readonly reason: string }

/** Starts trial sandboxes, with fewer namespaces each time, and reports the first set that works. */
export async function probe(
  processes: ProcessesApi,
  clock: Clock,
  program: string | undefined,
  cwd: string,
): Promise<Support> {
  if (program === undefined) return { works: false, reason: `bwrap is not on the PATH of the daemon; ${INSTALL}` }
  let reason = ''
  for (const namespaces of NAMESPACES) {
    const said = await attempt(processes, clock, [program, ...namespaces], cwd).catch(messageOf)
    if (said === undefined) return { works: true, program, namespaces }
    reason = said
  }
  const hint = /user namespace|permission denied|not permitted/i.test(reason)
    ? '; unprivileged user namespaces seem to be forbidden here: sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns'
    : ''
  return { works: false, reason: `${program} cannot start a sandbox: ${reason}${hint}` }
}

/** The error output of a failed attempt; undefined on success. */
async function attempt(
  processes: ProcessesApi,
  clock: Clock,
  start: readonly string[],
  cwd: string,
): Promise<string | undefined> {
  const mountArgs = ['--ro-bind', '/', '/', '--tmpfs', '/tmp', '--proc', '/proc', '--dev', '/dev']
  const argv = [...start, ...mountArgs, '--', 'true']
  const child = await processes.spawn({
    label: 'trial of a sandbox',
    argv,
    cwd,
    env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
    stdio: 'pipe',
  })
  child.stdin.end()
  child.stdout.resume()
  const said = keep(child.stderr, new OutputStart(SAID_BYTES))
  const exit = await within(clock, DEADLINE_MS, child.exited).catch(() => undefined)
  await child.stop({ graceMs: 0 })
  if (exit?.code === 0) return undefined
  const ended = exit ? `it ended with ${exit.code ?? exit.signal}` : `it did not end within ${DEADLINE_MS / 1000} s`
  return said.text().trim().split('\n')[0] || ended
}
