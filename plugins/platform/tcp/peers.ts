import { type FileHandle, open, readFile } from 'node:fs/promises'
import { type Socket, SocketAddress } from 'node:net'
import path from 'node:path'
import type { Fault } from '../../../kernel/plugin.js'
import { TcpErrors } from './errors.js'

/** The user at the other end of a loopback connection, if the system reveals it. */
export type Peer = { readonly status: 'known'; readonly uid: number } | { readonly status: 'unknown' }

/** Refuses every user but the daemon's own, even root: any local user can connect to a loopback address. */
export function peerRefusal(peer: Peer): Fault | undefined {
  if (peer.status === 'unknown') {
    return TcpErrors.unauthorized_peer(
      'the user at the other end of this TCP connection cannot be determined: its socket is closed, half closed or ' +
        'in another network namespace; keep it open until the reply, or use the Unix socket',
    )
  }
  if (peer.uid === process.geteuid?.()) return undefined
  return TcpErrors.unauthorized_peer(
    `this TCP connection comes from user ${peer.uid}; the daemon answers only to the user that it runs as`,
  )
}

interface Waiting {
  readonly socket: Socket
  /** Key of the other end's row: its address and port, then ours. */
  readonly key: string
  readonly settle: (peer: Peer) => void
}

const UNKNOWN: Peer = { status: 'unknown' }
/** A row can be skipped when others leave its hash bucket between two reads. */
const ATTEMPTS = 2
/** Bytes of one read; the system returns at most a page. */
const READ_BYTES = 8192

/**
 * Identifies the user at the other end of a connection, from the connection tables of Linux. A table is read in pages off the event
 * loop, one scan at a time: connections accepted during a scan share the next one.
 */
export class PeerTable {
  readonly #peers = new WeakMap<Socket, Peer | Promise<Peer>>()
  readonly #page = Buffer.alloc(READ_BYTES)
  #waiting: Waiting[] = []
  #scanning: Promise<void> | undefined

  private constructor(private readonly files: readonly FileHandle[]) {}

  /**
   * Opens the tables; they stay open, so that peers can be identified even at the limit of descriptors. Returns the reason where
   * the system does not reveal peers.
   */
  static async open(folder = '/proc/net'): Promise<PeerTable | string> {
    const opening = ['tcp', 'tcp6'].map(name => open(path.join(folder, name)).catch(() => undefined))
    const [tcp, tcp6] = await Promise.all(opening)
    const peers = new PeerTable([tcp, tcp6].filter(file => file !== undefined))
    const why = await peers.#whyNot(tcp)
    if (why !== undefined) await peers.close()
    return why ?? peers
  }

  async #whyNot(tcp: FileHandle | undefined): Promise<string | undefined> {
    const uid = process.geteuid?.()
    const { bytesRead = 0 } = (await tcp?.read(this.#page, 0, READ_BYTES, 0).catch(() => undefined)) ?? {}
    const isTable = /\buid\b.*\binode\b/.test(this.#page.toString('latin1', 0, bytesRead))
    if (uid === undefined || !isTable)
      return 'this system does not report the user at the other end of a TCP connection'
    const overflow = await readFile('/proc/sys/kernel/overflowuid', 'utf8').catch(() => '')
    // All users without a number in this user namespace appear as this one.
    return Number.parseInt(overflow, 10) === uid
      ? `user ${uid} stands for all unmapped users of this system`
      : undefined
  }

  /** The peer of a connection; synchronous when known. The first call begins the lookup; it never rejects. */
  of(socket: Socket): Peer | Promise<Peer> {
    const known = this.#peers.get(socket)
    if (known) return known
    const found = this.#identify(socket).then(peer => {
      this.#peers.set(socket, peer)
      return peer
    })
    this.#peers.set(socket, found)
    return found
  }

  /** Closes the tables after the current scan. */
  async close(): Promise<void> {
    await this.#scanning
    await Promise.all(this.files.map(file => file.close()))
  }

