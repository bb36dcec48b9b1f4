import { noReserve } from '../../../../kernel/platform.js'
import type { Room } from '../../../../kernel/plugin.js'
import { replaceText, type TextFile, unwritten } from '../../files/api.js'
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
    const place = (from: string, target: string) => exchange(from, target, before, LARGEST_FILE)
    settle(await replaceText(path, text, { room }, place), before, LARGEST_FILE)
  }
  return {
    read: file.read,
    write: (text, before) => (before === undefined ? file.write(text) : over(text, before).catch(unwritten(path))),
  }
}
