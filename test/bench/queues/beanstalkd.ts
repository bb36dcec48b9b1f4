import { once } from 'node:events'
import net from 'node:net'
import { LEASE_MS, type Queue, times, WORK } from './queue.js'

/** A connection that sends one command and reads its reply before the next. */
class Connection {
  #text = ''
  #heard: (() => void) | undefined

  private constructor(private readonly socket: net.Socket) {
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('data', chunk => {
      this.#text += chunk
      this.#heard?.()
    })
    socket.on('error', () => this.#heard?.())
  }

  static async to(port: number): Promise<Connection> {
    const socket = net.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new Connection(socket)
  }

  /** The words of the first line of the reply, which begins with `expected`; a body behind it is taken away. */
  async ask(command: string, expected: string): Promise<string[]> {
    this.socket.write(command)
    const words = (await this.#line()).split(' ')
    if (words[0] !== expected) throw new Error(`beanstalkd: ${words.join(' ')} instead of ${expected}`)
    if (expected === 'RESERVED') await this.#line()
    return words
  }

  end(): void {
    this.socket.destroy()
  }

  async #line(): Promise<string> {
    for (let end = this.#text.indexOf('\r\n'); ; end = this.#text.indexOf('\r\n')) {
      if (end >= 0) {
        const line = this.#text.slice(0, end)
        this.#text = this.#text.slice(end + 2)
        return line
      }
      if (this.socket.destroyed) throw new Error('beanstalkd: the connection ended')
      await new Promise<void>(resolve => {
        this.#heard = resolve
      })
    }
  }
}

const FILLERS = 8

/** beanstalkd on a port. Of the three steps it writes but the last one to its log: who holds a job is in its memory alone. */
export async function beanstalkdQueue(port: number, claimants: number): Promise<Queue> {
  const connections: Connection[] = []
  while (connections.length < Math.max(claimants, FILLERS)) connections.push(await Connection.to(port))
  const of = (n: number) => connections[n] as Connection
  const put = `put 20 0 ${LEASE_MS / 1000} ${WORK.length}\r\n${WORK}\r\n`
  return {
    fill: count => times(count, FILLERS, n => of(n).ask(put, 'INSERTED')),
    cycle: async n => {
      const [, id] = await of(n).ask('reserve-with-timeout 0\r\n', 'RESERVED')
      await of(n).ask(`touch ${id}\r\n`, 'TOUCHED')
      await of(n).ask(`delete ${id}\r\n`, 'DELETED')
    },
    close: async () => {
      for (const connection of connections) connection.end()
    },
  }
}
