import { client as connect, type Element, type XmppClient, xml } from '@xmpp/client'

const MS = 20_000

/** A message that a person got. */
export interface Got {
  readonly from: string
  readonly type: string
  readonly id: string
  readonly body: string
  /** Id of the message that it corrects. */
  readonly replaces: string | undefined
  readonly delayed: boolean
}

/** A person with an account of XMPP. */
export class Person {
  readonly got: Got[] = []
  /** Who showed that they write, the latest last. */
  readonly composing: string[] = []
  readonly #watchers = new Set<() => void>()
  #ids = 0

  private constructor(
    readonly address: string,
    private readonly client: XmppClient,
  ) {}

  static async login(port: number, user: string, password: string): Promise<Person> {
    const client = connect({
      service: `xmpp://127.0.0.1:${port}`,
      domain: 'localhost',
      resource: 'home',
      timeout: MS,
      credentials: (authenticate, mechanisms) =>
        authenticate({ username: user, password }, mechanisms.includes('PLAIN') ? 'PLAIN' : (mechanisms[0] ?? '')),
    })
    client.reconnect.stop()
    client.on('error', () => {})
    const person = new Person(`${user}@localhost`, client)
    client.on('stanza', (stanza: Element) => person.#add(stanza))
    // Its stream management miscounts what comes before it is enabled.
    const enabled = new Promise<void>(resolve => {
      client.on('nonza', (element: Element) => element.is('enabled', 'urn:xmpp:sm:3') && resolve())
    })
    await client.start()
    await enabled
    await client.send(xml('presence'))
    return person
  }

  send(stanza: Element): Promise<void> {
    return this.client.send(stanza)
  }

  async say(to: string, text: string, id = `${this.address}-${++this.#ids}`, ...more: Element[]): Promise<string> {
    await this.send(xml('message', { to, type: 'chat', id }, xml('body', {}, text), ...more))
    return id
  }

  async sayIn(room: string, text: string, ...more: Element[]): Promise<void> {
    const id = `${this.address}-${++this.#ids}`
    await this.send(xml('message', { to: room, type: 'groupchat', id }, xml('body', {}, text), ...more))
  }

  /** Enters a room; the first one there makes it. */
  async join(room: string, nick: string): Promise<void> {
    const joined = this.#once(
      stanza => stanza.name === 'presence' && stanza.attrs.from === `${room}/${nick}`,
      `to be in ${room}`,
    )
    await this.send(xml('presence', { to: `${room}/${nick}` }, xml('x', { xmlns: 'http://jabber.org/protocol/muc' })))
    await joined
  }

  /** Takes another nick in a room. */
  rename(room: string, nick: string): Promise<void> {
    return this.join(room, nick)
  }

  /** Everybody may see who is who. */
  showAddresses(room: string): Promise<void> {
    return this.configure(room, { 'muc#roomconfig_whois': 'anyone' })
  }

  /** Sets up a room that it owns. */
  async configure(room: string, fields: Readonly<Record<string, string>>): Promise<void> {
    const field = (name: string, value: string) => xml('field', { var: name }, xml('value', {}, value))
    const form = xml(
      'x',
      { xmlns: 'jabber:x:data', type: 'submit' },
      field('FORM_TYPE', 'http://jabber.org/protocol/muc#roomconfig'),
      Object.entries(fields).map(([name, value]) => field(name, value)),
    )
    const owner = 'http://jabber.org/protocol/muc#owner'
    await this.ask(xml('iq', { type: 'set', to: room }, xml('query', { xmlns: owner }, form)))
  }

  /** Puts somebody out of a room. */
  async kick(room: string, nick: string): Promise<void> {
    const admin = 'http://jabber.org/protocol/muc#admin'
    const item = xml('item', { nick, role: 'none' })
    await this.ask(xml('iq', { type: 'set', to: room }, xml('query', { xmlns: admin }, item)))
  }

  ask(stanza: Element): Promise<Element> {
    return this.client.iqCaller.request(stanza, MS)
  }

  /** Resolves when the server has processed everything that went before. */
  async settled(): Promise<void> {
    await this.ask(xml('iq', { type: 'get', to: 'localhost' }, xml('ping', { xmlns: 'urn:xmpp:ping' })))
  }

  /** Resolves with the first message that the condition holds for. */
  hears(holds: (got: Got) => boolean, what = 'a message'): Promise<Got> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.got.find(holds)
        if (found === undefined) return
        this.#watchers.delete(look)
        clearTimeout(timer)
        resolve(found)
      }
      const timer = setTimeout(() => {
        this.#watchers.delete(look)
        reject(new Error(`waited for ${what}, got only ${JSON.stringify(this.got.slice(-10))}`))
      }, MS)
      this.#watchers.add(look)
      look()
    })
  }

  async leave(): Promise<void> {
    await this.client.stop().catch(() => {})
  }

  #once(holds: (stanza: Element) => boolean, what: string): Promise<Element> {
    return new Promise((resolve, reject) => {
      const listener = (stanza: Element) => {
        if (!holds(stanza)) return
        this.client.off('stanza', listener)
        clearTimeout(timer)
        resolve(stanza)
      }
      const timer = setTimeout(() => {
        this.client.off('stanza', listener)
        reject(new Error(`waited for ${what}`))
      }, MS)
      this.client.on('stanza', listener)
    })
  }

  #add(stanza: Element): void {
    if (stanza.getChild('composing', 'http://jabber.org/protocol/chatstates'))
      this.composing.push(stanza.attrs.from ?? '')
    const body = stanza.getChildText('body')
    if (stanza.name !== 'message' || body === null) return
    const { from = '', type = 'normal', id = '' } = stanza.attrs
    const replaces = stanza.getChild('replace', 'urn:xmpp:message-correct:0')?.attrs.id
    this.got.push({ from, type, id, body, replaces, delayed: stanza.getChild('delay') !== undefined })
    for (const look of [...this.#watchers]) look()
  }
}
