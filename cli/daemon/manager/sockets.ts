import { fstatSync, statSync } from 'node:fs'
import { SocketAddress } from 'node:net'
import { endianness } from 'node:os'
import { Fault } from '../../../kernel/contract/errors.js'
import type { InheritedSockets } from '../../../kernel/index.js'
import { lastError, systemCall } from '../../../kernel/kit/system-calls.js'

/** The first inherited descriptor, and the maximum number of them. */
const FIRST = 3
const MOST = 16

/** Constants of Linux. */
const SOL_SOCKET = 1
const SO_TYPE = 3
const SO_ACCEPTCONN = 30
const SOCK_STREAM = 1
const AF_UNIX = 1
const AF_INET = 2
const AF_INET6 = 10
const F_DUPFD_CLOEXEC = 1030

/** A listening socket, as the system describes it. */
type Described =
  | { readonly is: 'unix'; readonly path: string }
  | { readonly is: 'tcp'; readonly host: string; readonly port: number }

const wrong = (fd: number, why: string, next = 'svc service install --force') =>
  new Fault('listen_fd_wrong', 500, `descriptor ${fd}, which the service manager handed over, ${why}`, { next })

/**
 * The sockets inherited from a manager (sd_listen_fds(3)): at most one Unix and one TCP socket. Undefined without any, and when the
 * variables belong to a parent process, whose descriptors are not inherited.
 * @param self pid of this process
 * @throws Fault `listen_fd_wrong` for a socket that cannot be served
 */
export function inheritedSockets(
  env: Readonly<Record<string, string | undefined>>,
  self: number,
): InheritedSockets | undefined {
  if (env.LISTEN_PID !== String(self)) return undefined
  const count = Number(env.LISTEN_FDS)
  if (!Number.isInteger(count) || count < 1) return undefined
  if (count > MOST) throw wrong(FIRST + MOST, `is one of ${count}; a daemon has one Unix socket and one of TCP`)
  let found: InheritedSockets = {}
  for (let fd = FIRST; fd < FIRST + count; fd++) {
    const described = describe(fd)
    const take = () => duplicate(fd)
    if (described.is === 'unix') {
      if (found.socket) throw wrong(fd, 'is a second Unix socket; a daemon has one')
      found = { ...found, socket: { path: checkedPath(fd, described.path), take } }
    } else {
      if (found.tcp) throw wrong(fd, `is a second TCP socket (${described.host}:${described.port}); a daemon has one`)
      found = { ...found, tcp: { host: described.host, port: described.port, take } }
    }
  }
  return found
}

/**
 * Write access to the socket gives operator rights, and connections made before its mode was restricted would still be in its
 * queue.
 */
function checkedPath(fd: number, path: string): string {
  if (path === '') throw wrong(fd, 'is a Unix socket without a path; set ListenStream= to the socket of the home')
  const file = statSync(path, { throwIfNoEntry: false })
  if (!file?.isSocket()) throw wrong(fd, `listens on ${path}, which no longer exists`)
  if ((file.mode & 0o077) !== 0)
    throw wrong(
      fd,
      `listens on ${path}, which other users can write to; set SocketMode=0600 and start the socket again`,
    )
  return path
}

function describe(fd: number): Described {
  if (!isSocket(fd)) throw wrong(fd, 'is not a socket')
  if (option(fd, SO_TYPE) !== SOCK_STREAM) throw wrong(fd, 'takes datagrams; set ListenStream=, not ListenDatagram=')
  if (option(fd, SO_ACCEPTCONN) !== 1) throw wrong(fd, 'is a connection; set Accept=no')
  const getsockname = systemCall('int getsockname(int fd, void *address, void *size)')
  const bytes = Buffer.alloc(128)
  const size = new Uint32Array([bytes.length])
  if (getsockname(fd, bytes, size) !== 0) throw wrong(fd, `has no address (${lastError()})`)
  const family = endianness() === 'LE' ? bytes.readUInt16LE(0) : bytes.readUInt16BE(0)
  if (family === AF_UNIX) {
    const path = bytes.subarray(2, size[0])
    const end = path.indexOf(0)
    return { is: 'unix', path: path.toString('utf8', 0, end < 0 ? path.length : end) }
  }
  if (family === AF_INET) return { is: 'tcp', host: bytes.subarray(4, 8).join('.'), port: bytes.readUInt16BE(2) }
  if (family === AF_INET6) return { is: 'tcp', host: ipv6(bytes.subarray(8, 24)), port: bytes.readUInt16BE(2) }
  throw wrong(fd, `is of the address family ${family}; a daemon listens on a Unix socket or on TCP`)
}

function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket()
  } catch {
    return false
  }
}

function option(fd: number, name: number): number {
  const getsockopt = systemCall('int getsockopt(int fd, int level, int name, void *value, void *size)')
  const value = new Int32Array(1)
  if (getsockopt(fd, SOL_SOCKET, name, value, new Uint32Array([4])) !== 0)
    throw wrong(fd, `cannot be queried (${lastError()})`)
  return value[0] ?? 0
}

/** The address in its shortest form, as Node writes it. */
function ipv6(bytes: Buffer): string {
  const words = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(i * 2).toString(16))
  return new SocketAddress({ address: words.join(':'), family: 'ipv6' }).address
}

/** Duplicated because a listener closes its descriptor, and a later listener may need the socket again. */
function duplicate(fd: number): number {
  const fcntl = systemCall('int fcntl(int fd, int command, int least)')
  const copy = fcntl(fd, F_DUPFD_CLOEXEC, FIRST)
  if (copy < 0) throw wrong(fd, `cannot be reopened (${lastError()})`)
  return copy
}
