import { randomFillSync, randomUUID } from 'node:crypto'
import type { Ids } from './contract/basics.js'

/** Bytes per refill of the random pool: a system call costs about 10 us regardless of its size. */
const POOL_BYTES = 4096

/** Unguessable ids from the system's random generator. */
export function systemIds(): Ids {
  const pool = Buffer.alloc(POOL_BYTES)
  let used = POOL_BYTES
  const hex = (bytes: number) => {
    if (used + bytes > POOL_BYTES) {
      randomFillSync(pool)
      used = 0
    }
    const text = pool.toString('hex', used, used + bytes)
    // Used bytes are cleared: they are not used again, and secrets do not stay in memory.
    pool.fill(0, used, used + bytes)
    used += bytes
    return text
  }
  return idsOf(
    hex,
    () => randomUUID(),
    () => Math.random(),
  )
}

/** Ids made of random bytes, as hex, of random UUIDs and of random numbers from 0 to 1. */
export function idsOf(hex: (bytes: number) => string, uuid: Ids['uuid'], random: Ids['random']): Ids {
  return { hex: bytes => hex(checked(bytes)), id: prefix => `${prefix}_${hex(8)}`, uuid, random }
}

function checked(bytes: number): number {
  if (!Number.isInteger(bytes) || bytes < 1 || bytes > 1024) throw new RangeError('ask for 1 to 1024 bytes')
  return bytes
}
