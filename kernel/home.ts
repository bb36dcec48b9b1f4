import { constants } from 'node:fs'
import { access, chmod, mkdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { iso } from './clock.js'
import { Fault } from './errors.js'
import type { ListenerInfo } from './host/view.js'
import type { Home } from './plugin-kernel.js'

/** Bytes of a Unix socket path that every system takes. */
const SOCKET_PATH_MAX = 107

/** Creates what is missing of a home directory, 0700 throughout, and returns its paths. */
export async function prepareHome(root: string): Promise<Home> {
  const wanted = path.resolve(root)
  await mkdir(wanted, { recursive: true, mode: 0o700 })
  const real = await realpath(wanted)
  await chmod(real, 0o700)
  await access(real, constants.W_OK).catch(() => {
    throw new Fault('home_not_writable', 500, `the home ${real} cannot be written`, {
      next: `chown or choose another SVC_HOME`,
    })
  })
  const home = homeOf(real)
  await mkdir(home.logs, { recursive: true, mode: 0o700 })
  await mkdir(home.path('cache'), { recursive: true, mode: 0o700 })
  return home
}

/** The paths of a home without touching it. */
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
  throw new Fault(
    'socket_path_too_long',
    500,
    `the socket path has ${bytes} bytes, at most ${SOCKET_PATH_MAX} are possible: ${socket}`,
    { next: 'set daemon.socket in config.json to a shorter path' },
  )
}

/** Text of the file by which clients find a running daemon; port 0 when it does not listen on TCP. */
export function discovery(listeners: readonly ListenerInfo[], pid: number, startedAt: number): string {
  const tcp = listeners.find(listener => listener.door === 'tcp')
  return `${JSON.stringify({ pid, port: tcp?.door === 'tcp' ? tcp.port : 0, started_at: iso(startedAt) })}\n`
}
