import { rm } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { jsonFile } from '../../../../kernel/kit/json-file.js'
import { SerialBy } from '../../../../kernel/kit/serial.js'
import { messageOf, type Tx, turn } from '../../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { SessionErrors } from '../api.js'
import type { SessionArchive } from '../archive/session-archive.js'
import type { K } from '../needs.js'
import type { SessionTable } from '../table.js'
import type { PromptRow } from './prompts.js'

const DAY_MS = 24 * 60 * 60_000
/** Time without activity after which the finished prompts of a session leave the catalog. */
const RESTED_MS = DAY_MS
/** Delay after a start, so that this work does not compete with it. */
const FIRST_MS = 90_000
/** Least time between two passes: sessions that come to rest soon after each other are moved together. */
const EVERY_MS = 60 * 60_000
/** Pause between two sessions, so that requests are handled in between. */
const PAUSE_MS = 5
/** Sessions per query. */
const AT_ONCE = 64
/** Two hundred prompts with their replies are far below this size. */
const MAX_BYTES = 8 * 1024 * 1024
/** Maximum number of damaged files that doctor lists. */
const MOST_NAMED = 50

const ALIVE = "('queued', 'starting', 'running')"
/** A session has finished prompts in the catalog and no others. */
const FINISHED = `EXISTS (SELECT 1 FROM sessions_prompt WHERE session_id = s.id)
  AND NOT EXISTS (SELECT 1 FROM sessions_prompt WHERE session_id = s.id AND status IN ${ALIVE})`
/** `prompts`: the rows, as JSON; `sum`: the CRC32 of that text. */
const FILE = v.object({ sum: v.number(), prompts: v.string() })

/**
 * Finished prompts are kept so that repetitions are recognised. Those of an idle session are in `prompts.json` of its folder, which
 * is valid while `prompts_moved` of the session is set. The next prompt to the session brings them back.
 *
 * Moving: write the file durably, then delete the rows and set the column in one transaction. After a kill in between, the move is
 * repeated. Restoring: insert the rows and clear the column in one transaction; a leftover file is ignored.
 */
export class PromptFiles {
  readonly #serial = new SerialBy()
  readonly #damaged = new Map<string, string>()

  constructor(
    private readonly kernel: Pick<K, 'db' | 'clock' | 'log' | 'home'>,
    private readonly table: SessionTable,
    private readonly archive: Pick<SessionArchive, 'has' | 'restore'>,
  ) {}

