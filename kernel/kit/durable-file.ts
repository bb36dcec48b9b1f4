import { basename, dirname, join } from 'node:path'
import type { Awaitable } from '../contract/basics.js'
import { asyncCalls, type FileCalls, runAsync, runSync, type Steps, syncCalls } from './read-file.js'

/** The calls that replace a file. */
export interface ReplaceCalls extends Pick<FileCalls, 'write' | 'sync' | 'close' | 'rename' | 'remove'> {
  /** Creates a file that must not exist, for writing; a link is not followed. */
  create(file: string): Awaitable<number>
  syncFolder(folder: string): Steps<void>
}

export interface ReplaceOptions {
  /** Permissions of the file, default 0600. */
  readonly mode?: number
  /**
   * Distinguishes the temporary files of processes that may write the same file concurrently. Default: only one process writes it.
   */
  readonly writer?: string
}

/** The steps that replace a file so that a crash leaves the old or the new one. */
export function* replacing(calls: ReplaceCalls, file: string, bytes: Uint8Array, writer = ''): Steps<void> {
  const folder = dirname(file)
  const temporary = join(folder, `.${basename(file)}${writer === '' ? '' : `.${writer}`}.tmp`)
  // A leftover would keep its permissions when reopened, and may be a link or a pipe.
  yield* discarding(calls, temporary)
  const handle: number = yield calls.create(temporary)
  try {
    try {
      for (let done = 0, written: number; done < bytes.length; done += written)
        written = yield calls.write(handle, bytes, done)
      yield calls.sync(handle)
    } finally {
      yield calls.close(handle)
    }
    yield calls.rename(temporary, file)
  } catch (error) {
    yield* discarding(calls, temporary)
    throw error
  }
  yield* calls.syncFolder(folder)
}

function* discarding(calls: ReplaceCalls, file: string): Steps<void> {
  try {
    yield calls.remove(file)
  } catch {
    // If the file stays, the call that needs the name fails with the reason.
  }
}

/** Replaces a file of this machine; it is on the disk when this resolves. @throws the system's error */
export function replaceDurably(file: string, bytes: Uint8Array, options: ReplaceOptions = {}): Promise<void> {
  return runAsync(replacing(ofMachine(asyncCalls, options), file, bytes, options.writer))
}

/** {@link replaceDurably} for synchronous callers. */
export function replaceDurablySync(file: string, bytes: Uint8Array, options: ReplaceOptions = {}): void {
  runSync(replacing(ofMachine(syncCalls, options), file, bytes, options.writer))
}

const ofMachine = (calls: FileCalls, { mode = 0o600 }: ReplaceOptions): ReplaceCalls => ({
  ...calls,
  create: file => calls.open(file, 'wx', mode),
  syncFolder: folder => syncingFolder(calls, folder),
})

/** The steps that sync the names in a folder. */
export function* syncingFolder(calls: FileCalls, folder: string): Steps<void> {
  const handle: number = yield calls.open(folder, 'r')
  try {
    yield calls.sync(handle)
  } finally {
    yield calls.close(handle)
  }
}
