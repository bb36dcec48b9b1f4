import { rm } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { type Clock, iso, type Scope } from './contract/basics.js'
import type { Home, Log } from './contract/plugin-kernel.js'
import type { Room } from './contract/storage.js'
import type { HostView } from './host-view.js'
import { jsonFile } from './kit/json-file.js'
import { diskFull, isFull, spending } from './store/room.js'

/** Milliseconds between two attempts on a full disk. */
const AGAIN_MS = 10_000
/** Bytes released from the reserve for the file: one block. */
const BLOCK = 4096

/** The content of `daemon.json`; the port is 0 when the daemon does not listen on TCP. */
const Found = v.strictObject({
  pid: v.number(),
  port: v.number(),
  started_at: v.string(),
  tls: v.optional(v.literal(true)),
})

interface Telling {
  readonly home: Home
  readonly host: Pick<HostView, 'pid' | 'startedAt' | 'listeners'>
  readonly clock: Clock
  readonly log: Log
  readonly room: Room
  readonly scope: Scope
}

/**
 * Writes `daemon.json`, by which clients find a running daemon, until the scope ends. On a full disk it is written later: clients
 * find the socket without it.
 */
export async function tellWhere({ home, host, clock, log, room, scope }: Telling): Promise<void> {
  const tcp = host.listeners().find(({ door }) => door === 'tcp')
  const at = tcp?.door === 'tcp' ? { port: tcp.port, ...(tcp.tls && { tls: true as const }) } : {}
  const found = { pid: host.pid, port: 0, started_at: iso(host.startedAt), ...at }
  const file = jsonFile(home.discovery, Found, null)
  const write = () => spending(room, BLOCK, () => file.write(found))
  const later = async (): Promise<void> => {
    await clock.sleep(AGAIN_MS, scope.signal)
    await write().catch(later)
  }
  scope.defer('daemon.json', async () => {
    // Only a file with this content is removed: after the loss of the home it is the successor's.
    const there = await file.read().catch(() => null)
    if (isDeepStrictEqual(there, found)) await rm(home.discovery, { force: true })
  })
  await write().catch(error => {
    if (!isFull(error)) throw error
    log.warn(diskFull(`${home.discovery} cannot be written`, error).message)
    later().catch(() => {})
  })
}
