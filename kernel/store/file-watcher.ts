import { StoreError } from './error.js'
import type { FileCall, SqlitePin } from './sqlite-pin.js'
import { type Imports, type Instance, type Memory, WebAssembly } from './wasm.js'

/** Part of a database: the file itself, its write-ahead log, its rollback journal. */
export type FilePart = 'main' | 'wal' | 'journal'

/** What SQLite does to the files of one database, in order, after it was done in memory. */
export interface FileEvents {
  /** `bytes` is a view of SQLite's memory: copy it. */
  write(part: FilePart, offset: number, bytes: Uint8Array): void
  truncate(part: FilePart, size: number): void
  sync(part: FilePart): void
  close(part: FilePart): void
  remove(part: FilePart): void
}

/** The heap of a WebAssembly program. */
export interface Heap {
  _malloc(size: number): number
  _free(pointer: number): void
}

type FileImport = (...args: never[]) => number | undefined
interface OpenFile {
  readonly base: string
  readonly part: FilePart
  position: number
}

/** Wraps the file calls that SQLite imports: follows descriptors and positions, reports changes, alters nothing. */
export class FileWatcher {
  readonly watchers = new Map<string, FileEvents>()
  readonly #open: (OpenFile | undefined)[] = []
  readonly #pin: SqlitePin
  #original: Partial<Record<FileCall, FileImport>> = {}
  #memory: Memory | undefined
  #bytes = new Uint8Array(0)
  #words = new Uint32Array(0)

  constructor(pin: SqlitePin) {
    this.#pin = pin
  }

  wrap(imports: Imports): Imports {
    const given = imports[this.#pin.module]
    const wrapped: Record<string, unknown> = { ...given }
    for (const [call, letter] of Object.entries(this.#pin.imports) as [FileCall, string][]) {
      const original = given?.[letter]
      if (typeof original !== 'function') {
        throw new StoreError(
          'sqlite_pin',
          `the SQLite build has no import ${this.#pin.module}.${letter} for ${call}`,
          'run `npm run sqljs:pin` and take over what it prints',
        )
      }
      this.#original[call] = original as FileImport
      wrapped[letter] = this.#wrappers[call](original as FileImport)
    }
    return { ...imports, [this.#pin.module]: wrapped }
  }

  attach(instance: Instance): void {
    this.#memory = Object.values(instance.exports).find(value => value instanceof WebAssembly.Memory)
  }

  /** Makes a file in SQLite's own file system through the unwatched calls. */
  create(heap: Heap, file: string, content: Uint8Array): void {
    const chunk = 256 * 1024
    const name = Buffer.from(`${file}\0`)
    const at = heap._malloc(chunk)
    const scratch = heap._malloc(16)
    try {
      this.#view().set(name, at)
      this.#words[scratch >> 2] = 0o600
      const fd = this.#call('openat', -100, at, 0o102, scratch)
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

  #call(call: FileCall, ...args: number[]): number {
    const result = (this.#original[call] as (...args: number[]) => number)(...args)
    if (result < 0 || (result !== 0 && call !== 'openat')) throw new Error(`${call} in memory failed with ${result}`)
    return result
  }

  /** SQLite's memory; the view of before is empty when the memory has grown. */
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

  #path(pointer: number): { base: string; part: FilePart } {
    const bytes = this.#view()
    const name = Buffer.from(bytes.subarray(pointer, bytes.indexOf(0, pointer))).toString()
    const [, base = '', suffix] = /([^/]*?)(?:-(wal|journal))?$/.exec(name) ?? []
    return { base, part: (suffix as FilePart | undefined) ?? 'main' }
  }

  readonly #wrappers: Readonly<Record<FileCall, (original: FileImport) => unknown>> = {
    openat: original => (folder: number, name: number, flags: number, rest: number) => {
      const fd = (original as (...args: number[]) => number)(folder, name, flags, rest)
      if (fd >= 0) this.#open[fd] = { ...this.#path(name), position: 0 }
      return fd
    },
    fd_seek: original => (fd: number, offset: bigint, whence: number, result: number) => {
      const status = (original as (...args: unknown[]) => number)(fd, offset, whence, result)
      const file = this.#open[fd]
      if (file !== undefined && status === 0) file.position = this.#word(result) + this.#word(result + 4) * 2 ** 32
      return status
    },
    fd_read: original => (fd: number, vectors: number, count: number, result: number) => {
      const status = (original as (...args: number[]) => number)(fd, vectors, count, result)
      const file = this.#open[fd]
      if (file !== undefined && status === 0) file.position += this.#word(result)
      return status
    },
    fd_write: original => (fd: number, vectors: number, count: number, result: number) => {
      const status = (original as (...args: number[]) => number)(fd, vectors, count, result)
      const file = this.#open[fd]
      if (file === undefined || status !== 0) return status
      const events = this.watchers.get(file.base)
      let left = this.#word(result)
      for (let vector = vectors; left > 0 && vector < vectors + 8 * count; vector += 8) {
        const pointer = this.#word(vector)
        const length = Math.min(left, this.#word(vector + 4))
        events?.write(file.part, file.position, this.#bytes.subarray(pointer, pointer + length))
        file.position += length
        left -= length
      }
      return status
    },
    fd_sync: original => (fd: number) => {
      const status = (original as (fd: number) => number | undefined)(fd)
      const file = this.#open[fd]
      if (file !== undefined && !status) this.watchers.get(file.base)?.sync(file.part)
      return status
    },
    fd_close: original => (fd: number) => {
      const file = this.#open[fd]
      this.#open[fd] = undefined
      if (file !== undefined) this.watchers.get(file.base)?.close(file.part)
      return (original as (fd: number) => number)(fd)
    },
    ftruncate: original => (fd: number, size: bigint) => {
      const status = (original as (fd: number, size: bigint) => number)(fd, size)
      const file = this.#open[fd]
      if (file !== undefined && status === 0) this.watchers.get(file.base)?.truncate(file.part, Number(size))
      return status
    },
    unlink: original => (folder: number, name: number, flags: number) => {
      const file = this.#path(name)
      const status = (original as (...args: number[]) => number)(folder, name, flags)
      if (status === 0) this.watchers.get(file.base)?.remove(file.part)
      return status
    },
  }
}
