import { createRequire } from 'node:module'
import { getSystemErrorName } from 'node:util'

type Koffi = typeof import('koffi')
/** Functions of the C library. Errors are what the function says, -1 mostly; {@link lastError} tells which. */
export type SystemCall = (...args: readonly unknown[]) => number

let loaded: Koffi | undefined

function koffi(): Koffi {
  // Not imported: the daemon out of the code cache has no import of its own.
  loaded ??= createRequire(import.meta.url)('koffi') as Koffi
  return loaded
}

/**
 * A call that Node does not have, by its prototype in C. koffi is loaded with the first one, which takes some 10 ms: ask for it
 * where it is needed, not before.
 * @throws Error where koffi has no build for this system, or the system no such function
 */
export function systemCall(prototype: string): SystemCall {
  return koffi().load(null).func(prototype) as SystemCall
}

/** Code of the error of the call before, such as `EAGAIN`. */
export function lastError(): string {
  return getSystemErrorName(-koffi().errno())
}

/** How a file system says that it does not have what was asked of it: links, syncs, modes, locks. */
const UNSUPPORTED = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL', 'ENOLCK']

/** Whether a call failed because the file system cannot do it at all. */
export const isUnsupported = (error: unknown): boolean =>
  UNSUPPORTED.includes(String((error as NodeJS.ErrnoException | undefined)?.code))
