// Proves that a backup under load is whole: `npm run prove:backup -- [--rounds N] [--seed S]`.
// Sessions, jobs and workspaces are written without a pause while backups are made; the daemon, or the backup, or its restore is killed at
// random moments. Each backup that is there is restored, in a home of its own, and compared through the API: all that was acknowledged
// before it began is in it, what it has of a session is what the original has, and its home is held. Backups of the folder share chunks:
// each of them is whole after every round, also after a deletion that was killed. Exits with 1 when that does not hold.
import { parseArgs } from 'node:util'
import { Life } from './backup/life.js'
import { chance } from './library/chance.js'
import { firstSeed } from './library/seed.js'

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({ options: { rounds: text, seed: text } })
  const number = (name: keyof typeof values, fallback: number): number => {
    const value = Number(values[name] ?? fallback)
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} takes a whole number`)
    return value
  }
  const [rounds, seed] = [number('rounds', 5), number('seed', firstSeed())]
  console.log(`seed ${seed}: ${rounds} backups`)
  const life = new Life()
  const faults: string[] = []
  try {
    await life.begin()
    for (let n = 0; n < rounds; n++) {
      const found = await life.round(n, chance(seed, n))
      for (const fault of found) console.log(`FAIL  round ${n}: ${fault}`)
      faults.push(...found)
    }
  } finally {
    await life.end()
  }
  console.log(`${life.counts}, ${faults.length} faults`)
  if (faults.length > 0) console.log(`npm run prove:backup -- --rounds ${rounds} --seed ${seed}`)
  return faults.length === 0 ? 0 : 1
}

process.exitCode = await main().catch(error => {
  console.error(error instanceof Error ? error.stack : error)
  return 2
})
