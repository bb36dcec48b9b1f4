import { createHash } from 'node:crypto'
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'

/** The read position in a mailbox. UIDs are valid only with their UIDVALIDITY. */
export interface Position {
  readonly uidValidity: string
  /** The highest UID that the daemon has. */
  readonly uid: number
  /** When the server received that message, in epoch milliseconds; still valid when UIDVALIDITY changes. */
  readonly receivedAt: number
  /** Keys of the latest messages. */
  readonly keys: readonly string[]
  /** Subjects of the latest threads. */
  readonly subjects: Readonly<Record<string, string>>
  /** After a change of UIDVALIDITY: messages below the UID count as read if they are older. */
  readonly resync?: { readonly below: number; readonly olderThan: number }
}

const MOST_KEYS = 500
const MOST_SUBJECTS = 200

/** The position after one more message. */
export function after(
  position: Position,
  uid: number,
  { receivedAt = 0, key }: { readonly receivedAt?: number; readonly key?: string } = {},
): Position {
  const { resync, ...rest } = position
  return {
    ...rest,
    ...(resync === undefined || uid + 1 >= resync.below ? {} : { resync }),
    uid: Math.max(position.uid, uid),
    receivedAt: Math.max(position.receivedAt, receivedAt),
    keys: key === undefined ? position.keys : [...position.keys.slice(1 - MOST_KEYS), key],
  }
}

/** The position after the UIDs were reassigned: all messages are listed, but older or known ones are not read again. */
export function renumbered(position: Position, uidValidity: string, uidNext: number): Position {
  return { ...position, uidValidity, uid: 0, resync: { below: uidNext, olderThan: position.receivedAt } }
}

/** Stores the position of one instance in a file, or only in memory if there is no folder. */
export class PositionFile {
  readonly #path: string | undefined
  #current: Position | undefined
  readonly #subjects = new Map<string, string>()

  constructor(
    private readonly folder: string | undefined,
    instanceId: string,
  ) {
    const name = createHash('sha256').update(instanceId).digest('hex').slice(0, 32)
    this.#path = folder === undefined ? undefined : join(folder, `position-${name}.json`)
  }

  /** Whether the position survives a restart. */
  get lasting(): boolean {
    return this.#path !== undefined
  }

  get current(): Position | undefined {
    return this.#current
  }

  async load(): Promise<Position | undefined> {
    if (this.#path === undefined || this.#current !== undefined) return this.#current
    const text = await readFile(this.#path, 'utf8').catch(error => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    this.#current = text === undefined ? undefined : parsed(text)
    for (const [thread, subject] of Object.entries(this.#current?.subjects ?? {})) this.remember(thread, subject)
    return this.#current
  }

  /** The subject of a thread. */
  subjectOf(thread: string | undefined): string | undefined {
    return thread === undefined ? undefined : this.#subjects.get(thread)
  }

  /** Records the subject of a thread; the next {@link save} stores it. */
  remember(thread: string, subject: string): void {
    if (subject === '') return
    this.#subjects.delete(thread)
    this.#subjects.set(thread, subject)
    for (const oldest of this.#subjects.keys()) {
      if (this.#subjects.size <= MOST_SUBJECTS) return
      this.#subjects.delete(oldest)
    }
  }

  /** Resolves when the position is on the disk. */
  save(next: Omit<Position, 'subjects'>): Promise<void> {
    const saved = this.#saves.then(() => this.#save(next))
    this.#saves = saved.catch(() => {})
    return saved
  }
  #saves: Promise<void> = Promise.resolve()

  async #save(next: Omit<Position, 'subjects'>): Promise<void> {
    const position = { ...next, subjects: Object.fromEntries(this.#subjects) }
    if (this.#path !== undefined && this.folder !== undefined) {
      await mkdir(this.folder, { recursive: true, mode: 0o700 })
      const path = `${this.#path}.next`
      const file = await open(path, 'w', 0o600)
      try {
        await file.writeFile(JSON.stringify(position))
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(path, this.#path)
    }
    this.#current = position
  }
}

/** An incomplete file is ignored: reading then starts at the end of the mailbox, as on the first start. */
function parsed(text: string): Position | undefined {
  try {
    const { uidValidity, uid, receivedAt, keys, subjects, resync } = JSON.parse(text) as Position
    const whole =
      typeof uidValidity === 'string' &&
      Number.isSafeInteger(uid) &&
      Number.isFinite(receivedAt) &&
      Array.isArray(keys) &&
      typeof subjects === 'object' &&
      subjects !== null
    if (!whole) return undefined
    return { uidValidity, uid, receivedAt, keys, subjects, ...(resync === undefined ? {} : { resync }) }
  } catch {
    return undefined
  }
}
