import { randomInt } from 'node:crypto'

/** Where a proof that tries things at random begins: `SVC_SEED` of the environment gives the same things again. */
export function firstSeed(): number {
  const given = process.env.SVC_SEED
  if (given === undefined) return randomInt(2 ** 31)
  const seed = Number(given)
  if (!Number.isSafeInteger(seed) || seed < 0) throw new Error(`SVC_SEED is a whole number from 0 on, not ${given}`)
  return seed
}
