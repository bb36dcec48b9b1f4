import fs from 'node:fs/promises'
import { type Adapter, Low } from 'lowdb'
import { Serial } from '../../kernel/kit/serial.js'
import {
  type Disk,
  diskFull,
  Fault,
  isFull,
  messageOf,
  noReserve,
  type Room,
  readIfThere,
  replaceFile,
  StoreError,
  spending,
  systemDisk,
} from '../../kernel/plugin.js'
import { recoverFile } from './recover.js'

/** Files that people edit are small; more than this is a mistake. */
const LARGEST_FILE = 16 * 1024 * 1024

/** A small text file that a person may edit as well: read whole, replaced whole, durably and atomically. */
export interface TextFile {
  /** The text; undefined when there is no file. @throws StoreError `file_unreadable`; Fault `file_not_regular`, `file_too_large` */
  read(): Promise<string | undefined>
  /** Resolves when the text is on the disk; a crash leaves the old text or the new one. @throws StoreError `disk_full`, `file_unwritable` */
  write(text: string): Promise<void>
}

interface Boxed {
  readonly text?: string | undefined
}

/**
 * A text file, through lowdb, written by temporary file, sync, rename and sync of the folder. Its permissions stay as they
 * are; a new one gets `mode`, default 0600. A symbolic link to a file stays a link: what it points to is replaced; any other
 * link, a pipe or a socket goes. Writes of one handle go one after the other.
 */
export function textFile(
  path: string,
  { mode = 0o600, disk = systemDisk(), room = noReserve }: { mode?: number; disk?: Disk; room?: Room } = {},
): TextFile {
  // lowdb takes an empty text for no data: the text travels in a box.
  const adapter: Adapter<Boxed> = {
    async read() {
      const bytes = await readIfThere(disk, path, { maxBytes: LARGEST_FILE })
      return { text: bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString() }
    },
    async write({ text = '' }) {
      const found = await fs.stat(path).catch(() => undefined)
      // Through a link to a device the device itself would be replaced.
      const target = found?.isFile() ? await fs.realpath(path) : path
      const bytes = Buffer.from(text)
      const permissions = found?.isFile() ? found.mode & 0o777 : mode
      await spending(room, bytes.length, () => replaceFile(disk, target, bytes, permissions, room))
    },
  }
  const turns = new Serial()
  const failed = (code: string, did: string, hint: string) => (error: unknown) => {
    if (isFull(error)) throw diskFull(`${path} cannot be ${did}`, error)
    throw error instanceof StoreError || error instanceof Fault
      ? error
      : new StoreError(code, `${path} cannot be ${did}: ${messageOf(error)}`, hint, error)
  }
  return {
    async read() {
      recoverFile(path)
      const low = new Low(adapter, {})
      await low.read().catch(failed('file_unreadable', 'read', 'check that it is a file and that you may read it'))
      return low.data.text
    },
    write(text) {
      const hint = 'check that its folder exists, that you may write there and that there is free space'
      const written = turns.run(() => new Low(adapter, { text }).write())
      return written.catch(failed('file_unwritable', 'written', hint))
    },
  }
}
