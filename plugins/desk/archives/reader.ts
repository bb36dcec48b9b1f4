import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Db, type Fault, type Log, type Migration, messageOf, type Tx } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../daemon/api.js'
import type { Archive, ArchivesApi } from './api.js'

const UNREADABLE: ReadonlySet<string> = new Set(['archive_missing', 'archive_damaged'])

/** An archive as its owner describes it. */
export interface ArchiveOwner {
  readonly log: Pick<Log, 'error'>
  /** The plugin `archives`, while it runs. */
  readonly archives: () => ArchivesApi | undefined
  /** The migrations of the tables in each segment. */
  readonly tables: readonly Migration[]
  /** The fault of a request that needs the archive while the plugin does not run. */
  readonly off: () => Fault
  /** The doctor item of a segment that could not be read; its id gains the number of the segment. */
  readonly unreadable: { readonly id: string; readonly code: string; readonly category: string; readonly title: string }
}

/** The archive of one owner, with a record of its unreadable segments. */
export class ArchiveReader {
  #archive: Archive | undefined
  readonly #unread = new Map<number, string>()

  constructor(private readonly owner: ArchiveOwner) {}

  /** Reads a segment. @throws Fault `archive_missing`, `archive_damaged`, or {@link ArchiveOwner.off} */
  use<T>(segment: number, use: (db: Db) => T | Promise<T>): Promise<T> {
    return this.#open().use(segment, use)
  }

  /** {@link use} for lists: skips an unreadable segment and reports it in the log and in `svc doctor`. */
  async tryUse<T>(segment: number, use: (db: Db) => T | Promise<T>): Promise<T | undefined> {
    try {
      const found = await this.use(segment, use)
      this.#unread.delete(segment)
      return found
    } catch (error) {
      if (!UNREADABLE.has(String((error as { code?: unknown }).code))) throw error
      if (!this.#unread.has(segment)) this.owner.log.error(messageOf(error))
      this.#unread.set(segment, messageOf(error))
      return undefined
    }
  }

  /** See {@link Archive.add}. */
  add(work: (t: Tx) => void): Promise<number> {
    return this.#open().add(work)
  }

  /** Removes the files of unused segments, but not the newest: a row may be written there before the catalog lists it. */
  async removeEmpty(used: ReadonlySet<number>): Promise<void> {
    const archive = this.#open()
    for (const segment of (await archive.segments()).slice(0, -1)) if (!used.has(segment)) await archive.remove(segment)
  }

  /** Doctor items of the segments that could not be read. */
  findings(): DiagnosticItem[] {
    const { id, ...unreadable } = this.owner.unreadable
    return [...this.#unread].map(([segment, message]) =>
      finding({
        id: `${id}.${segment}`,
        ...unreadable,
        severity: 'error',
        message,
        suggested_command: command('backup list'),
        evidence: { segment },
      }),
    )
  }

  #open(): Archive {
    const archives = this.owner.archives()
    if (!archives) throw this.owner.off()
    this.#archive ??= archives.open(this.owner.tables)
    return this.#archive
  }
}
