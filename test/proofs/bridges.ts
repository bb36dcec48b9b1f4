// Proves that messages of bridges survive the daemon: `npm run prove:bridges -- [--kills N] [--seed S]`.
// People write on a platform in another process, and the daemon is killed at random moments, N times with a platform that can be asked
// what arrived, and N times with one that cannot. With the first nothing is lost and nothing is said twice; with the second nothing is
// said twice, and what is not surely there is listed. Exits with 1 when that does not hold.
import { parseArgs } from 'node:util'
import { type Kind, Life } from './bridges/life.js'
import { chance } from './library/chance.js'
import { firstSeed } from './library/seed.js'

const KINDS: readonly Kind[] = [
  { name: 'asked', settles: true, edits: true },
  { name: 'mute', settles: false, edits: false },
]

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({ options: { kills: text, seed: text } })
  const number = (name: keyof typeof values, fallback: number): number => {
    const value = Number(values[name] ?? fallback)
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} takes a whole number`)
    return value
  }
  const [kills, seed] = [number('kills', 10), number('seed', firstSeed())]
  console.log(`seed ${seed}: ${kills} kills for each of ${KINDS.length} platforms`)
  const verdicts = await Promise.all(
    KINDS.map(async kind => {
      const life = new Life(kind, seed)
      try {
        await life.begin()
        for (let n = 0; n < kills; n++) await life.round(chance(seed, kind.name, n))
        const faults = await life.check()
        for (const fault of faults) console.log(`FAIL  ${kind.name}: ${fault}`)
        console.log(`${kind.name}: ${life.counts}, ${faults.length} faults`)
        return faults.length
      } finally {
        await life.end()
      }
    }),
  )
  const wrong = verdicts.reduce((sum, count) => sum + count, 0)
  if (wrong > 0) console.log(`npm run prove:bridges -- --kills ${kills} --seed ${seed}`)
  return wrong === 0 ? 0 : 1
}

process.exitCode = await main().catch(error => {
  console.error(error instanceof Error ? error.stack : error)
  return 2
})
