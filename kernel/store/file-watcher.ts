import { StoreError } from './error.js'
import type { FileCall, SqlitePin } from './sqlite-pin.js'
import { type Imports, type Instance, type Memory, WebAssembly } from './wasm.js'

/** Part of a database: the file itself, its write-ahead log, its rollback journal. */
export type FilePart = 'main' | 'wal' | 'journal'

/** Changes that SQLite makes to the files of one database, in order, each reported after it was made in memory. */
export interface FileEvents {
  /** `bytes` is a view of SQLite's memory: copy it. */
  write(part: FilePart, offset: number, bytes: Uint8Array): void
  truncate(part: FilePart, size: number): void
  sync(part: FilePart): void
  remove(part: FilePart): void
}

/** The heap of a WebAssembly program. */
export interface Heap {
  _malloc(size: number): number
  _free(pointer: number): void
}

/** A file call: returns a descriptor, or 0 (or undefined) for success. Offsets among the arguments may be bigints. */
type FileImport = (...args: (number | bigint | undefined)[]) => number | undefined
interface DatabaseFile {
  readonly base: string
  readonly part: FilePart
}

/** Wraps the file calls that SQLite imports: follows descriptors and positions, reports changes, alters nothing. */
export class FileWatcher {
  readonly watchers = new Map<string, FileEvents>()
  readonly #open: ((DatabaseFile & { position: number }) | undefined)[] = []
  #original: Partial<Record<FileCall, FileImport>> = {}
  #memory: Memory | undefined
  #bytes = new Uint8Array(0)
  #words = new Uint32Array(0)

  constructor(private readonly pin: SqlitePin) {}

  wrap(imports: Imports): Imports {
    const functions = imports[this.pin.module]
    const wrapped: Record<string, unknown> = { ...functions }
    for (const [call, letter] of Object.entries(this.pin.imports) as [FileCall, string][]) {
      const original = functions?.[letter]
      if (typeof original !== 'function') {
        const message = `the SQLite build has no import ${this.pin.module}.${letter} for ${call}`
        throw new StoreError('sqlite_pin', message, 'copy the output of `npm run sqljs:pin` into the pin')
      }
      wrapped[letter] = this.#observed(original as FileImport, this.#observers[call], call === 'openat')
      this.#original[call] = original as FileImport
    }
    return { ...imports, [this.pin.module]: wrapped }
  }

  /** Makes the original call, then reports it. Named arguments instead of a rest array: this is the hot path. */
  #observed(original: FileImport, note: (...args: number[]) => void, gives: boolean): FileImport {
    return (a, b, c, d) => {
      const result = original(a, b, c, d)
      if (gives ? (result ?? -1) >= 0 : !result) note(a as number, b as number, c as number, d as number, result ?? 0)
      return result
    }
  }

  attach(instance: Instance): Instance {
    this.#memory = Object.values(instance.exports).find(value => value instanceof WebAssembly.Memory)
    return instance
  }

  /** Creates a file in SQLite's own file system through the unwatched calls. */
  create(heap: Heap, file: string, content: Uint8Array): void {
    const chunk = 256 * 1024
    const name = Buffer.from(`${file}\0`)
    const at = heap._malloc(chunk)
    const scratch = heap._malloc(16)
    try {
      this.#view().set(name, at)
      this.#words[scratch >> 2] = 0o600
      const fd = this.#call('openat', -100, at, 0o102, scratch)
      // At full size at once: a file in memory that grows by its writes is copied repeatedly.
      this.#call('ftruncate', fd, BigInt(content.length))
      for (let offset = 0; offset < content.length; offset += chunk) {
        const part = content.subarray(offset, offset + chunk)
        this.#view().set(part, at)
        this.#words[scratch >> 2] = at
        this.#words[(scratch >> 2) + 1] = part.length
        this.#call('fd_write', fd, scratch, 1, scratch + 8)
      }
      this.#call('fd_close', fd)
    } finally {
      heap._free(scratch)
      heap._free(at)
    }
  }

  #call(call: FileCall, ...args: (number | bigint)[]): number {
    const result = this.#original[call]?.(...args) ?? 0
    if (result < 0 || (result !== 0 && call !== 'openat')) throw new Error(`${call} in memory failed with ${result}`)
    return result
  }

  /** SQLite's memory. The previous view is detached, and empty, after the memory has grown. */
  #view(): Uint8Array {
    if (this.#bytes.length === 0 && this.#memory !== undefined) {
      this.#bytes = new Uint8Array(this.#memory.buffer)
      this.#words = new Uint32Array(this.#memory.buffer)
    }
    return this.#bytes
  }

  #word(pointer: number): number {
    this.#view()
    return this.#words[pointer >> 2] ?? 0
  }

  #path(pointer: number): DatabaseFile {
    const bytes = this.#view()
    const name = Buffer.from(bytes.subarray(pointer, bytes.indexOf(0, pointer))).toString()
    const [, base = '', suffix] = /([^/]*?)(?:-(wal|journal))?$/.exec(name) ?? []
    return { base, part: (suffix as FilePart | undefined) ?? 'main' }
  }

  /** The effect of each successful call; the arguments are those of the system call of that name. */
  readonly #observers: Readonly<Record<FileCall, (...args: number[]) => void>> = {
    openat: (_folder = 0, name = 0, _flags = 0, _mode = 0, fd = 0) => {
      this.#open[fd] = { ...this.#path(name), position: 0 }
    },
    fd_seek: (fd = 0, _offset = 0, _whence = 0, result = 0) => {
      const file = this.#open[fd]
      if (file !== undefined) file.position = this.#word(result) + this.#word(result + 4) * 2 ** 32
    },
    fd_read: (fd = 0, _vectors = 0, _count = 0, result = 0) => {
      const file = this.#open[fd]
      if (file !== undefined) file.position += this.#word(result)
    },
    fd_write: (fd = 0, vectors = 0, count = 0, result = 0) => {
      const file = this.#open[fd]
      if (file === undefined) return
      const events = this.watchers.get(file.base)
      let left = this.#word(result)
      for (let vector = vectors; left > 0 && vector < vectors + 8 * count; vector += 8) {
        const pointer = this.#word(vector)
        const length = Math.min(left, this.#word(vector + 4))
        events?.write(file.part, file.position, this.#bytes.subarray(pointer, pointer + length))
        file.position += length
        left -= length
      }
    },
    fd_sync: (fd = 0) => this.#tell(this.#open[fd], (events, part) => events.sync(part)),
    ftruncate: (fd = 0, size = 0) => this.#tell(this.#open[fd], (events, part) => events.truncate(part, Number(size))),
    fd_close: (fd = 0) => {
      this.#open[fd] = undefined
    },
    unlink: (_folder = 0, name = 0) => this.#tell(this.#path(name), (events, part) => events.remove(part)),
  }

  #tell(file: DatabaseFile | undefined, how: (events: FileEvents, part: FilePart) => void): void {
    const events = this.watchers.get(file?.base ?? '')
    if (file !== undefined && events !== undefined) how(events, file.part)
  }
}
