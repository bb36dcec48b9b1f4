import { rm } from 'node:fs/promises'
import { faultOf, type Host, iso, messageOf, type PluginKernel } from '../../kernel/plugin.js'
import type { Files } from '../files/api.js'

/** Milliseconds between two tries on a full disk. */
const AGAIN_MS = 10_000

/** Keeps the file by which clients find a running daemon, `daemon.json`, for as long as it listens. */
export class DiscoveryService {
  constructor(private readonly kernel: PluginKernel<{ host: typeof Host; file: typeof Files }>) {}

  /** After a reload the doors are open already. */
  async start(): Promise<void> {
    if (this.kernel.needs.host.listeners().length > 0) await this.tell()
  }

  /** Writes the file; without room on the disk later, for the socket is found without it. */
  async tell(): Promise<void> {
    const { home, log, needs, scope } = this.kernel
    const file = needs.file('daemon.json')
    const text = this.#text()
    scope.defer('daemon.json', async () => {
      // A daemon that lost its home finds the file of its successor.
      if ((await file.read()) === text) await rm(home.discovery, { force: true })
    })
    await file.write(text).catch(error => {
      if (faultOf(error).code !== 'disk_full') throw error
      log.warn(messageOf(error))
      void this.#later(() => file.write(text)).catch(() => {})
    })
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

  /** Port 0 when the daemon does not listen on TCP. */
  #text(): string {
    const { host } = this.kernel.needs
    const tcp = host.listeners().find(listener => listener.door === 'tcp')
    const { port, ...more } = tcp?.door === 'tcp' ? { port: tcp.port, ...(tcp.tls ? { tls: true } : {}) } : { port: 0 }
    return `${JSON.stringify({ pid: host.pid, port, started_at: iso(host.startedAt), ...more })}\n`
  }
}
