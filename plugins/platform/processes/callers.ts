import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import type { Caller } from './api.js'
import { socketsOf } from './inspect.js'
import { descriptorOf, findPeerPid } from './peer-pid.js'
import type { Spawner } from './spawner.js'

/** Finds out whether connections come from processes that this daemon started. */
export class Callers {
  /** Cached, because the peer of a connection does not change. */
  readonly #known = new WeakMap<Socket, Promise<Caller>>()
  #peerPid: ReturnType<typeof findPeerPid> | undefined

  constructor(private readonly spawner: Spawner) {}

  of(socket: object): Promise<Caller> {
    const connection = socket as Socket
    // Before the first started process there is nothing to look for.
    if (!this.spawner.hasStarted) return Promise.resolve(OUTSIDE)
    const known = this.#known.get(connection) ?? this.#identify(connection)
    this.#known.set(connection, known)
    return known
  }

  async #identify(connection: Socket): Promise<Caller> {
    const { remotePort, localPort } = connection
    if (remotePort !== undefined && localPort !== undefined) return this.#overTcp(remotePort, localPort)
    this.#peerPid ??= findPeerPid()
    const peerPid = this.#peerPid
    if (typeof peerPid === 'string') return { status: 'untold', why: peerPid }
    const descriptor = descriptorOf(connection)
    const pid = descriptor === undefined ? undefined : peerPid(descriptor)
    return pid === undefined ? GONE : this.spawner.descentOf(pid)
  }

  /** The table of connections does not contain pids, so the few descendants are searched for the socket. Linux only. */
  async #overTcp(remotePort: number, localPort: number): Promise<Caller> {
    const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map(file => readFile(file, 'latin1').catch(() => ''))
    const inodes = inodesOf((await Promise.all(tables)).join('\n'), remotePort, localPort)
    if (inodes.size === 0) return OUTSIDE
    for (const { pid, caller } of await this.spawner.descendants())
      if (socketsOf(pid).some(inode => inodes.has(inode))) return caller
    return OUTSIDE
  }
}

const OUTSIDE: Caller = { status: 'outside' }
const GONE: Caller = { status: 'gone' }

const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, '0')

/** Local end, far end, state, queues, timer, retransmits, user, timeout, inode; of connections from one port to the other. */
function inodesOf(table: string, from: number, to: number): ReadonlySet<string> {
  const row = new RegExp(`:${hex(from)} \\S+:${hex(to)} \\S+ \\S+ \\S+ \\S+ +\\d+ +\\d+ +(\\d+)`, 'g')
  return new Set([...table.matchAll(row)].flatMap(([, inode = '0']) => (inode === '0' ? [] : [inode])))
}
