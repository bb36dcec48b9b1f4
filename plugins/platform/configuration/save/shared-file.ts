import { noReserve } from '../../../../kernel/platform.js'
import type { Room } from '../../../../kernel/plugin.js'
import { replaceText, type TextFile, unwritten } from '../../files/api.js'
import { exchange, settle } from './exchange.js'

const LARGEST_FILE = 16 * 1024 * 1024

/** A text file that other programs may save at the same time. */
export interface SharedFile extends TextFile {
  /**
   * @param before the text to be replaced; empty: no file, or an empty one. A save by another program meanwhile is kept
   * @param ready awaited before the file is replaced
   * @throws Fault `file_changed`; StoreError as {@link TextFile.write}
   */
  write(text: string, before?: string, ready?: Promise<unknown>): Promise<void>
}

/** A file whose writes can state the text that they replace. Its permissions stay, and a link to it stays a link. */
export function sharedFile(file: TextFile, path: string, room: Room = noReserve): SharedFile {
  const over = async (text: string, old: string, ready?: Promise<unknown>) => {
    const move = (from: string, to: string) => Promise.resolve(ready).then(() => exchange(from, to, old, LARGEST_FILE))
    settle(await replaceText(path, text, { room }, move), old, LARGEST_FILE)
  }
  return {
    read: file.read,
    write: (text, old, ready) => (old === undefined ? file.write(text) : over(text, old, ready).catch(unwritten(path))),
  }
}