  #identify(socket: Socket): Promise<Peer> {
    const { remoteAddress, remotePort, localAddress, localPort } = socket
    const key = `${mapped(remoteAddress)} ${remotePort} ${mapped(localAddress)} ${localPort}`
    return new Promise(settle => {
      this.#waiting.push({ socket, key, settle })
      this.#scanning ??= this.#scan().finally(() => {
        this.#scanning = undefined
      })
    })
  }

  async #scan(): Promise<void> {
    while (this.#waiting.length > 0) {
      let left: readonly Waiting[] = this.#waiting.splice(0)
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        for (const file of this.files) left = await this.#read(file, left).catch(() => left)
      }
      for (const { settle } of left) settle(UNKNOWN)
    }
  }

  /** Settles the connections that have ended or whose rows are in a table, which is read up to the last of them; returns the rest. */
  async #read(file: FileHandle, all: readonly Waiting[]): Promise<readonly Waiting[]> {
    let left = all
    let rest = ''
    for (let position = 0; left.length > 0; ) {
      const { bytesRead } = await file.read(this.#page, 0, READ_BYTES, position)
      if (bytesRead === 0) return left.filter(waiting => !settled(waiting, NONE))
      position += bytesRead
      const text = rest + this.#page.toString('latin1', 0, bytesRead)
      const end = text.lastIndexOf('\n') + 1
      rest = text.slice(end)
      const rows = new Map<string, number>()
      for (const port of new Set(left.map(({ socket }) => portHex(socket.localPort)))) findRows(text, end, port, rows)
      if (rows.size > 0) left = left.filter(waiting => !settled(waiting, rows))
    }
    return left
  }
}

const NONE: ReadonlyMap<string, number> = new Map()

/**
 * Settles a connection that has ended or whose other end is among the rows. The connection is checked after the read: while it
 * lasts, no other established connection can have the same two ends, so the row belongs to it.
 */
function settled({ socket, key, settle }: Waiting, rows: ReadonlyMap<string, number>): boolean {
  const uid = rows.get(key)
  if (!isConnected(socket)) settle(UNKNOWN)
  else if (uid !== undefined) settle({ status: 'known', uid })
  else return false
  return true
}

/** Checks with a system call, because `remoteAddress` is cached: this notices a reset before Node has read it. */
function isConnected(socket: Socket): boolean {
  const { _handle: handle } = socket as unknown as { _handle?: { getpeername?(into: object): number } | null }
  return handle?.getpeername?.({}) === 0
}

/** Local end, far end, state 01 (established), queues, timer, retransmits, user, timeout, inode. */
const ROW = /(\S+):(\w{4}) (\S+):(\w{4}) 01 \S+ \S+ \S+ +(\d+) +\d+ +(\d+)/y

/** An end that its process has closed has no inode, and the table assigns it to root. */
function findRows(text: string, end: number, port: string, rows: Map<string, number>): void {
  const mark = `:${port} 01 `
  for (let at = text.indexOf(mark); at >= 0 && at < end; at = text.indexOf(mark, at + 1)) {
    ROW.lastIndex = text.indexOf(': ', text.lastIndexOf('\n', at) + 1) + 2
    const [, address = '', ownPort = '', far = '', farPort = '', uid, inode] = ROW.exec(text) ?? []
    if (!inode || inode === '0') continue
    const [here, there] = [address, far].map(addressOf)
    rows.set(`${here} ${portOf(ownPort)} ${there} ${portOf(farPort)}`, Number(uid))
  }
}

/** An address as Node writes it. A client may reach an IPv4 address through an IPv6 socket: all are written as IPv6. */
const mapped = (address = '') => (address.includes(':') ? (address.split('%')[0] as string) : `::ffff:${address}`)

/** The address in a row: 32 bits at a time, in the byte order of this machine. */
function addressOf(hex: string): string {
  const words = hex.match(/.{8}/g) ?? []
  const bytes = Buffer.from(Uint32Array.from(words, word => Number.parseInt(word, 16)).buffer)
  if (bytes.length === 4) return mapped(bytes.join('.'))
  const address = bytes.toString('hex').replace(/.{4}(?!$)/g, '$&:')
  return new SocketAddress({ family: 'ipv6', address }).address
}

const portOf = (hex: string) => Number.parseInt(hex, 16)

const portHex = (port = 0) => port.toString(16).toUpperCase().padStart(4, '0')
