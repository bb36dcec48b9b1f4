import type { Socket } from 'node:net'
import { systemCall } from '../../../kernel/kit/system-calls.js'
import { messageOf } from '../../../kernel/plugin.js'

/** The process that connected a Unix socket, by its descriptor on this side; undefined where the system does not tell. */
export type PeerPid = (descriptor: number) => number | undefined

/** What `getsockopt` is asked for: level and name, and how long the answer is; the pid are its first four bytes. */
const options: Partial<Record<NodeJS.Platform, readonly [level: number, name: number, bytes: number]>> = {
  // SO_PEERCRED: pid, uid, gid.
  linux: [1, process.arch === 'ppc64' ? 21 : 17, 12],
  // LOCAL_PEERPID of SOL_LOCAL.
  darwin: [0, 2, 4],
}

/**
 * Node does not tell whose process is at the other end of a Unix socket.
 * @returns why nothing can be asked, where it cannot
 */
export function findPeerPid(): PeerPid | string {
  const option = options[process.platform]
  if (!option) return `${process.platform} is not known to tell which process connected a Unix socket`
  const [level, name, bytes] = option
  try {
    const getsockopt = systemCall(
      'int getsockopt(int descriptor, int level, int name, _Out_ uint8_t *value, _Inout_ uint32_t *bytes)',
    )
    return descriptor => {
      const value = Buffer.alloc(bytes)
      const failed = getsockopt(descriptor, level, name, value, [bytes]) !== 0
      const pid = failed ? 0 : value.readInt32LE(0)
      return pid > 0 ? pid : undefined
    }
  } catch (error) {
    return `the system cannot be asked: ${messageOf(error)}`
  }
}

/** Of a connection that is open; Node has no public name for it. */
export function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as unknown as { _handle?: { readonly fd?: number } | null }
  return handle?.fd !== undefined && handle.fd >= 0 ? handle.fd : undefined
}
