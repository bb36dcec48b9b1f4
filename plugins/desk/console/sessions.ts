import { hash, timingSafeEqual } from 'node:crypto'
import { column, table } from '../../../kernel/kit/table.js'
import { type Clock, type Db, type Ids, iso, type Migration } from '../../../kernel/plugin.js'
import type { ConsoleSession } from '../../../schemas/daemon/console.js'
import { pushMigration, subscriptions } from './push/subscriptions.js'

const DAY_MS = 86_400_000
/** A session ends this long after its last request. */
const IDLE_MS = 7 * DAY_MS
/** A session ends this long after its login, used or not. */
export const LONGEST_MS = 30 * DAY_MS
const LINK_MS = 5 * 60_000
const MOST_LINKS = 20
const MOST_SESSIONS = 100
/** Minimum time in milliseconds between two writes of a session's last use. */
const NOTE_MS = 5 * 60_000

export const migrations: readonly Migration[] = [
  {
    id: '001',
    sql: `CREATE TABLE console_session (
        id TEXT PRIMARY KEY, cookie_sha256 BLOB NOT NULL, key_sha256 BLOB NOT NULL,
        created_at INTEGER NOT NULL, used_at INTEGER NOT NULL
      ) STRICT`,
  },
  pushMigration,
]

const { bytes, text, time } = column

export const sessions = table('console_session', {
  id: text(),
  cookie_sha256: bytes(),
  key_sha256: bytes(),
  created_at: time(),
  used_at: time(),
})

interface Session {
  readonly id: string
  readonly cookieDigest: Uint8Array
  readonly keyDigest: Uint8Array
  readonly createdAt: number
  usedAt: number
  notedAt: number
}

const digestOf = (secret: string): Buffer => hash('sha256', secret, 'buffer')
const matches = (secret: string, digest: Uint8Array): boolean => timingSafeEqual(digestOf(secret), digest)
const endOf = ({ createdAt, usedAt }: Session): number => Math.min(createdAt + LONGEST_MS, usedAt + IDLE_MS)

/** `<id>.<secret>` in the cookie: the id finds the stored hashes. */
const COOKIE = /^(con_[0-9a-f]{16})\.([0-9a-f]{64})$/

/** One-time links and sessions of browsers. The daemon stores only hashes of codes, cookies and keys. */
export class Sessions {
  readonly #sessions = new Map<string, Session>()
  /** End of each link by the hash of its code. A restart loses links, which last only minutes. */
  readonly #links = new Map<string, number>()

  constructor(
    private readonly db: Db,
    private readonly clock: Clock,
    private readonly ids: Ids,
  ) {}

  async load(): Promise<void> {
    for (const row of sessions.all(this.db, {}, 'ORDER BY created_at, id'))
      this.#sessions.set(row.id, {
        id: row.id,
        cookieDigest: row.cookie_sha256,
        keyDigest: row.key_sha256,
        createdAt: row.created_at,
        usedAt: row.used_at,
        notedAt: row.used_at,
      })
    await this.end(this.#past())
  }

  /** Makes a link. Beyond the maximum, the oldest ones end. */
  link(): { readonly code: string; readonly expiresAt: number } {
    const code = this.ids.hex(32)
    const expiresAt = this.clock.now() + LINK_MS
    this.#links.set(digestOf(code).toString('hex'), expiresAt)
    for (const [key, end] of this.#links)
      if (end <= this.clock.now() || this.#links.size > MOST_LINKS) this.#links.delete(key)
    return { code, expiresAt }
  }

  /** Uses up a link; undefined if it is unknown, used or expired. */
  async begin(code: string): Promise<{ cookie: string; key: string; expiresAt: number } | undefined> {
    const digest = digestOf(code).toString('hex')
    const end = this.#links.get(digest)
    this.#links.delete(digest)
    if (end === undefined || end <= this.clock.now()) return undefined
    const id = this.ids.id('con')
    const [secret, key, now] = [this.ids.hex(32), this.ids.hex(32), this.clock.now()]
    const session = {
      ...{ id, cookieDigest: digestOf(secret), keyDigest: digestOf(key) },
      ...{ createdAt: now, usedAt: now, notedAt: now },
    }
    const others = [...this.#sessions.values()].sort((a, b) => a.usedAt - b.usedAt)
    await this.end([...this.#past(), ...others.slice(0, Math.max(0, others.length + 1 - MOST_SESSIONS)).map(s => s.id)])
    this.#sessions.set(id, session)
    try {
      await this.db.tx(t =>
        sessions.insert(t, {
          ...{ id, cookie_sha256: session.cookieDigest, key_sha256: session.keyDigest },
          ...{ created_at: now, used_at: now },
        }),
      )
    } catch (error) {
      this.#sessions.delete(id)
      throw error
    }
    return { cookie: `${id}.${secret}`, key, expiresAt: endOf(session) }
  }

  /** Id of the session with this cookie and key. */
  find(cookie: string, key: string): string | undefined {
    const [, id = '', secret = ''] = COOKIE.exec(cookie) ?? []
    const session = this.#sessions.get(id)
    if (!session || endOf(session) <= this.clock.now()) return undefined
    if (!matches(secret, session.cookieDigest) || !matches(key, session.keyDigest)) return undefined
    this.#note(session)
    return id
  }

  has(id: string): boolean {
    return this.#sessions.has(id)
  }

  /** Whether a session has not ended. */
  isOpen(id: string): boolean {
    const session = this.#sessions.get(id)
    return session !== undefined && endOf(session) > this.clock.now()
  }

  list(): ConsoleSession[] {
    return [...this.#sessions.values()]
      .filter(session => endOf(session) > this.clock.now())
      .map(session => ({
        id: session.id,
        created_at: iso(session.createdAt),
        last_used: iso(session.usedAt),
        expires_at: iso(endOf(session)),
      }))
  }

  /** Ends sessions at once; resolves when that is durable. */
  async end(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    for (const id of ids) this.#sessions.delete(id)
    await this.db.tx(t => {
      for (const id of ids) {
        sessions.delete(t, { id })
        subscriptions.delete(t, { session_id: id })
      }
    })
  }

  endLinks(): void {
    this.#links.clear()
  }

  #past(): string[] {
    return [...this.#sessions.values()].filter(session => endOf(session) <= this.clock.now()).map(({ id }) => id)
  }

  #note(session: Session): void {
    session.usedAt = this.clock.now()
    if (session.usedAt - session.notedAt < NOTE_MS) return
    session.notedAt = session.usedAt
    // A lost write can only end the session too early, so its failure does not affect the request.
    void this.db.tx(t => sessions.update(t, { id: session.id }, { used_at: session.usedAt })).catch(() => {})
  }
}
