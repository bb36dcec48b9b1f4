import { createRequire } from 'node:module'
import { getSystemErrorName } from 'node:util'

type Koffi = typeof import('koffi')
/** Functions of the C library. On failure they return their own error value, usually -1; {@link lastError} has the code. */
export type SystemCall = (...args: readonly unknown[]) => number

let loaded: Koffi | undefined

function koffi(): Koffi {
  // Required instead of imported: a daemon that runs from the code cache has no imports.
  loaded ??= createRequire(import.meta.url)('koffi') as Koffi
  return loaded
}

/**
 * A system call that Node lacks, by its prototype in C. koffi is loaded with the first one, which takes about 10 ms, so call this
 * only when needed.
 * @throws Error where koffi has no build for this system, or the system lacks the function
 */
export function systemCall(prototype: string): SystemCall {
  return koffi().load(null).func(prototype) as SystemCall
}

/** Error code of the previous call, such as `EAGAIN`. */
export function lastError(): string {
  return getSystemErrorName(-koffi().errno())
}

/** Error codes of a file system that lacks a feature: links, syncs, modes, locks. */
const UNSUPPORTED = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL', 'ENOLCK']

/** Whether a call failed because the file system lacks the feature. */
export const isUnsupported = (error: unknown): boolean => UNSUPPORTED.includes(codeOf(error))

/** The result of a call; undefined if it throws, for failures that are usual: a file or a process may be gone meanwhile. */
export function ifPossible<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch {
    return undefined
  }
}

/** Code of a system error, such as `ENOENT`; `undefined` as text for any other error. */
export const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException | undefined)?.code)
