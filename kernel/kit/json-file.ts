import { type Adapter, Low, LowSync, type SyncAdapter } from 'lowdb'
import * as v from 'valibot'
import { type ReplaceOptions, replaceDurably, replaceDurablySync } from './durable-file.js'
import { issueLine } from './issue-text.js'
import { FileErrors, readRegularFile, readRegularFileSync } from './read-file.js'

/** A small JSON document that only its program writes: read and replaced as a whole, durably and atomically. */
export interface JsonFile<T, D> {
  /**
   * The document, or the default when there is no file.
   * @throws Fault `file_unreadable`, also for invalid JSON or a document that the schema refuses, `file_not_regular`,
   * `file_too_large`
   */
  read(): Promise<T | D>
  /** Resolves when the document is on the disk. A symbolic link is replaced, not followed. @throws the system's error */
  write(document: T): Promise<void>
}

/** {@link JsonFile} for synchronous callers. */
export interface JsonFileSync<T, D> {
  read(): T | D
  write(document: T): void
}

export interface JsonFileOptions extends ReplaceOptions {
  /** A larger file is refused; default 64 KiB. */
  readonly maxBytes?: number
}

const MAX_BYTES = 64 * 1024

/** A JSON document through lowdb. The default applies only to a missing file; an invalid one is an error and stays. */
export function jsonFile<T extends object, const D>(
  path: string,
  schema: v.GenericSchema<unknown, T>,
  fallback: D,
  options: JsonFileOptions = {},
): JsonFile<T, D> {
  const adapter: Adapter<T | D> = {
    read: async () => documentOf(path, await readRegularFile(path, boundsOf(options)), schema),
    write: document => replaceDurably(path, bytesOf(document), options),
  }
  return {
    // A new object for each read: lowdb would return the old data after the file was removed.
    async read() {
      const low = new Low<T | D>(adapter, fallback)
      await low.read()
      return low.data
    },
    write: document => new Low<T | D>(adapter, document).write(),
  }
}

/** {@link jsonFile} for synchronous callers: the command line, the watchdog, the helper of a restart. */
export function jsonFileSync<T extends object, const D>(
  path: string,
  schema: v.GenericSchema<unknown, T>,
  fallback: D,
  options: JsonFileOptions = {},
): JsonFileSync<T, D> {
  const adapter: SyncAdapter<T | D> = {
    read: () => documentOf(path, readRegularFileSync(path, boundsOf(options)), schema),
    write: document => replaceDurablySync(path, bytesOf(document), options),
  }
  return {
    read() {
      const low = new LowSync<T | D>(adapter, fallback)
      low.read()
      return low.data
    },
    write: document => new LowSync<T | D>(adapter, document).write(),
  }
}

const boundsOf = ({ maxBytes = MAX_BYTES }: JsonFileOptions) => ({ maxBytes, links: 'refuse' }) as const

const bytesOf = (document: unknown): Buffer => Buffer.from(`${JSON.stringify(document)}\n`)

/** Null means a missing file to lowdb. */
function documentOf<T>(path: string, bytes: Buffer | undefined, schema: v.GenericSchema<unknown, T>): T | null {
  if (bytes === undefined) return null
  let document: unknown
  try {
    document = JSON.parse(bytes.toString())
  } catch (cause) {
    throw refused(path, 'is not valid JSON', cause)
  }
  const read = v.safeParse(schema, document)
  if (!read.success) throw refused(path, `does not have the expected format: ${issueLine(read.issues[0])}`)
  return read.output
}

function refused(path: string, why: string, cause?: unknown) {
  return FileErrors.file_unreadable(`${path} ${why}`, { next: `move ${path} away`, cause })
}
