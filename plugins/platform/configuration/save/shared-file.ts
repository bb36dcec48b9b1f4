import { noReserve } from '../../../../kernel/platform.js'
import type { Room } from '../../../../kernel/plugin.js'
import { replaceText, type TextFile, unwritten } from '../../files/api.js'
import { exchange, settle } from './exchange.js'

const LARGEST_FILE = 16 * 1024 * 1024

/** A text file that other programs may save at the same time. */
export interface SharedFile extends TextFile {
  /**
   * @param before the text to be replaced; empty: no file, or an empty one. A save by another program meanwhile is kept
   * @throws Fault `file_changed`; StoreError as {@link TextFile.write}
   */
  write(text: string, before?: string): Promise<void>
}

/** A file whose writes can state the text that they replace. Its permissions stay, and a link to it stays a link. */
export function sharedFile(file: TextFile, path: string, room: Room = noReserve): SharedFile {
  const over = async (text: string, before: string) => {
    const move = (from: string, target: string) => exchange(from, target, before, LARGEST_FILE)
    settle(await replaceText(path, text, { room }, move), before, LARGEST_FILE)
  }
  return {
    read: file.read,
    write: (text, before) => (before === undefined ? file.write(text) : over(text, before).catch(unwritten(path))),
  }
}
