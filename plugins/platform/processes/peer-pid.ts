import type { Socket } from 'node:net'
import { systemCall } from '../../../kernel/kit/system-calls.js'
import { messageOf } from '../../../kernel/plugin.js'

/** The pid of the process that connected a Unix socket, by its descriptor on this side; undefined where the system does not say. */
export type PeerPid = (descriptor: number) => number | undefined

/** Arguments of `getsockopt`: level, name and length of the value, whose first four bytes are the pid. */
const options: Partial<Record<NodeJS.Platform, readonly [level: number, name: number, bytes: number]>> = {
  // SO_PEERCRED: pid, uid, gid.
  linux: [1, process.arch === 'ppc64' ? 21 : 17, 12],
  // LOCAL_PEERPID of SOL_LOCAL.
  darwin: [0, 2, 4],
}

/**
 * A function for the peer of a Unix socket, which Node does not provide.
 * @returns the reason as text, where there is none
 */
export function findPeerPid(): PeerPid | string {
  const option = options[process.platform]
  if (!option) return `${process.platform} does not report which process connected a Unix socket`
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
    return `the system call failed: ${messageOf(error)}`
  }
}

/** Descriptor of an open connection; Node has no public name for it. */
export function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as unknown as { _handle?: { readonly fd?: number } | null }
  return handle?.fd !== undefined && handle.fd >= 0 ? handle.fd : undefined
}
