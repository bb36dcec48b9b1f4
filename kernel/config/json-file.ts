import fs from 'node:fs/promises'
import { type Adapter, Low } from 'lowdb'
import { Fault } from '../contract/errors.js'
import type { Room, TextFile } from '../contract/storage.js'
import { type Disk, readIfThere, replaceFile, systemDisk } from '../store/disk.js'
import { reasonOf, StoreError } from '../store/error.js'
import { diskFull, isFull, noReserve, spending } from '../store/room.js'
import { recoverFile } from './recover.js'

/** Files that people edit are small; more than this is a mistake. */
const LARGEST_FILE = 16 * 1024 * 1024

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
  let last: Promise<unknown> = Promise.resolve()
  const failed = (code: string, did: string, hint: string) => (error: unknown) => {
    if (isFull(error)) throw diskFull(`${path} cannot be ${did}`, error)
    throw error instanceof StoreError || error instanceof Fault
      ? error
      : new StoreError(code, `${path} cannot be ${did}: ${reasonOf(error)}`, hint, error)
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
      const written = last.then(() => new Low(adapter, { text }).write())
      last = written.catch(() => {})
      return written.catch(failed('file_unwritable', 'written', hint))
    },
  }
}
