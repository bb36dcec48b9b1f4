import { constants, statSync } from 'node:fs'
import { access, chmod, mkdir, realpath } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Fault, messageOf } from './contract/errors.js'
import type { Home } from './contract/plugin-kernel.js'
import { isUnsupported } from './kit/system-calls.js'

/** Maximum bytes of a Unix socket path on all systems. */
const SOCKET_PATH_MAX = 107

/** Creates missing folders of a home, 0700 throughout, and returns its paths. */
export async function prepareHome(root: string): Promise<Home> {
  let real = path.resolve(root)
  try {
    await mkdir(real, { recursive: true, mode: 0o700 })
    real = await realpath(real)
    checkOwner(real)
    await access(real, constants.W_OK)
    const home = homeOf(real)
    await chmod(real, 0o700).catch(error => {
      // Some file systems have fixed modes; doctor checks the actual ones.
      if (!isUnsupported(error)) throw error
    })
    for (const folder of [home.logs, home.path('cache')]) await mkdir(folder, { recursive: true, mode: 0o700 })
    return home
  } catch (cause) {
    if (cause instanceof Fault) throw cause
    const text = `the home ${real} cannot be written: ${messageOf(cause)}`
    const next = 'mount it for writing or change its permissions, or choose another SVC_HOME'
    throw new Fault('home_not_writable', 500, text, { next, cause })
  }
}

/**
 * Refuses the home of another user: that user could not read files written by this process, and requests through the home would run
 * with this user's rights. A missing home has no owner yet.
 * @throws Fault `home_owner_mismatch`
 */
export function checkOwner(home: string): void {
  const owner = statSync(home, { throwIfNoEntry: false })?.uid
  const { uid, username } = os.userInfo()
  if (owner === undefined || uid === -1 || owner === uid) return
  const text = `the home ${home} belongs to another user (uid ${owner}), not to the one that starts the daemon (${username}, uid ${uid})`
  const next = `start the daemon as the owner of the home, \`sudo -u '#${owner}' svc daemon start\`, or choose another home with SVC_HOME`
  throw new Fault('home_owner_mismatch', 500, text, { next })
}

/** The paths of a home, without any access to it. */
export function homeOf(root: string): Home {
  const below = (...parts: string[]) => {
    const joined = path.join(root, ...parts)
    if (joined !== root && !joined.startsWith(root + path.sep)) {
      throw new Fault('path_escape', 400, `${parts.join('/')} leaves the home directory`)
    }
    return joined
  }
  return {
    root,
    database: below('svc.db'),
    socket: below('daemon.sock'),
    discovery: below('daemon.json'),
    config: below('config.json'),
    logs: below('logs'),
    path: below,
  }
}

/** Refuses a socket path that does not fit into the system's address structure. */
export function checkSocketPath(socket: string): string {
  const bytes = Buffer.byteLength(socket)
  if (bytes <= SOCKET_PATH_MAX) return socket
  const text = `the socket path has ${bytes} bytes, at most ${SOCKET_PATH_MAX} are possible: ${socket}`
  throw new Fault('socket_path_too_long', 500, text, { next: 'set daemon.socket in config.json to a shorter path' })
}
