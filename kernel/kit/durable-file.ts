import fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Awaitable } from '../contract/basics.js'

/** The calls by which a file is replaced, of a file system that answers at once or of one that is awaited. */
export interface ReplaceCalls {
  /** Makes a file that is not there yet, for writing; a link is not followed. */
  create(file: string): Awaitable<number>
  write(handle: number, bytes: Uint8Array): Awaitable<void>
  sync(handle: number): Awaitable<void>
  close(handle: number): Awaitable<void>
  rename(from: string, to: string): Awaitable<void>
  /** Removes what stands under a temporary name. Never fails: where that stays, the call that needs the name says why. */
  discard(file: string): Awaitable<void>
  syncFolder(folder: string): Awaitable<void>
}

export interface ReplaceOptions {
  /** Permissions of the file, default 0600. */
  readonly mode?: number
  /** Tells the temporary files apart of processes that may write the same file at once. Default: there is one such process. */
  readonly writer?: string
}

type Steps = Generator<Awaitable<unknown>, void, never>

/** Puts a whole file in place so that a crash leaves the old one or the new one; each step is a call that may be awaited. */
function* replacing(calls: ReplaceCalls, file: string, bytes: Uint8Array, writer: string): Steps {
  const folder = dirname(file)
  const temporary = join(folder, `.${basename(file)}${writer === '' ? '' : `.${writer}`}.tmp`)
  // A leftover keeps its permissions when it is opened again, and may be a link or a pipe.
  yield calls.discard(temporary)
  const handle: number = yield calls.create(temporary)
  try {
    try {
      yield calls.write(handle, bytes)
      yield calls.sync(handle)
    } finally {
      yield calls.close(handle)
    }
    yield calls.rename(temporary, file)
  } catch (error) {
    yield calls.discard(temporary)
    throw error
  }
  yield calls.syncFolder(folder)
}

/** Replaces a file by calls that are awaited; it is on the disk when this resolves. */
export async function replaceBy(calls: ReplaceCalls, file: string, bytes: Uint8Array, writer = ''): Promise<void> {
  const steps = replacing(calls, file, bytes, writer)
  let step = steps.next()
  while (!step.done) {
    step = await Promise.resolve(step.value).then(
      value => steps.next(value as never),
      error => steps.throw(error),
    )
  }
}

/** Replaces a file of this machine; it is on the disk when this resolves. @throws what the system says */
export function replaceDurably(file: string, bytes: Uint8Array, options: ReplaceOptions = {}): Promise<void> {
  return replaceBy(awaited(options), file, bytes, options.writer)
}

/** {@link replaceDurably} for those who cannot wait. */
export function replaceDurablySync(file: string, bytes: Uint8Array, options: ReplaceOptions = {}): void {
  const steps = replacing(atOnce(options), file, bytes, options.writer ?? '')
  let step = steps.next()
  while (!step.done) step = steps.next(step.value as never)
}

const EXCLUSIVE = 'wx'
const ANYTHING = { recursive: true, force: true }

const atOnce = ({ mode = 0o600 }: ReplaceOptions): ReplaceCalls => ({
  create: file => fs.openSync(file, EXCLUSIVE, mode),
  write(handle, bytes) {
    for (let done = 0; done < bytes.length; ) done += fs.writeSync(handle, bytes, done)
  },
  sync: fs.fsyncSync,
  close: fs.closeSync,
  rename: fs.renameSync,
  discard(file) {
    try {
      fs.rmSync(file, ANYTHING)
    } catch {
      // To create the file fails next.
    }
  },
  syncFolder(folder) {
    const handle = fs.openSync(folder, 'r')
    try {
      fs.fsyncSync(handle)
    } finally {
      fs.closeSync(handle)
    }
  },
})

const open = promisify(fs.open)
const write = promisify(fs.write)
const sync = promisify(fs.fsync)
const close = promisify(fs.close)

const awaited = ({ mode = 0o600 }: ReplaceOptions): ReplaceCalls => ({
  create: file => open(file, EXCLUSIVE, mode),
  async write(handle, bytes) {
    for (let done = 0; done < bytes.length; ) done += (await write(handle, bytes, done)).bytesWritten
  },
  sync,
  close,
  rename: fs.promises.rename,
  discard: file => fs.promises.rm(file, ANYTHING).catch(() => {}),
  async syncFolder(folder) {
    const handle = await open(folder, 'r')
    try {
      await sync(handle)
    } finally {
      await close(handle)
    }
  },
})
