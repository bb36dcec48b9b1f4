import { type Clock, type Ids, messageOf, type Redact } from '../../../../kernel/plugin.js'
import type { Journal } from '../../../platform/journals/api.js'
import { SessionErrors } from '../api.js'
import type { NewEvent } from '../events.js'
import type { Cuts } from './cuts.js'
import { SessionLog } from './session-log.js'

/** Milliseconds after which an unused journal is closed. */
const IDLE_MS = 30_000

/** A log in use; released once. */
export interface HeldLog {
  readonly log: SessionLog
  release(): void
}

interface Entry {
  readonly opened: Promise<SessionLog>
  users: number
  idle?: { cancel(): void }
}

/** Dependencies for opening journals, and callbacks for their events. */
export interface LogsContext {
  readonly clock: Clock
  readonly ids: Ids
  readonly redact: Redact
  open(id: string): Promise<Journal>
  /** The removed ranges of a journal. */
  cuts(id: string): Cuts
  /** Called before an event is appended. */
  recording(id: string, event: NewEvent): void
  /** Called when an event was passed to the file. */
  recorded(id: string, event: NewEvent, sequence: number): void
  /** Called when a journal can no longer be written. */
  failed(id: string, error: unknown): void
}

/** The open logs. A journal allows one opener at a time, so all users share the log; unused logs close after a delay. */
export class Logs {
  readonly #entries = new Map<string, Entry>()
  readonly #closing = new Map<string, Promise<void>>()
  readonly #damaged = new Map<string, string>()

  constructor(private readonly context: LogsContext) {}

  /** Sessions whose journal could not be opened, with the reason. */
  get damaged(): ReadonlyMap<string, string> {
    return this.#damaged
  }

  /** Opens or shares a log. Throws `session_journal_damaged` (500) when the journal cannot be opened. */
  async hold(id: string): Promise<HeldLog> {
    while (this.#closing.has(id)) await this.#closing.get(id)
    let entry = this.#entries.get(id)
    if (!entry) {
      entry = { opened: this.#open(id), users: 0 }
      this.#entries.set(id, entry)
    }
    entry.users++
    entry.idle?.cancel()
    const held = entry
    try {
      const log = await entry.opened
      let released = false
      return {
        log,
        release: () => {
          if (released) return
          released = true
          // Damage in an older file shows only when that file is read.
          if (log.damage) this.#damaged.set(id, log.damage.message)
          this.#release(id, held)
        },
      }
    } catch (error) {
      if (this.#entries.get(id) === held) this.#entries.delete(id)
      throw error
    }
  }

  /** Opens or shares a log for appending; throws `session_journal_damaged` when the journal is read-only. */
  async holdForWriting(id: string): Promise<HeldLog> {
    const held = await this.hold(id)
    const { damage } = held.log
    if (!damage) return held
    held.release()
    throw SessionErrors.session_journal_damaged(`nothing can be added to the journal of ${id}: ${damage.message}`)
  }

  /** Runs `work` with the log of a session. */
  async use<T>(id: string, work: (log: SessionLog) => Promise<T>): Promise<T> {
    const { log, release } = await this.hold(id)
    try {
      return await work(log)
    } finally {
      release()
    }
  }

  /** Forgets the damage of a deleted session. */
  forget(id: string): void {
    this.#damaged.delete(id)
  }

  /** Closes the journal of a session even if it is in use. */
  async close(id: string): Promise<void> {
    const entry = this.#entries.get(id)
    if (!entry) return this.#closing.get(id)
    this.#entries.delete(id)
    entry.idle?.cancel()
    const closing = entry.opened
      .then(log => log.close())
      .catch(error => this.context.failed(id, error))
      .finally(() => this.#closing.delete(id))
    this.#closing.set(id, closing)
    await closing
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#entries.keys()].map(id => this.close(id)))
    await Promise.all(this.#closing.values())
  }

  async #open(id: string): Promise<SessionLog> {
    try {
      const journal = await this.context.open(id)
      if (journal.damage) this.#damaged.set(id, journal.damage.message)
      else this.#damaged.delete(id)
      const { clock, ids, redact, failed, recording, recorded } = this.context
      const listeners = {
        recording: (event: NewEvent) => recording(id, event),
        recorded: (event: NewEvent, sequence: number) => recorded(id, event, sequence),
      }
      return new SessionLog(journal, clock, ids, redact, error => failed(id, error), this.context.cuts(id), listeners)
    } catch (error) {
      this.#damaged.set(id, messageOf(error))
      throw SessionErrors.session_journal_damaged(`the journal of ${id} cannot be opened: ${messageOf(error)}`, {
        cause: error,
      })
    }
  }

  #release(id: string, entry: Entry): void {
    entry.users--
    if (entry.users > 0 || this.#entries.get(id) !== entry) return
    entry.idle = this.context.clock.timeout(IDLE_MS, () => void this.close(id), { unref: true })
  }
}
