import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'

/** What a server answers to a line of its client; each text is a line. */
export type Answer = (line: string) => readonly string[]

/** A server of IRC that answers as a test says, for what ngircd does not have: accounts, tags, SASL. */
export class ScriptedServer {
  readonly lines: string[] = []
  readonly #sockets = new Set<Socket>()
  connections = 0

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  /** @param caps capabilities that it offers */
  static async start(caps: readonly string[], answer: Answer = () => []): Promise<ScriptedServer> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const scripted = new ScriptedServer(server, (server.address() as { port: number }).port)
    server.on('connection', socket => scripted.#serve(socket, caps, answer))
    return scripted
  }

  /** Sends lines to all clients. */
  send(...lines: readonly string[]): void {
    for (const socket of this.#sockets) socket.write(`${lines.join('\r\n')}\r\n`)
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.server.close()
    await once(this.server, 'close')
  }

  #serve(socket: Socket, caps: readonly string[], answer: Answer): void {
    this.connections++
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => this.#sockets.delete(socket))
    let held = ''
    let nick = '*'
    let isStarted = false
    const send = (...lines: readonly string[]) => socket.write(lines.map(line => `${line}\r\n`).join(''))
    const welcome = () => {
      if (isStarted) return
      isStarted = true
      send(`:srv 001 ${nick} :Welcome`, `:srv 005 ${nick} CHANTYPES=# PREFIX=(ov)@+ :are supported`)
    }
    socket.on('data', chunk => {
      held += chunk
      const lines = held.split('\r\n')
      held = lines.pop() ?? ''
      for (const line of lines) {
        this.lines.push(line)
        const [command = '', first = ''] = line.split(' ')
        send(...answer(line))
        if (command === 'NICK') nick = first
        if (command === 'CAP' && first === 'LS') send(`:srv CAP * LS :${caps.join(' ')}`)
        if (command === 'CAP' && first === 'REQ') send(`:srv CAP * ACK :${line.slice('CAP REQ :'.length)}`)
        if (command === 'CAP' && first === 'END') welcome()
        if (command === 'USER' && caps.length === 0) welcome()
        if (command === 'PING') send(`:srv PONG srv :${first.replace(/^:/, '')}`)
        if (command === 'JOIN') send(`:${nick}!bot@host JOIN ${first}`, `:srv 366 ${nick} ${first} :End`)
        if (command === 'QUIT') socket.end()
      }
    })
  }
}
