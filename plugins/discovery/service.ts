import { rm } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { type JsonFile, jsonFile } from '../../kernel/kit/json-file.js'
import { type DiskSpace, diskFull, type Host, isFull, iso, type PluginKernel, spending } from '../../kernel/plugin.js'

/** Milliseconds between two tries on a full disk. */
const AGAIN_MS = 10_000
/** Bytes that are freed for the file on a full disk: a block. */
const BLOCK = 4096

/** How clients find a daemon; the port is 0 when it does not listen on TCP. */
const Found = v.strictObject({
  pid: v.number(),
  port: v.number(),
  started_at: v.string(),
  tls: v.optional(v.literal(true)),
})
type Found = v.InferOutput<typeof Found>

/** Keeps the file by which clients find a running daemon, `daemon.json`, for as long as it listens. */
export class DiscoveryService {
  readonly #file: JsonFile<Found, null>

  constructor(private readonly kernel: PluginKernel<{ host: typeof Host; disk: typeof DiskSpace }>) {
    this.#file = jsonFile(kernel.home.discovery, Found, null)
  }

  /** After a reload the doors are open already. */
  async start(): Promise<void> {
    if (this.kernel.needs.host.listeners().length > 0) await this.tell()
  }

  /** Writes the file; without room on the disk later, for the socket is found without it. */
  async tell(): Promise<void> {
    const { home, log, scope } = this.kernel
    const found = this.#found()
    scope.defer('daemon.json', async () => {
      // A daemon that lost its home finds the file of its successor, and anything else was not written here.
      const there = await this.#file.read().catch(() => null)
      if (isDeepStrictEqual(there, found)) await rm(home.discovery, { force: true })
    })
    await this.#write(found).catch(error => {
      if (!isFull(error)) throw error
      log.warn(diskFull(`${home.discovery} cannot be written`, error).message)
      void this.#later(() => this.#write(found)).catch(() => {})
    })
  }

  #write(found: Found): Promise<void> {
    return spending(this.kernel.needs.disk.room, BLOCK, () => this.#file.write(found))
  }

  /** Ends when that is done, or the plugin goes. */
  async #later(write: () => Promise<void>): Promise<void> {
    const { clock, scope } = this.kernel
    for (let done = false; !done; ) {
      await clock.sleep(AGAIN_MS, scope.signal)
      done = await write().then(
        () => true,
        () => false,
      )
    }
  }

  #found(): Found {
    const { host } = this.kernel.needs
    const tcp = host.listeners().find(listener => listener.door === 'tcp')
    const { port, ...more } =
      tcp?.door === 'tcp' ? { port: tcp.port, ...(tcp.tls && { tls: true as const }) } : { port: 0 }
    return { pid: host.pid, port, started_at: iso(host.startedAt), ...more }
  }
}
