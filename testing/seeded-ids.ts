import { idsOf } from '../kernel/index.js'
import type { Ids } from '../kernel/plugin.js'

/** Ids that depend only on the seed and the order of calls: for tests and simulations, never for secrets. */
export function seededIds(seed: number): Ids {
  const next = smallFastCounter(seed)
  const bytes = (count: number) => Buffer.from(Array.from({ length: count }, () => next() >>> 24))
  const hex = (count: number) => bytes(count).toString('hex')
  const uuid = () => {
    const raw = bytes(16)
    raw[6] = (raw[6]! & 0x0f) | 0x40
    raw[8] = (raw[8]! & 0x3f) | 0x80
    return raw.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  }
  return idsOf(hex, uuid, () => next() / 2 ** 32)
}

/** The generator sfc32: 128 bits of state, 32 bits a call. */
function smallFastCounter(seed: number): () => number {
  let a = seed | 0
  let b = Math.floor(seed / 2 ** 32) | 0
  let c = 0x9e3779b9 | 0
  let counter = 1
  const next = () => {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return sum >>> 0
  }
  // The first outputs of similar seeds are similar.
  for (let round = 0; round < 16; round++) next()
  return next
}
