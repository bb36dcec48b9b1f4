// Attacks a built daemon and checks that it holds: `npm run prove:attack -- [--full] [--seed S] [--cases N] [name ...]`.
// Without a name every attack runs, one after the other, at the size that fits CI; `--full` takes the large size and `--cases`
// an explicit one. Exits with 1 when anything broke.
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import type { Attack } from './attack/attack.js'
import { firstSeed } from './library/seed.js'

const attacks: readonly (() => Promise<{ attack: Attack }>)[] = [
  () => import('./attack/routes.js'),
  () => import('./attack/files.js'),
  () => import('./attack/floods.js'),
  () => import('./attack/kills.js'),
  () => import('./attack/disk.js'),
  () => import('./attack/browser.js'),
  () => import('./attack/hooks-webhooks.js'),
  () => import('./attack/repositories.js'),
  () => import('./attack/catalogs.js'),
  () => import('./attack/budgets.js'),
]

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { full: { type: 'boolean', default: false }, seed: { type: 'string' }, cases: { type: 'string' } },
  })
  const number = (name: 'seed' | 'cases', fallback: number): number => {
    const value = Number(values[name] ?? fallback)
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} takes a whole number`)
    return value
  }
  const all = (await Promise.all(attacks.map(load => load()))).map(({ attack }) => attack)
  const unknown = positionals.find(name => !all.some(attack => attack.name === name))
  if (unknown) throw new Error(`no attack is named ${unknown}; there are ${all.map(({ name }) => name).join(', ')}`)
  const seed = number('seed', firstSeed())
  let broken = 0
  for (const attack of all) {
    if (positionals.length > 0 && !positionals.includes(attack.name)) continue
    const cases = number('cases', values.full ? attack.size.full : attack.size.ci)
    console.log(`${attack.name}: ${attack.holds} (${cases} ${attack.size.unit}, seed ${seed})`)
    const startedAt = performance.now()
    const wrong = await attack.run({ seed, cases, say: line => console.log(`  ${line}`) })
    for (const line of wrong) console.log(`FAIL  ${attack.name}: ${line}`)
    broken += wrong.length
    const verdict = wrong.length === 0 ? 'held' : `${wrong.length} failures`
    console.log(`  ${verdict}, ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
  }
  return broken === 0 ? 0 : 1
}

process.exitCode = await main().catch(error => {
  console.error(error instanceof Error ? error.stack : error)
  return 2
})
