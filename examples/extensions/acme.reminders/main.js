import { cli, describe } from 'svc/kit'
import { definePlugin, iso, routeOf, streamed } from 'svc/plugin'
import * as v from 'valibot'

/** Milliseconds that a reminder may lie ahead. */
const MOST_MS = 366 * 24 * 60 * 60_000
/** Reminders that rang are read in pages of this size. */
const PAGE = 100

const TABLES = `
CREATE TABLE acme_reminders_due (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, due_at INTEGER NOT NULL) STRICT;
CREATE TABLE acme_reminders_rang (position INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, rang_at INTEGER NOT NULL) STRICT;
`

class Reminders {
  /** Called when a reminder is set or has rung. */
  #changed = new Set()

  constructor(kernel) {
    this.kernel = kernel
  }

  async set({ text, in_ms }) {
    const { clock, db } = this.kernel
    const due = clock.now() + in_ms
    const { id } = await db.tx(t =>
      t.get('INSERT INTO acme_reminders_due (text, due_at) VALUES (?, ?) RETURNING id', [text, due]),
    )
    this.#tell()
    return { id, text, due_at: iso(due) }
  }

  /** Background loop: rings what is due, sleeps until the next one is. A restart begins with what became due meanwhile. */
  async ring(signal) {
    const { clock, db } = this.kernel
    while (!signal.aborted) {
      const [next] = db.all('SELECT id, text, due_at FROM acme_reminders_due ORDER BY due_at, id LIMIT 1')
      if (!next || next.due_at > clock.now()) {
        await this.#change(signal, next && next.due_at - clock.now())
        continue
      }
      // Rung and no longer due in one transaction: after a crash it rings once, neither twice nor never.
      await db.tx(t => {
        t.run('DELETE FROM acme_reminders_due WHERE id = ?', [next.id])
        t.run('INSERT INTO acme_reminders_rang (text, rang_at) VALUES (?, ?)', [next.text, clock.now()])
      })
      this.#tell()
    }
  }

  /** Reminders that rang behind a position, and those that ring from then on. */
  async *rang(behind, signal) {
    let last = Math.min(behind, this.newest())
    while (!signal.aborted) {
      const page = this.kernel.db.all(
        `SELECT position, text, rang_at FROM acme_reminders_rang WHERE position > ? ORDER BY position LIMIT ${PAGE}`,
        [last],
      )
      for (const { position, text, rang_at } of page) {
        last = position
        yield { id: String(position), event: 'rang', data: { text, rang_at: iso(rang_at) } }
      }
      if (page.length === 0) await this.#change(signal)
    }
  }

  newest() {
    return this.kernel.db.get('SELECT max(position) AS position FROM acme_reminders_rang').position ?? 0
  }

  #tell() {
    for (const wake of this.#changed) wake()
  }

  /** Resolves at the next change, after so many milliseconds, or when the signal aborts. */
  async #change(signal, ms) {
    const timer = new AbortController()
    const wake = () => timer.abort()
    this.#changed.add(wake)
    const either = AbortSignal.any([signal, timer.signal])
    await this.kernel.clock.sleep(ms ?? MOST_MS, either).catch(() => {})
    this.#changed.delete(wake)
  }
}

const route = routeOf(describe('Reminders'))
const Text = v.pipe(v.string(), v.minLength(1), v.maxLength(500))
const Milliseconds = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(MOST_MS))
const Rang = v.object({
  id: v.string(),
  event: v.literal('rang'),
  data: v.object({ text: v.string(), rang_at: v.string() }),
})

export default definePlugin({
  name: 'acme.reminders',
  version: '1.0.0',
  service: async () => Reminders,
}).surface({
  tables: [{ id: '001', sql: TABLES }],
  services: [{ name: 'ring', run: (service, signal) => service.ring(signal) }],
  routes: [
    route({
      method: 'POST',
      path: '/api/ext/acme.reminders/reminders',
      summary: 'Set a reminder',
      body: v.strictObject({ text: Text, in_ms: Milliseconds }),
      replies: { 201: v.object({ id: v.number(), text: v.string(), due_at: v.string() }) },
      with: [cli('acme reminders set', { args: [{ name: 'text', in: 'body' }] })],
      handle: async (service, { body }) => ({ status: 201, body: await service.set(body) }),
    }),
    route({
      method: 'GET',
      path: '/api/ext/acme.reminders/rang',
      summary: 'Follow the reminders that rang',
      headers: { 'Last-Event-ID': { required: false } },
      contentType: 'text/event-stream',
      replies: { 200: v.string() },
      frames: Rang,
      handle: (service, { headers, signal }) => {
        const behind = Number(headers['last-event-id'] ?? 0)
        return streamed(service.rang(Number.isSafeInteger(behind) ? behind : 0, signal))
      },
    }),
  ],
})
