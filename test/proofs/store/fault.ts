import fs from 'node:fs'

/** Calls in a row that find the disk full with `full`. */
const FULL_FOR = 3

/** Counts calls; the n-th of one kind fails. What is called after that is told at the end. */
export class Fault {
  readonly #name: string
  readonly #error: string
  #left: number
  /** Writes, truncations and syncs since then. */
  after = 0
  happened = false

  constructor(text: string) {
    const [name = '', error = '', n = '0'] = text.split(':')
    this.#name = name
    this.#error = error
    this.#left = Number(n)
  }

  /** `write` is the call with only some of its bytes. */
  call<T>(name: string, call: () => T, part: () => T): T {
    if (this.happened && ['pwrite', 'truncate', 'fsync'].includes(name)) this.after++
    if (name !== this.#name) return call()
    this.#left--
    if (this.#left > 0 || this.#left <= (this.#error === 'full' ? -FULL_FOR : -1)) return call()
    this.happened = true
    if (this.#error === 'short') return part()
    const code = this.#error === 'full' ? 'ENOSPC' : this.#error
    throw Object.assign(new Error(`${code}: injected`), { code })
  }
}

const [mode, , , , , text = ''] = process.argv.slice(2)

/** The fault that this process was asked for. */
export const injected = new Fault(text)

/** With the whole kernel the disk is the system's: Node's calls on the files of the database are what fails. */
function failSystemCalls(): void {
  const database = (handle: number): boolean => fs.readlinkSync(`/proc/self/fd/${handle}`).includes('/svc.db')
  const { writeSync, fdatasync, ftruncate } = fs
  const throwing = (name: string, handle: number): void => {
    if (database(handle))
      injected.call(
        name,
        () => {},
        () => {},
      )
  }
  fs.writeSync = ((handle: number, bytes: Uint8Array, at: number, length: number, offset: number) => {
    const write = (count: number): number => writeSync(handle, bytes, at, count, offset)
    return database(handle)
      ? injected.call(
          'pwrite',
          () => write(length),
          () => write(7),
        )
      : write(length)
  }) as typeof fs.writeSync
  const later =
    (name: string, call: (...args: never[]) => void): unknown =>
    (handle: number, ...args: unknown[]) => {
      try {
        throwing(name, handle)
      } catch (error) {
        const done = args.at(-1) as (error: unknown) => void
        setImmediate(() => done(error))
        return
      }
      call(...([handle, ...args] as never[]))
    }
  fs.fdatasync = later('fsync', fdatasync) as typeof fs.fdatasync
  fs.ftruncate = later('truncate', ftruncate) as typeof fs.ftruncate
}

if (mode === 'kernel') failSystemCalls()
