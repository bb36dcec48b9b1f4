import { Serial } from '../../../kernel/kit/serial.js'
import type { Journal, JournalRecord } from '../journals/api.js'
import { EventErrors, type StoredEvent } from './api.js'

/** Records per read. */
const PAGE = 200
/** The journal of an archive. */
export interface ArchiveJournal {
  /** Its folder, for messages. */
  readonly folder: string
  /** Size of one file; retention drops whole files. */
  readonly segmentBytes: number
  open(): Promise<Journal>
}

/** Events that left the table, in a journal: one record per event, in the order of their positions. */
export class Archive {
  #journal: Journal | undefined
  /** Position of its newest event. */
  #last = 0
  /** Serializes uses of the journal. */
  readonly #uses = new Serial()

  /** @param newest returns the newest position that the database has ever assigned */
  constructor(
    private readonly own: ArchiveJournal,
    private readonly newest: () => number,
  ) {}

  /** Resolves when the events are on the disk; those that a crash already left there are skipped. */
  append(events: readonly StoredEvent[]): Promise<void> {
    return this.#uses.run(async () => {
      const journal = await this.#open()
      const fresh = events.filter(event => event.seq > this.#last)
      try {
        journal.append(
          fresh.map(event => Buffer.from(JSON.stringify(event))),
          { sync: true },
        )
        await journal.sync()
      } catch (error) {
        // The journal accepts nothing any more; the next attempt reopens it and finds its actual end.
        await this.#shut().catch(() => {})
        throw error
      }
      this.#last = fresh.at(-1)?.seq ?? this.#last
    })
  }

  /** At most `limit` events between two positions, exclusive. */
  async read(
    after: number,
    before: number,
    limit: number,
    wanted: (event: StoredEvent) => boolean,
  ): Promise<StoredEvent[]> {
    const found: StoredEvent[] = []
    for (let from: number | undefined; ; ) {
      const page = await this.#uses.run(async () => {
        const journal = await this.#open()
        // Positions ascend, so no more than this many records are newer.
        return journal.read(from ?? journal.last - (this.#last - after) + 1, PAGE)
      })
      for (const record of page) {
        const event = decode(record)
        if (event.seq >= before || found.length >= limit) return found
        if (event.seq > after && wanted(event)) found.push(event)
      }
      const last = page.at(-1)
      if (!last) return found
      from = last.sequence + 1
    }
  }

  /** Drops the oldest files: those with nothing from `since` (epoch milliseconds) on, and those beyond `maxBytes`. */
  drop(since: number, maxBytes: number): Promise<void> {
    return this.#uses.run(async () => {
      const journal = await this.#open()
      const { files } = journal
      const { segmentBytes } = this.own
      let dropped = Math.max(0, files.length - Math.max(1, Math.floor(maxBytes / segmentBytes)))
      for (; dropped < files.length - 1; dropped++) {
        const [next] = await journal.read(files[dropped + 1] as number, 1)
        if (!next || decode(next).at >= since) break
      }
      if (dropped > 0) await journal.drop(files[dropped] as number)
    })
  }

  close(): Promise<void> {
    return this.#uses.run(() => this.#shut())
  }

  async #open(): Promise<Journal> {
    if (this.#journal) return this.#journal
    const journal = await this.own.open()
    const [newest] = journal.last > 0 ? await journal.read(journal.last, 1) : []
    const last = newest ? decode(newest).seq : 0
    if (last > this.newest()) {
      await journal.close()
      throw EventErrors.events_ahead(
        `${this.own.folder} ends with event ${last}, which is not in the database: one of them was restored from a backup`,
      )
    }
    this.#last = last
    this.#journal = journal
    return journal
  }

  async #shut(): Promise<void> {
    const journal = this.#journal
    this.#journal = undefined
    await journal?.close()
  }
}

const decode = ({ payload }: JournalRecord): StoredEvent =>
  JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.length).toString())
