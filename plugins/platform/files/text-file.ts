import fs from 'node:fs/promises'
import { type Adapter, Low } from 'lowdb'
import { Serial } from '../../../kernel/kit/serial.js'
import {
  type Disk,
  diskFull,
  isFull,
  noReserve,
  readIfThere,
  replaceFile,
  StoreError,
  spending,
  systemDisk,
} from '../../../kernel/platform.js'
import { type Awaitable, Fault, messageOf, type Room } from '../../../kernel/plugin.js'
import { recoverFile } from './recover.js'

/** Maximum bytes; files that people edit are much smaller. */
const LARGEST_FILE = 16 * 1024 * 1024

/** A small text file that people may edit too: read and replaced as a whole, durably and atomically. */
export interface TextFile {
  /** The text; undefined when there is no file. @throws StoreError `file_unreadable`; Fault `file_not_regular`, `file_too_large` */
  read(): Promise<string | undefined>
  /** Resolves when the text is on the disk; a crash leaves the old text or the new one. @throws StoreError `disk_full`, `file_unwritable` */
  write(text: string): Promise<void>
}

interface TextFileOptions {
  /** Permissions of a new file; default 0600. */
  readonly mode?: number
  readonly disk?: Disk
  readonly room?: Room
}

interface Boxed {
  readonly text?: string | undefined
}

/**
 * A text file, through lowdb, written by temporary file, sync, rename and sync of the folder. Its permissions stay; a new one gets
 * `mode`, default 0600. A symbolic link to a file stays a link, and its target is replaced; any other link, a pipe or a socket is
 * replaced itself. Writes of one handle are serialized.
 */
export function textFile(path: string, options: TextFileOptions = {}): TextFile {
  const { disk = systemDisk() } = options
  // lowdb takes an empty text for no data: the text is wrapped in an object.
  const adapter: Adapter<Boxed> = {
    async read() {
      const bytes = await readIfThere(disk, path, { maxBytes: LARGEST_FILE })
      return { text: bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString() }
    },
    async write({ text = '' }) {
      await replaceText(path, text, options)
    },
  }
  const turns = new Serial()
  return {
    async read() {
      recoverFile(path)
      const low = new Low(adapter, {})
      const hint = 'check that it is a file and that you may read it'
      await low.read().catch(failed(path, 'file_unreadable', 'read', hint))
      return low.data.text
    },
    write(text) {
      return turns.run(() => new Low(adapter, { text }).write()).catch(unwritten(path))
    },
  }
}

/**
 * Replaces the text of a file, or of the file behind a link, whose permissions stay.
 * @param move gives the temporary file its final name; default: a rename
 * @returns the path of the replaced file
 */
export async function replaceText(
  path: string,
  text: string,
  { mode = 0o600, disk = systemDisk(), room = noReserve }: TextFileOptions,
  move?: (temporary: string, target: string) => Awaitable<void>,
): Promise<string> {
  const found = await fs.stat(path).catch(() => undefined)
  // A link to a device is replaced itself: following it would replace the device.
  const target = found?.isFile() ? await fs.realpath(path) : path
  const bytes = Buffer.from(text)
  const permissions = found?.isFile() ? found.mode & 0o777 : mode
  const put = move && ((temporary: string) => move(temporary, target))
  await spending(room, bytes.length, () => replaceFile(disk, target, bytes, permissions, room, put))
  return target
}

/** Throws the error of a failed write, with a code of this program. */
export const unwritten = (path: string) =>
  failed(
    path,
    'file_unwritable',
    'written',
    'check that its folder exists, that you may write there and that there is free space',
  )

const failed = (path: string, code: string, did: string, hint: string) => (error: unknown) => {
  if (isFull(error)) throw diskFull(`${path} cannot be ${did}`, error)
  throw error instanceof StoreError || error instanceof Fault
    ? error
    : new StoreError(code, `${path} cannot be ${did}: ${messageOf(error)}`, hint, error)
}
