import irc, { type Spoken } from 'irc-framework'

const MS = 20_000

/** A person on a network of IRC. */
export class Person {
  readonly lines: { readonly nick: string; readonly target: string; readonly message: string }[] = []
  readonly #client = new irc.Client()
  readonly #watchers = new Set<() => void>()

  static async join(port: number, nick: string, ...channels: string[]): Promise<Person> {
    const person = new Person()
    const client = person.#client
    client.on('privmsg', ({ nick, target, message }: Spoken) => person.#add({ nick, target, message }))
    const options = { host: '127.0.0.1', port, nick, username: nick, gecos: nick, auto_reconnect: false, account: {} }
    client.connect({ ...options, ping_interval: 0, ping_timeout: 0 })
    await new Promise<void>((resolve, reject) => {
      client.on('registered', () => resolve())
      client.on('nick in use', () => reject(new Error(`${nick} is taken`)))
      client.on('close', () => reject(new Error('no connection')))
    })
    for (const channel of channels) {
      const joined = new Promise<void>(resolve => client.once('userlist', () => resolve()))
      person.raw(`JOIN ${channel}`)
      await joined
    }
    return person
  }

  get nick(): string {
    return this.#client.user.nick
  }

  raw(line: string): void {
    this.#client.connection.write(line)
  }

  say(target: string, text: string): void {
    this.raw(`PRIVMSG ${target} :${text}`)
  }

  on(event: string, listener: (event: never) => void): void {
    this.#client.on(event, listener as (...args: unknown[]) => void)
  }

  once(event: string): Promise<unknown> {
    return new Promise(resolve => this.#client.once(event, resolve))
  }

  /** Resolves with the lines up to the first that the condition holds for. */
  hears(holds: (message: string) => boolean): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.lines.find(({ message }) => holds(message))
        if (found === undefined) return
        this.#watchers.delete(look)
        clearTimeout(timer)
        resolve(found.message)
      }
      const timer = setTimeout(() => {
        this.#watchers.delete(look)
        reject(new Error(`heard only ${JSON.stringify(this.lines.slice(-10))}`))
      }, MS)
      this.#watchers.add(look)
      look()
    })
  }

  /** Resolves when the server has processed everything that went before. */
  async settled(): Promise<void> {
    const pong = this.once('pong')
    this.#client.ping('settled')
    await pong
  }

  leave(): Promise<void> {
    const closed = new Promise<void>(resolve => this.#client.on('close', () => resolve()))
    if (!this.#client.connected) return Promise.resolve()
    this.#client.quit('bye')
    return closed
  }

  #add(line: { nick: string; target: string; message: string }): void {
    this.lines.push(line)
    for (const look of [...this.#watchers]) look()
  }
}
