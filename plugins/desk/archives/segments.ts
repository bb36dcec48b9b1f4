import { rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { openStore, systemDisk } from '../../../kernel/platform.js'
import { type Clock, type Db, type Migration, messageOf, type Timer } from '../../../kernel/plugin.js'
import { ArchiveErrors } from './api.js'

type Store = Awaited<ReturnType<typeof openStore>>

/** A segment in use, or used a moment ago. */
interface Open {
  readonly store: Promise<Store>
  users: number
  timer?: Timer | undefined
  /** Set while the segment closes; the file can be opened again afterwards. */
  ending?: Promise<void>
}

/** Segments in memory at a time. Each has its own engine, which takes some tens of megabytes. */
const MOST_OPEN = 2
/** Milliseconds before an unused segment is closed. */
const KEPT_MS = 30_000

/** A database file, its owner, and the migrations of its tables. */
export interface Segment {
  readonly file: string
  readonly owner: string
  readonly tables: readonly Migration[]
}

/** Opens the segments of all archives, a few at a time, and closes unused ones. */
export class Segments {
  readonly #open = new Map<string, Open>()
  readonly #waiting: (() => void)[] = []
  #closed = false

  constructor(private readonly clock: Clock) {}

  /** @param creates whether a missing file is created; otherwise it is a fault */
  async use<T>(segment: Segment, creates: boolean, use: (db: Db, bytes: number) => T | Promise<T>): Promise<T> {
    const open = await this.#take(segment, creates)
    try {
      const store = await open.store
      const { bytes, walBytes } = store.status()
      return await use(store.db.bind({ name: segment.owner, tables: segment.owner }), bytes + walBytes)
    } finally {
      this.#give(segment.file, open)
    }
  }

  /** Removes the files of a segment unless it is in use. */
  async remove(file: string): Promise<void> {
    await this.#end(file)
    if (this.#open.has(file)) return
    // The database goes first: after an interrupted removal, the leftover files are not listed as a segment.
    for (const name of [file, `${file}-wal`, `${file}-mark`]) await rm(name, { force: true })
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const go of this.#waiting.splice(0)) go()
    await Promise.all([...this.#open.keys()].map(file => this.#end(file)))
  }

  async #take(segment: Segment, creates: boolean): Promise<Open> {
    for (;;) {
      if (this.#closed) throw ArchiveErrors.archive_missing('the archives are closed')
      const known = this.#open.get(segment.file)
      if (known?.ending) await known.ending
      else if (known) {
        known.timer?.cancel()
        known.users++
        return known
      } else if (this.#open.size < MOST_OPEN) {
        const open: Open = { store: load(segment, creates, this.clock), users: 1 }
        this.#open.set(segment.file, open)
        return open
      } else {
        const [idle] = [...this.#open].find(([, { users }]) => users === 0) ?? []
        if (idle !== undefined) await this.#end(idle)
        else await new Promise<void>(resolve => this.#waiting.push(resolve))
      }
    }
  }

  #give(file: string, open: Open): void {
    open.users--
    if (open.users > 0) return
    const end = () => void this.#end(file).catch(() => {})
    // After a failed open, the next user tries again.
    open.store.catch(end)
    open.timer = this.clock.timeout(KEPT_MS, end, { unref: true })
    this.#waiting.shift()?.()
  }

  async #end(file: string): Promise<void> {
    const open = this.#open.get(file)
    if (!open || (open.users > 0 && !this.#closed)) return
    open.timer?.cancel()
    // It stays in the map until its files are closed: two engines on one file would not see each other.
    open.ending ??= open.store
      .then(store => store.close())
      .catch(() => {})
      .then(() => {
        this.#open.delete(file)
        this.#waiting.shift()?.()
      })
    await open.ending
  }
}

/** Wraps damage of a segment in a fault; returns any other error, such as a full disk, unchanged. */
function damaged(file: string, error: unknown): unknown {
  const { code } = error as { code?: unknown }
  if (code !== 'store_damaged' && code !== 'store_open_failed') return error
  return ArchiveErrors.archive_damaged(`the archive ${file} is damaged: ${messageOf(error)}`, { cause: error })
}

async function load({ file, owner, tables }: Segment, creates: boolean, clock: Clock): Promise<Store> {
  if (creates) await systemDisk().mkdir(path.dirname(file))
  else if (!(await stat(file).catch(() => undefined)))
    throw ArchiveErrors.archive_missing(`the archive has lost the file ${file}`)
  const store = await openStore({ path: file, now: () => clock.now() }).catch(error => {
    throw damaged(file, error)
  })
  try {
    store.migrate(owner, tables)
    await store.db.durable()
    return store
  } catch (error) {
    await store.close().catch(() => {})
    throw damaged(file, error)
  }
}
