import fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Awaitable } from '../contract/basics.js'

/** The calls that replace a file, of a synchronous or an asynchronous file system. */
export interface ReplaceCalls {
  /** Creates a file that must not exist, for writing; a link is not followed. */
  create(file: string): Awaitable<number>
  write(handle: number, bytes: Uint8Array): Awaitable<void>
  sync(handle: number): Awaitable<void>
  close(handle: number): Awaitable<void>
  rename(from: string, to: string): Awaitable<void>
  /** Removes a temporary file. Never fails: if the file stays, the call that needs the name fails with the reason. */
  discard(file: string): Awaitable<void>
  syncFolder(folder: string): Awaitable<void>
}

export interface ReplaceOptions {
  /** Permissions of the file, default 0600. */
  readonly mode?: number
  /**
   * Distinguishes the temporary files of processes that may write the same file concurrently. Default: only one process writes it.
   */
  readonly writer?: string
}

type Steps = Generator<Awaitable<unknown>, void, never>

/** The steps that replace a file so that a crash leaves the old or the new one; the driver may await each. */
function* replacing(calls: ReplaceCalls, file: string, bytes: Uint8Array, writer: string): Steps {
  const folder = dirname(file)
  const temporary = join(folder, `.${basename(file)}${writer === '' ? '' : `.${writer}`}.tmp`)
  // A leftover would keep its permissions when reopened, and may be a link or a pipe.
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

/** Replaces a file with asynchronous calls; it is on the disk when this resolves. */
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

/** Replaces a file of this machine; it is on the disk when this resolves. @throws the system's error */
export function replaceDurably(file: string, bytes: Uint8Array, options: ReplaceOptions = {}): Promise<void> {
  return replaceBy(awaited(options), file, bytes, options.writer)
}

/** {@link replaceDurably} for synchronous callers. */
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
      // The following create then fails.
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