  /** Restores the finished prompts of a session into the catalog. @throws Fault `session_prompts_damaged` */
  async recall(id: string): Promise<void> {
    if (this.archive.has(id)) await this.archive.restore(id)
    if (this.table.get(id)?.prompts_moved == null) return
    await this.#serial.run(id, async () => {
      if (this.table.get(id)?.prompts_moved == null) return
      const prompts = await this.#read(id)
      await this.kernel.db.tx(t => {
        for (const prompt of prompts) insert(t, prompt)
        this.table.note(t, id, { prompts_moved: null })
      })
      await rm(this.#path(id), { force: true }).catch(() => {})
    })
  }

  /** Moves prompts of sessions when these have rested long enough, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.kernel
    for (let wait = FIRST_MS; ; wait = signal.aborted ? 0 : this.#untilNext()) {
      await clock.sleep(wait, signal).catch(() => {})
      if (signal.aborted) return
      await this.sweep(signal).catch(error => log.warn(`finished prompts stay in the catalog: ${messageOf(error)}`))
    }
  }

  /** Milliseconds until the next session has rested long enough. A session that is active from now on rests later than all. */
  #untilNext(): number {
    const { db, clock } = this.kernel
    const sql = `SELECT min(last_activity_at) FROM sessions_session s WHERE ${FINISHED}`
    const [first] = db.row(sql) ?? []
    const rested = typeof first === 'number' ? first + RESTED_MS - clock.now() : RESTED_MS
    return Math.min(RESTED_MS, Math.max(EVERY_MS, rested))
  }

  /** Moves the finished prompts of every idle session; resolves to the number of sessions. */
  async sweep(signal?: AbortSignal): Promise<number> {
    const { clock, log } = this.kernel
    const before = clock.now() - RESTED_MS
    let moved = 0
    for (let after: string | undefined = ''; after !== undefined && !signal?.aborted; ) {
      const ids = this.#atRest(after, before)
      after = ids.length === AT_ONCE ? ids.at(-1) : undefined
      for (const id of ids) {
        if (signal?.aborted) break
        // An unwritable folder of one session must not stop the sweep.
        const done = await this.#move(id, before).catch(error => {
          log.warn(`finished prompts of ${id} stay in the catalog: ${messageOf(error)}`)
          return false
        })
        if (done) moved++
        if (signal) await clock.sleep(PAUSE_MS, signal).catch(() => {})
        else await turn()
      }
    }
    return moved
  }

  /** Findings for `svc doctor`: unreadable prompt files. */
  findings(): DiagnosticItem[] {
    return [...this.#damaged].slice(0, MOST_NAMED).map(([id, why]) => ({
      id: `sessions.prompts.${id}`,
      code: 'session_prompts_damaged',
      category: 'sessions',
      severity: 'error' as const,
      title: 'Finished prompts of a session cannot be read',
      message: `${why}; prompts with a key or a message id are refused in ${id}, other sessions are not concerned`,
      data_freshness: 'live',
      suggested_command: command('backup list'),
      evidence: { session_id: id },
    }))
  }

  /** Sessions with finished prompts in the catalog and no others, without activity since `before`. */
  #atRest(after: string, before: number): string[] {
    const sql = `SELECT id FROM sessions_session s WHERE id > ? AND last_activity_at < ? AND ${FINISHED} ORDER BY id LIMIT ${AT_ONCE}`
    return this.kernel.db.rows(sql, [after, before]).map(([id]) => String(id))
  }

  #move(id: string, before: number): Promise<boolean> {
    const { db } = this.kernel
    const sql = 'SELECT * FROM sessions_prompt WHERE session_id = ? ORDER BY seq'
    return this.#serial.run(id, async () => {
      const rows = db.all<PromptRow>(sql, [id])
      // Prompts accepted while the file was unreadable are appended once it can be read.
      const there = this.table.get(id)?.prompts_moved == null ? [] : await this.#read(id)
      const all = [...there, ...rows]
      const prompts = JSON.stringify(all)
      if (prompts.length > MAX_BYTES / 4) throw new Error(`they have ${prompts.length} characters`)
      await this.#file(id).write({ sum: crc32(prompts), prompts })
      return db.tx(t => {
        const row = this.table.get(id)
        if (!row || row.last_activity_at >= before || !sameRows(rows, t.all<PromptRow>(sql, [id]))) return false
        t.run('DELETE FROM sessions_prompt WHERE session_id = ?', [id])
        const generation = Math.max(...all.map(prompt => prompt.generation))
        this.table.note(t, id, { prompts_moved: generation })
        return true
      })
    })
  }

  async #read(id: string): Promise<readonly PromptRow[]> {
    try {
      const found = await this.#file(id).read()
      if (found === null) throw new Error(`${this.#path(id)} is missing`)
      if (found.sum !== crc32(found.prompts)) throw new Error(`${this.#path(id)} is not as it was written`)
      const prompts = JSON.parse(found.prompts) as readonly PromptRow[]
      this.#damaged.delete(id)
      return prompts
    } catch (error) {
      const why = messageOf(error)
      if (!this.#damaged.has(id)) this.kernel.log.error(`the finished prompts of ${id} cannot be read: ${why}`)
      this.#damaged.set(id, why)
      throw SessionErrors.session_prompts_damaged(`the finished prompts of ${id} cannot be read: ${why}`, {
        cause: error,
      })
    }
  }

  readonly #path = (id: string) => this.kernel.home.path('sessions', id, 'prompts.json')
  readonly #file = (id: string) => jsonFile(this.#path(id), FILE, null, { maxBytes: MAX_BYTES })
}

function insert(t: Tx, prompt: PromptRow): void {
  const names = Object.keys(prompt)
  const marks = names.map(() => '?').join(', ')
  t.run(`INSERT OR IGNORE INTO sessions_prompt (${names.join(', ')}) VALUES (${marks})`, Object.values(prompt))
}

const sameRows = (a: readonly PromptRow[], b: readonly PromptRow[]) => JSON.stringify(a) === JSON.stringify(b)
