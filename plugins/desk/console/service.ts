import { type Actor, type Fault, type Incoming, iso, operator } from '../../../kernel/plugin.js'
import { ConsoleErrors } from './api.js'
import { Files } from './files.js'
import type { K } from './needs.js'
import { Push } from './push/push.js'
import { LONGEST_MS, Sessions } from './sessions.js'

/** Header with the key of the session. */
export const KEY_HEADER = 'x-svc-console'

type Headers = Incoming['headers']

/** The console: its files, and the sessions of browsers. */
export class ConsoleService {
  readonly files = new Files()
  readonly push: Push
  readonly #sessions: Sessions
  #port = 0
  /** The session of each caller. Ending a session aborts the open requests of its callers. */
  readonly #sessionOf = new WeakMap<Actor, string>()

  constructor(private readonly kernel: K) {
    this.#sessions = new Sessions(kernel.db, kernel.clock, kernel.ids)
    this.push = new Push(kernel, session => this.#sessions.isOpen(session))
  }

  start(): Promise<void> {
    return this.#sessions.load()
  }

  /**
   * The operator, if the request has the cookie and the key of a session and comes from the daemon's own page. Browsers send
   * cookies to every port of a host, but only pages of this origin have the key, and pages of other sites cannot send its header.
   */
  authenticate({ headers, id: cause }: Incoming): Actor | Fault | undefined {
    const key = headers[KEY_HEADER]
    if (typeof key !== 'string' || headers.authorization !== undefined) return undefined
    const id = isSameOrigin(headers) ? this.#sessions.find(cookieOf(headers, this.#cookieName()), key) : undefined
    if (id === undefined) return ConsoleErrors.console_session_ended()
    const actor: Actor = { ...operator, origin: 'web', cause }
    this.#sessionOf.set(actor, id)
    return actor
  }

  /** Makes a single-use link that opens the console. */
  link({ kind, id }: Actor) {
    if (kind !== operator.kind || id !== operator.id) throw ConsoleErrors.console_operator_required()
    const address = this.#address()
    const { code, expiresAt } = this.#sessions.link()
    // Browsers do not send fragments to servers, so no log and no Referer contains the code.
    return { link: { url: `${address}/console/#/login/${code}`, code, expires_at: iso(expiresAt) } }
  }

  /** Exchanges the code of a link for a session. */
  async begin(code: string) {
    const session = await this.#sessions.begin(code)
    if (!session) throw ConsoleErrors.console_link_invalid()
    const attributes = ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${LONGEST_MS / 1000}`]
    if (this.#listener()?.tls) attributes.push('Secure')
    const cookie = [`${this.#cookieName()}=${session.cookie}`, ...attributes].join('; ')
    return {
      status: 201 as const,
      body: { key: session.key, expires_at: iso(session.expiresAt) },
      headers: { 'set-cookie': cookie, 'cache-control': 'no-store' },
    }
  }

  /** The console session of a caller; undefined for a caller without one. */
  sessionOf(actor: Actor): string | undefined {
    return this.#sessionOf.get(actor)
  }

  list(actor: Actor) {
    const current = this.#sessionOf.get(actor)
    return { sessions: this.#sessions.list(), ...(current !== undefined && { current }) }
  }

  /** Ends a session; `current` is the caller's own. */
  async end(reference: string, actor: Actor): Promise<void> {
    const id = reference === 'current' ? (this.#sessionOf.get(actor) ?? '') : reference
    if (!this.#sessions.has(id)) throw ConsoleErrors.console_session_not_found()
    await this.#end([id], actor)
  }

  /** Ends all sessions and links. */
  async endAll(actor: Actor) {
    const ids = this.#sessions.list().map(({ id }) => id)
    this.#sessions.endLinks()
    await this.#end(ids, actor)
    return { ended: ids.length }
  }

  async #end(ids: readonly string[], but: Actor): Promise<void> {
    const ended = this.#sessions.end(ids)
    const isOver = (caller: Actor) => caller !== but && ids.includes(this.#sessionOf.get(caller) ?? '')
    this.kernel.needs.callers.dismiss(isOver, ConsoleErrors.console_session_ended())
    await ended
  }

  #listener() {
    for (const listener of this.kernel.needs.host.listeners()) if (listener.door === 'tcp') return listener
    return undefined
  }

  #address(): string {
    const listener = this.#listener()
    if (!listener) {
      const state = this.kernel.needs.tcp.current?.state
      const why = state && 'why' in state ? state.why : 'no plugin serves it'
      throw ConsoleErrors.console_unreachable(`a browser cannot reach the daemon, which serves no TCP: ${why}`)
    }
    const { host, port, tls } = listener
    // Browsers cannot open a wildcard address.
    const name = ['0.0.0.0', '::'].includes(host) ? 'localhost' : host
    return `${tls ? 'https' : 'http'}://${name.includes(':') ? `[${name}]` : name}:${port}`
  }

  /** The name includes the port, because browsers share the cookies of a host name between its ports. */
  #cookieName(): string {
    // A stopping daemon has closed the listener and still answers requests of open connections.
    this.#port = this.#listener()?.port ?? this.#port
    return `svc_console_${this.#port}`
  }
}

function cookieOf({ cookie }: Headers, name: string): string {
  const pairs = typeof cookie === 'string' ? cookie.split(/; */) : []
  return pairs.find(pair => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? ''
}

/**
 * Whether the request comes from the daemon's own page. The guards of TCP have already compared an existing `Origin` with the
 * address.
 */
function isSameOrigin({ 'sec-fetch-site': site, origin, host }: Headers): boolean {
  if (site !== undefined) return site === 'same-origin'
  return typeof origin === 'string' && URL.canParse(origin) && new URL(origin).host === host
}
