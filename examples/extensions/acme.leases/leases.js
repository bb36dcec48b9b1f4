import { createHmac, timingSafeEqual } from 'node:crypto'
import { Alarm, Feed, follow, LeaseTable, Paging, positionOf, resolveSecret } from 'svc/kit'
import { iso } from 'svc/plugin'
import { finding } from 'svc/plugins/daemon'
import * as v from 'valibot'
import { Changed, DefaultSeconds, Errors, SigningKey, TABLE } from './declared.js'

/** Events that a reader of the stream is given at a time. */
const BATCH = 200
const ROW = 'key, holder, token, expires_at AS expiresAt'

/** A lease as callers see it. */
const shape = ({ key, holder, token, expiresAt }) => ({ key, holder, fence: token, expires_at: iso(expiresAt) })

export class LeaseService {
  #paging = new Paging({ place: v.string() })
  #feed = new Feed()

  constructor(kernel) {
    this.kernel = kernel
    /** May a key be claimed? Taps decide inside the transaction: `(t, { key, holder }) => fault or nothing`. */
    this.claiming = kernel.hooks.guard('claiming')
    this.table = new LeaseTable(TABLE, kernel.clock)
    this.alarm = new Alarm(kernel.clock, { retryMs: 1000 })
  }

  async claim({ key, holder, seconds }, actor) {
    // Before anything is written: a lease whose token cannot be signed would be of no use.
    const secret = await this.#secret()
    const [lease, checkpoint] = await this.kernel.db.tx(t => {
      this.#expire(t)
      this.claiming.check(t, { key, holder })
      const claimed = this.table.claim(t, key, holder, this.#milliseconds(seconds))
      this.#tell(t, 'claimed', claimed, actor)
      return [claimed, t.get('SELECT text FROM acme_leases_checkpoint WHERE key = ?', [key])?.text ?? null]
    })
    this.#setAlarm()
    return { ...shape(lease), token: signed(secret, lease), checkpoint }
  }

  /**
   * The holder's heartbeat: keeps how far it got and lets the lease last anew. The fence stands in the transaction of the write,
   * so a holder that was too slow overwrites nothing.
   */
  async beat({ token, text, seconds }) {
    const ref = await this.#verified(token)
    const lease = await this.kernel.db.tx(t => {
      this.table.fence(t, ref)
      t.run('INSERT OR REPLACE INTO acme_leases_checkpoint (key, text) VALUES (?, ?)', [ref.key, text])
      return this.table.renew(t, ref, this.#milliseconds(seconds))
    })
    this.#setAlarm()
    return shape(lease)
  }

  async release({ token }, actor) {
    const ref = await this.#verified(token)
    await this.kernel.db.tx(t => {
      const lease = this.table.fence(t, ref)
      this.table.release(t, ref)
      this.#tell(t, 'released', lease, actor)
    })
    this.#setAlarm()
  }

  /** Leases by key. A read does not wait for the alarm: what has expired is gone. */
  list({ cursor, holder, limit }, actor) {
    const of = { actor, query: { holder } }
    const after = this.#paging.after(of, cursor) ?? ''
    const found = this.kernel.db.all(
      `SELECT ${ROW} FROM ${TABLE} WHERE expires_at > ? AND key > ? AND ifnull(?, holder) = holder ORDER BY key LIMIT ?`,
      [this.kernel.clock.now(), after, holder ?? null, limit + 1],
    )
    const { rows, ...more } = this.#paging.cut(of, found, limit, ({ key }) => key)
    return { leases: rows.map(shape), ...more }
  }

  /** How many leases a holder has. @param reads the database, or the transaction of a tap */
  heldBy(reads, holder) {
    const sql = `SELECT count(*) AS held FROM ${TABLE} WHERE holder = ? AND expires_at > ?`
    return reads.get(sql, [holder, this.kernel.clock.now()]).held
  }

  /** A snapshot, unless the reader names an event behind which all is known; then changes as they come. */
  async *changes(lastEventId, signal) {
    const { db, clock, needs } = this.kernel
    const source = {
      last: () => needs.events.last(),
      next: () => this.#feed.next(),
      read: async after => {
        const upTo = needs.events.last()
        const entries = await needs.events.list({ name: Changed.name, after, limit: BATCH })
        const newest = entries.at(-1)?.seq ?? 0
        return { at: entries.length === BATCH ? newest : Math.max(newest, upTo), entries }
      },
      snapshot: () => {
        const { held } = db.get(`SELECT count(*) AS held FROM ${TABLE} WHERE expires_at > ?`, [clock.now()])
        return { at: source.last(), snapshot: { held } }
      },
    }
    for await (const { at, snapshot, entries = [] } of follow(source, positionOf(lastEventId), signal)) {
      if (snapshot) yield { id: String(at), event: 'snapshot', data: snapshot }
      for (const { seq, payload } of entries) yield { id: String(seq), event: 'changed', data: payload }
    }
  }

  /** Called by the tap on the events of this plugin, when one is on the disk. */
  changed() {
    this.#feed.wake()
  }

  /** Background loop: tells of leases that expire, at their time. A restart begins with what expired meanwhile. */
  expire(signal) {
    const sweep = async () => {
      await this.kernel.db.tx(t => this.#expire(t))
      this.#setAlarm()
    }
    const failed = error => this.kernel.log.error('expired leases stay until the next try', { error: error.message })
    this.#setAlarm()
    return this.alarm.run(signal, { fire: sweep, setBack: sweep, failed })
  }

  /** Doctor check: without its key, no lease is given and none is kept. */
  async check() {
    const [fault] = await Promise.allSettled([this.#secret()])
    if (fault.status === 'fulfilled') return []
    const item = { id: 'acme.leases.key', category: 'acme', code: 'acme_leases_key', severity: 'error' }
    return [finding({ ...item, title: 'Leases cannot be signed', message: fault.reason.message })]
  }

  #expire(t) {
    for (const lease of this.table.expire(t)) this.#tell(t, 'expired', lease, this.kernel.actor)
  }

  /** The event is written with the state that it tells of. */
  #tell(t, what, { key, holder }, actor) {
    this.kernel.needs.events.emit(t, Changed, { what, key, holder }, { actor, subject: key })
  }

  #setAlarm() {
    this.alarm.set('next', this.table.nextExpiry(this.kernel.db))
  }

  #milliseconds(seconds) {
    return (seconds ?? this.kernel.config.get(DefaultSeconds)) * 1000
  }

  /** Resolved each time and kept nowhere, so that a new key counts at once. */
  #secret() {
    return resolveSecret(this.kernel, this.kernel.config.get(SigningKey), SigningKey.path)
  }

  async #verified(token) {
    const [, key = '', fence = ''] = /^(.+)\.(\d{1,15})\.[^.]+$/.exec(token) ?? []
    const ref = { key: Buffer.from(key, 'base64url').toString(), token: Number(fence) }
    const [given, right] = [token, signed(await this.#secret(), ref)].map(text => Buffer.from(text))
    if (given.length !== right.length || !timingSafeEqual(given, right)) throw Errors.acme_lease_token_invalid()
    return ref
  }
}

/** What a holder shows: the key, the number of the lease, and the signature of both. */
function signed(secret, { key, token }) {
  const text = `${Buffer.from(key).toString('base64url')}.${token}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}
