import { realpath, stat } from 'node:fs/promises'
import {
  diskFull,
  Fault,
  isFull,
  messageOf,
  noReserve,
  type Room,
  replaceFile,
  StoreError,
  spending,
  systemDisk,
} from '../../../kernel/plugin.js'
import type { TextFile } from '../../files/api.js'
import { exchange, settle } from './exchange.js'

const LARGEST_FILE = 16 * 1024 * 1024

/** A text file that others save as well, while it is written here. */
export interface SharedFile extends TextFile {
  /**
   * @param before the text that is replaced; empty: no file, or an empty one. What somebody else saves meanwhile stays
   * @throws Fault `file_changed`; StoreError as {@link TextFile.write}
   */
  write(text: string, before?: string): Promise<void>
}

/** The same file, whose writes say what they replace. Its permissions stay, and a link to it stays a link. */
export function sharedFile(file: TextFile, path: string, room: Room = noReserve): SharedFile {
  const over = async (text: string, before: string) => {
    const found = await stat(path).catch(() => undefined)
    const target = found?.isFile() ? await realpath(path) : path
    const bytes = Buffer.from(text)
    const mode = found?.isFile() ? found.mode & 0o777 : 0o600
    const place = (from: string) => exchange(from, target, before, LARGEST_FILE)
    await spending(room, bytes.length, () => replaceFile(systemDisk(), target, bytes, mode, room, place))
    settle(target, before, LARGEST_FILE)
  }
  return {
    read: file.read,
    write: (text, before) =>
      before === undefined ? file.write(text) : over(text, before).catch(error => Promise.reject(told(path, error))),
  }
}

function told(path: string, error: unknown): Error {
  if (isFull(error)) return diskFull(`${path} cannot be written`, error)
  if (error instanceof StoreError || error instanceof Fault) return error
  const hint = 'check that its folder exists, that you may write there and that there is free space'
  return new StoreError('file_unwritable', `${path} cannot be written: ${messageOf(error)}`, hint, error)
}
