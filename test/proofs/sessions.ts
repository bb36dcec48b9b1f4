// Proves that sessions survive their daemon: `npm run prove:sessions -- [--kills N] [--seed S] [--only I] [--agents N]`.
// Kills the built daemon at random points of a turn and looks at what the next one makes of it. A seed gives the same points
// again, as far as the machine does; `--only` runs one of them. With `--agents` it stops a daemon with so many agents that
// do not want to end, and ten times as many sessions without one. Exits with 1 when anything is wrong.
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { chance } from './library/chance.js'
import { firstSeed } from './library/seed.js'
import { Life } from './sessions/life.js'
import { proveShutdown } from './sessions/shutdown.js'

const LANES = 2

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({ options: { kills: text, seed: text, only: text, agents: text } })
  const number = (name: keyof typeof values, fallback: number): number => {
    const value = Number(values[name] ?? fallback)
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} takes a whole number`)
    return value
  }
  const agents = number('agents', 0)
  if (agents > 0) {
    const wrong = await proveShutdown(agents, agents * 10)
    for (const line of wrong) console.log(`FAIL  ${line}`)
    return wrong.length === 0 ? 0 : 1
  }
  const kills = number('kills', 20)
  const seed = number('seed', firstSeed())
  const startedAt = performance.now()
  const queue = values.only === undefined ? Array.from({ length: kills }, (_, index) => index) : [number('only', 0)]
  console.log(`seed ${seed}: ${queue.length} kills`)
  const hits = new Map<string, number>()
  let wrong = 0
  const lane = async (): Promise<void> => {
    const life = new Life()
    try {
      await life.begin()
      for (let index = queue.shift(); index !== undefined; index = queue.shift()) {
        const verdict = await life.kill(chance(seed, index))
        hits.set(verdict.hit, (hits.get(verdict.hit) ?? 0) + 1)
        if (verdict.wrong === undefined) continue
        wrong++
        console.log(`FAIL  kill ${index}, after ${verdict.hit}: ${verdict.wrong}`)
        console.log(`      npm run prove:sessions -- --seed ${seed} --only ${index}`)
      }
    } finally {
      await life.end()
    }
  }
  await Promise.all(Array.from({ length: Math.min(LANES, queue.length) }, lane))
  console.log(`killed after: ${[...hits].map(([hit, count]) => `${hit} ${count}`).join(', ')}`)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${wrong === 0 ? 'every session was repaired' : `${wrong} failures`}, seed ${seed}, ${seconds} s`)
  return wrong === 0 ? 0 : 1
}

process.exitCode = await main().catch(error => {
  console.error(error instanceof Error ? error.stack : error)
  return 2
})
