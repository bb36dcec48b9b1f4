import { accessSync, constants, existsSync, realpathSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import type { ServiceOwner } from '../../plugins/desk/daemon/installed-service.js'
import { ownServiceOwner } from '../../plugins/desk/daemon/service-check.js'
import { type Env, homeOfEnv } from '../address.js'
import { NODE_FLAGS, SERVICE } from '../daemon/daemon-arguments.js'
import { CliFault } from '../fault.js'
import type { Io } from '../io.js'

/** Facts about a service, captured at its installation, because a manager starts it with an environment of its own. */
export interface ServiceFacts extends ServiceOwner {
  readonly argv: readonly string[]
  /** The search path of agents and tools. */
  readonly path: string
  /** Seconds that a stop waits for turns. */
  readonly stopWait: number
  /** Listen addresses of the daemon, for a socket unit. */
  readonly listen: { readonly socket: string; readonly tcp?: string }
}

/** Names of secret variables: only the names of those that are set are printed. */
const SECRET_NAME = /(?:^|_)(?:API_KEY|TOKEN|SECRET|PASSWORD)$/

/** Names of secrets in the environment of the caller, which a service does not get. */
export const secretNames = (env: Env): string[] =>
  Object.keys(env)
    .filter(name => SECRET_NAME.test(name) && env[name] !== '' && env[name] !== undefined)
    .sort()

/** The owner of the service. @throws CliFault `user_not_found` for an unknown user */
export function ownerOf(env: Env, named?: string): ServiceOwner {
  const mine = ownServiceOwner(homeOfEnv(env), env.HOME || homedir(), env.XDG_CONFIG_HOME)
  const user = named ?? (process.getuid?.() === 0 && env.SUDO_USER ? env.SUDO_USER : mine.user)
  const { platform } = process
  if (user === mine.user) return mine
  const userHome = homeOfUser(user)
  if (userHome === undefined) {
    throw new CliFault('user_not_found', `this machine has no user ${JSON.stringify(user)}`, {
      next: 'svc service install --system --user <name>',
    })
  }
  return { home: env.SVC_HOME ? homeOfEnv(env) : join(userHome, '.svc'), userHome, user, platform }
}

function homeOfUser(user: string): string | undefined {
  const users = readRegularFileSync('/etc/passwd', { maxBytes: 4 * 1024 * 1024 })?.toString() ?? ''
  const fields = users
    .split('\n')
    .map(line => line.split(':'))
    .find(([name]) => name === user)
  return fields?.[5] || undefined
}

/** The program of the daemon, with a path of Node that survives an upgrade. */
export function programOf({ root, env }: Pick<Io, 'root' | 'env'>, service: 'systemd' | 'launchd'): string[] {
  const daemon = join(root, 'daemon.cjs')
  if (!existsSync(daemon)) {
    throw new CliFault('service_not_built', `${daemon} is missing: a service runs the built program`, {
      next: 'npm run build',
    })
  }
  return [lastingNode(env, process.execPath), ...NODE_FLAGS, daemon, `${SERVICE}=${service}`]
}

/** A stable path of this Node on the search path, such as `/usr/bin/node`; else the program itself. */
export function lastingNode(env: Env, program: string): string {
  const real = realOf(program)
  const named = lastingFolders(env)
    .map(folder => join(folder, 'node'))
    .find(file => realOf(file) === real)
  return named ?? program
}

/** Folders of the search path, without temporary ones of a shell, a session or a package. */
export function lastingFolders(env: Env): string[] {
  const passing = [env.XDG_RUNTIME_DIR, '/run', '/tmp', env.TMPDIR, tmpdir()].filter(isText)
  const isPassing = (folder: string) =>
    passing.some(parent => folder === parent || folder.startsWith(`${parent.replace(/\/$/, '')}/`)) ||
    /\/node_modules\/|\/_npx\/|\/fnm_multishells\//.test(`${folder}/`)
  const folders = (env.PATH ?? '')
    .split(':')
    .filter(folder => isAbsolute(folder) && !isPassing(folder) && opens(folder))
  return [...new Set(folders)]
}

const isText = (text: string | undefined): text is string => text !== undefined && text !== ''

/** The search path of the service: that of the caller, and the folder of Node. */
export function servicePath(env: Env, node: string): string {
  return [...new Set([...lastingFolders(env), dirname(node)])].join(':')
}

function opens(folder: string): boolean {
  try {
    accessSync(folder, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function realOf(file: string): string | undefined {
  try {
    return realpathSync(file)
  } catch {
    return undefined
  }
}
