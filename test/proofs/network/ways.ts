// How the daemons of the proof reach their server, each by a way that can be cut.
import { execFile, spawnSync } from 'node:child_process'
import net from 'node:net'
import { promisify } from 'node:util'

/** The way of one daemon to the server. */
export interface Way {
  /** Where the server is, as the daemon knows it. */
  readonly url: string
  /** Command that the daemon is started through. */
  readonly through: readonly string[]
  cut(isCut: boolean): Promise<void>
  close(): Promise<void>
}

/** A proxy in this process: connections that are cut are closed, and new ones refused. */
export async function proxyTo(port: number): Promise<Way> {
  const sockets = new Set<net.Socket>()
  let isCut = false
  const listener = net.createServer(socket => {
    if (isCut) return socket.destroy()
    const further = net.connect(port, '127.0.0.1')
    for (const [from, to] of [
      [socket, further],
      [further, socket],
    ] as const) {
      sockets.add(from)
      from
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(from)
          to.destroy()
        })
      from.pipe(to)
    }
  })
  const cut = async (wanted: boolean) => {
    isCut = wanted
    if (wanted) for (const socket of sockets) socket.destroy()
  }
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  return {
    url: `nats://127.0.0.1:${(listener.address() as net.AddressInfo).port}`,
    through: [],
    cut,
    close: async () => {
      await cut(true)
      listener.close()
    },
  }
}

const run = promisify(execFile)
const ip = (...args: string[]) =>
  run('ip', args, { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` } })

/** Hosts of their own: a network namespace for each daemon, joined to a bridge that the server listens at. */
export class Hosts {
  readonly #bridge = `svcp${process.pid}`
  readonly #subnet = `10.${200 + (process.pid % 50)}.${Math.floor(process.pid / 50) % 250}`
  readonly #spaces: string[] = []

  /** Address of the server. */
  get address(): string {
    return `${this.#subnet}.1`
  }

  /** @throws Error of `ip`; only root may do this */
  async open(): Promise<void> {
    await ip('link', 'add', this.#bridge, 'type', 'bridge')
    await ip('addr', 'add', `${this.address}/24`, 'dev', this.#bridge)
    await ip('link', 'set', this.#bridge, 'up')
  }

  /** @param n from 0: the place of the host in its network */
  async host(n: number, port: number): Promise<Way> {
    const space = `${this.#bridge}-${n}`
    const [outside, inside] = [`${this.#bridge}o${n}`, `${this.#bridge}i${n}`]
    await ip('netns', 'add', space)
    this.#spaces.push(space)
    await ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside)
    await ip('link', 'set', inside, 'netns', space)
    await ip('link', 'set', outside, 'master', this.#bridge, 'up')
    await ip('-n', space, 'addr', 'add', `${this.#subnet}.${n + 2}/24`, 'dev', inside)
    await ip('-n', space, 'link', 'set', inside, 'up')
    await ip('-n', space, 'link', 'set', 'lo', 'up')
    return {
      url: `nats://${this.address}:${port}`,
      through: ['ip', 'netns', 'exec', space],
      cut: async isCut => {
        await ip('link', 'set', outside, isCut ? 'down' : 'up')
      },
      close: async () => {},
    }
  }

  /** At once, for a process that ends. */
  close(): void {
    for (const space of this.#spaces) spawnSync('ip', ['netns', 'del', space])
    spawnSync('ip', ['link', 'del', this.#bridge])
    this.#spaces.length = 0
  }
}
