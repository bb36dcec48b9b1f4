import fs from 'node:fs/promises'
import { type Adapter, Low } from 'lowdb'
import { readWhole, replaceFile, systemDisk } from './disk.js'
import { errnoOf, reasonOf, StoreError } from './error.js'

/** A small text file that a person may edit as well: read whole, replaced whole, durably and atomically. */
export interface TextFile {
  /** The text; undefined when there is no file. @throws StoreError `file_unreadable`, `file_too_large` */
  read(): Promise<string | undefined>
  /** Resolves when the text is on the disk; a crash leaves the old text or the new one. @throws StoreError `file_unwritable` */
  write(text: string): Promise<void>
}

/** Files that people edit are small; more than this is a mistake. */
const LARGEST_FILE = 16 * 1024 * 1024

/**
 * A text file written by temporary file, sync, rename and sync of the folder. Its permissions stay as they are; a new one gets
 * `mode`, default 0600. A symbolic link stays a link: what it points to is replaced. Writes of one handle go one after the
 * other.
 */
export function textFile(path: string, options: { mode?: number } = {}): TextFile {
  const disk = systemDisk()
  let last: Promise<unknown> = Promise.resolve()
  const replace = async (text: string): Promise<void> => {
    const target = (await missing(fs.realpath(path))) ?? path
    const mode = (await missing(fs.stat(target)))?.mode
    await replaceFile(disk, target, Buffer.from(text), mode === undefined ? (options.mode ?? 0o600) : mode & 0o777)
  }
  return {
    async read() {
      try {
        const size = (await missing(fs.stat(path)))?.size ?? 0
        if (size > LARGEST_FILE) {
          throw new StoreError('file_too_large', `${path} has ${size} bytes`, `the largest allowed is ${LARGEST_FILE}`)
        }
        const bytes = await readWhole(disk, path)
        return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
      } catch (error) {
        if (error instanceof StoreError) throw error
        const hint = 'check that it is a file and that you may read it'
        throw new StoreError('file_unreadable', `${path} cannot be read: ${reasonOf(error)}`, hint, error)
      }
    },
    write(text) {
      const written = last.then(() => replace(text))
      last = written.catch(() => {})
      return written.catch(error => {
        const hint = 'check that its folder exists, that you may write there and that there is free space'
        throw new StoreError('file_unwritable', `${path} cannot be written: ${reasonOf(error)}`, hint, error)
      })
    },
  }
}

/** A value kept as JSON in a text file, through lowdb; `fallback` when there is no file. @throws StoreError `file_invalid` */
export function jsonFile<T>(path: string, fallback: T): { read(): Promise<T>; write(value: T): Promise<void> } {
  const file = textFile(path)
  // lowdb takes no false, 0, null or '' for data: the value travels in a box.
  const adapter: Adapter<{ readonly value: T }> = {
    async read() {
      const text = await file.read()
      if (text === undefined) return null
      try {
        return { value: JSON.parse(text) as T }
      } catch (error) {
        throw new StoreError(
          'file_invalid',
          `${path} is not JSON: ${reasonOf(error)}`,
          'correct it or move it away',
          error,
        )
      }
    },
    write: ({ value }) => file.write(`${JSON.stringify(value, null, 2)}\n`),
  }
  return {
    async read() {
      const low = new Low(adapter, { value: fallback })
      await low.read()
      return low.data.value
    },
    async write(value) {
      await new Low(adapter, { value }).write()
    },
  }
}

/** What a call finds, or undefined where there is no such file. */
async function missing<V>(found: Promise<V>): Promise<V | undefined> {
  try {
    return await found
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
}
