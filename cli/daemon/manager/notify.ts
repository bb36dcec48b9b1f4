import { lastError, systemCall } from '../../../kernel/kit/system-calls.js'

/** Linux only, as the protocol is: a nonblocking, close-on-exec datagram socket, and a send that never blocks. */
const AF_UNIX = 1
const DATAGRAM = 2 | 0o2000000 | 0o4000
const NO_WAIT = 0x40 | 0x4000
/** Bytes of `sun_path`. */
const MOST_PATH = 107

/** Sends one datagram to the service manager. @throws Error with the code of the system */
export type Send = (text: string) => void

/**
 * A sender of datagrams to the socket of sd_notify(3), whose name begins with `/` or, in the abstract namespace, with `@`. Node has
 * no datagrams on Unix sockets, and systemd-notify would be a child process, whose messages the manager must not accept.
 * @throws Error where the name is not valid or the system has no such socket
 */
export function notifier(name: string): Send {
  const path = Buffer.from(name)
  if (!/^[/@]./.test(name) || path.length > MOST_PATH) throw new Error(`${JSON.stringify(name)} is not a socket`)
  if (name.startsWith('@')) path[0] = 0
  const address = Buffer.alloc(2 + path.length + (name.startsWith('@') ? 0 : 1))
  new Uint16Array(address.buffer, address.byteOffset, 1)[0] = AF_UNIX
  path.copy(address, 2)
  const open = systemCall('int socket(int domain, int type, int protocol)')
  const sendTo = systemCall('int sendto(int fd, void *text, size_t length, int flags, void *address, uint32_t size)')
  const descriptor = open(AF_UNIX, DATAGRAM, 0)
  if (descriptor < 0) throw new Error(`the socket could not be created (${lastError()})`)
  return text => {
    const bytes = Buffer.from(text)
    if (sendTo(descriptor, bytes, bytes.length, NO_WAIT, address, address.length) < 0)
      throw new Error(`${name} did not accept ${JSON.stringify(text.split('\n')[0])} (${lastError()})`)
  }
}
