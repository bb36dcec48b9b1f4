import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import type { Home } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from './api.js'
import { fine } from './checks.js'

/** The same size limit that the daemon has for its configuration. */
const MAX_CONFIG_BYTES = 16 * 1024 * 1024

/** Names of configuration members that hold secrets, with a value that is not empty. */
const SECRET = /"[^"\n]*(?:key|token|secret|password|credential)[^"\n]*"\s*:\s*"[^"]/i

/** Whether the home is there and writable, and the permissions of it, of the socket and of the files that hold secrets. */
export async function permissionItems(home: Home, socket: string | undefined): Promise<DiagnosticItem[]> {
  const root = await modeOf(home.root)
  if (root === undefined) {
    return [
      finding({
        id: 'home.path',
        code: 'home_path_missing',
        category: 'home',
        severity: 'error',
        title: 'The home is gone',
        message: `${home.root} does not exist any more; data that the daemon has only in memory is lost when it stops`,
      }),
    ]
  }
  const items: DiagnosticItem[] = []
  const problem = await refusal(home.root)
  if (problem !== undefined)
    items.push(
      finding({
        id: 'home.path',
        code: 'home_unwritable',
        category: 'home',
        severity: 'error',
        title: 'The home cannot be written',
        message: `${home.root} ${problem}; requests that write files there fail (503 file_unwritable)`,
      }),
    )
  const judge = (path: string, mode: number | undefined, wanted: number, code: string) => {
    if (mode !== undefined && (mode & ~wanted & 0o777) !== 0) items.push(permissionItem(path, mode, wanted, code))
  }
  judge(home.root, root, 0o700, 'home_perms_wrong')
  if (socket) judge(socket, await modeOf(socket), 0o600, 'home_perms_wrong')
  // Read errors are reported by the configuration itself.
  const config = await readRegularFile(home.config, { maxBytes: MAX_CONFIG_BYTES }).catch(() => undefined)
  if (SECRET.test(config?.toString() ?? '')) judge(home.config, await modeOf(home.config), 0o600, 'secrets_perms_wrong')
  for (const secret of ['vault.key', 'operator.token'].map(name => home.path(name)))
    judge(secret, await modeOf(secret), 0o600, 'secrets_perms_wrong')
  if (items.length > 0) return items
  return [fine('home.permissions', 'home', 'home_perms_ok', 'Permissions', 'the home is closed to other users')]
}

/** Whether the log is writable; the daemon also runs without a log. */
export async function logItems(home: Home): Promise<DiagnosticItem[]> {
  const log = home.path('logs', 'svc.log')
  const isFile = (await stat(log).catch(() => undefined))?.isFile()
  const problem = isFile === false ? 'is not a file' : await refusal(isFile ? log : home.logs)
  if (problem === undefined) return [fine('home.log', 'home', 'log_ok', 'Log', `${log} is written`)]
  return [
    finding({
      id: 'home.log',
      code: 'log_unwritable',
      category: 'home',
      severity: 'warning',
      title: 'The log cannot be written',
      message: `${log} ${problem}; log lines of the daemon are lost`,
    }),
  ]
}

async function refusal(path: string): Promise<string | undefined> {
  return access(path, constants.W_OK).then(
    () => undefined,
    error => `cannot be written (${(error as NodeJS.ErrnoException).code})`,
  )
}

async function modeOf(path: string): Promise<number | undefined> {
  return (await stat(path).catch(() => undefined))?.mode
}

function permissionItem(path: string, mode: number, wanted: number, code: string): DiagnosticItem {
  const octal = (bits: number) => (bits & 0o777).toString(8).padStart(4, '0')
  return finding({
    id: `home.permissions.${path.slice(path.lastIndexOf('/') + 1)}`,
    code,
    category: 'home',
    severity: 'warning',
    title: `Permissions of ${path}`,
    message: `${path} has mode ${octal(mode)}, other users of this machine can reach it; it should be ${octal(wanted)}`,
    suggested_command: `chmod ${octal(wanted)} ${path}`,
  })
}

/** Whether the daemon can see its own process: otherwise sessions cannot start. */
export function processItems(isSeen: boolean): DiagnosticItem[] {
  if (isSeen) return [fine('daemon.processes', 'daemon', 'processes_ok', 'Processes', 'the daemon sees its processes')]
  return [
    finding({
      id: 'daemon.processes',
      code: 'proc_unreadable',
      category: 'daemon',
      severity: 'error',
      title: 'Processes cannot be seen',
      message: 'The daemon does not see its own process, so no agent, hook or extension can be started: mount /proc',
    }),
  ]
}
