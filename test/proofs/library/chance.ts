/** Repeatable chance: the same labels give the same numbers. */
export interface Chance {
  /** From 0 up to, not including, 1. */
  (): number
  /** A whole number from 0 up to, not including, `below`. */
  int(below: number): number
  of<T>(choices: readonly T[]): T
}

/** Chance that depends on the labels alone (mulberry32, seeded with an FNV hash of them). */
export function chance(...labels: readonly (string | number)[]): Chance {
  let state = 0x811c9dc5
  for (const char of labels.join('/')) state = Math.imul(state ^ char.charCodeAt(0), 0x01000193)
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  next()
  const int = (below: number): number => Math.floor(next() * below)
  return Object.assign(next, { int, of: <T>(choices: readonly T[]): T => choices[int(choices.length)] as T })
}
