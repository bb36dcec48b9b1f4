import os from 'node:os'
import { ifPossible, type SystemCall, systemCall } from '../../../../kernel/kit/system-calls.js'

/** Swaps two files in one step; false where the file system cannot, or one of them is missing. */
export type Swap = (one: string, other: string) => boolean

const HERE = -100
const EXCHANGE = 2
const calls: Partial<Record<NodeJS.Platform, () => Swap>> = {
  linux() {
    const call = systemCall(
      'int renameat2(int folder, const char *one, int otherFolder, const char *other, unsigned int flags)',
    )
    return (one, other) => call(HERE, one, HERE, other, EXCHANGE) === 0
  },
  darwin() {
    const call: SystemCall = systemCall('int renamex_np(const char *one, const char *other, unsigned int flags)')
    return (one, other) => call(one, other, EXCHANGE) === 0
  },
}

let known: Swap | undefined

/** Swaps files by a system call that Node lacks; false where the system lacks it too. */
export function swap(one: string, other: string): boolean {
  known ??= ifPossible(() => calls[os.platform()]?.()) ?? (() => false)
  return known(one, other)
}
