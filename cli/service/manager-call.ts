import { execFile } from 'node:child_process'
import type { ServiceDefinition } from '../../plugins/desk/daemon/installed-service.js'
import type { Io } from '../io.js'

/** Time limit of a call of the manager in milliseconds; a start waits until the daemon serves. */
const CALL_MS = 330_000
const MAX_BYTES = 1024 * 1024

/** The result of a system program. */
export interface Called {
  readonly ok: boolean
  readonly stdout: string
  /** Its error message, in one line. */
  readonly problem: string
  /** The program is missing or got no reply; the person has to run the commands. */
  readonly unreached: boolean
}

/** A systemctl command for the manager of a place. */
export const systemctl = ({ supervisor }: ServiceDefinition, ...words: string[]): string[] =>
  supervisor === 'systemd-user' ? ['systemctl', '--user', ...words] : ['systemctl', ...words]

/** Calls a system program with the environment of the caller. */
export function call({ env, signal }: Pick<Io, 'env' | 'signal'>, argv: readonly string[]): Promise<Called> {
  const [program = '', ...args] = argv
  return new Promise(resolve => {
    const options = {
      timeout: CALL_MS,
      maxBuffer: MAX_BYTES,
      signal,
      env: { ...env, LC_ALL: 'C', SYSTEMD_COLORS: '0' },
    }
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      const problem = stderr.trim().split('\n').slice(-3).join(' ') || (error?.message ?? '')
      const isMissing = (error as NodeJS.ErrnoException | null)?.code === 'ENOENT'
      const isDeaf = /Failed to connect to (?:user scope |system scope )?bus|not been booted with systemd/i.test(stderr)
      resolve({ ok: error === null, stdout, problem, unreached: isMissing || isDeaf })
    })
    child.stdin?.end()
  })
}
