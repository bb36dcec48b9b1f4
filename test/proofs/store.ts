// Proves the store (docs: kernel/store/README.md): `npm run prove:store -- [--kills N] [--states N] [--seed S] [--only name:index]`.
// A seed gives the same workload, kills and disk states again; `--only` runs one of them. Exits with 1 when anything is wrong.
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { firstSeed } from './library/seed.js'
import { damagedJournal, damagedStore } from './store/damage.js'
import { FAULTS, provokeFaults } from './store/faults.js'
import { KILLS_A_LIFE, killJournal, killStore } from './store/kills.js'
import { withChild } from './store/processes.js'
import { MUTANTS, States } from './store/states.js'

/** A part of the proof: `run` tells what is wrong with one of `count` cases. */
interface Part {
  readonly name: string
  readonly count: number
  /** How many at once: 2 where processes do the work. */
  readonly lanes: number
  readonly run: (index: number) => Promise<string | undefined>
  readonly note?: () => string
}

/** States within which a mutant must be found out; most are in the first few. */
const LARGEST_SEARCH = 300

interface Sizes {
  readonly kills: number
  readonly states: number
}

function partsOf(script: string, seed: number, { kills, states }: Sizes): Part[] {
  const made = new States(seed)
  const lives = (all: number) => Math.ceil(all / KILLS_A_LIFE)
  const killsIn = (all: number, life: number) => Math.min(KILLS_A_LIFE, all - life * KILLS_A_LIFE)
  const journalKills = Math.ceil(kills / 5)
  const damages = Math.ceil(states / 2)
  let faults = 0
  let caught: string[] = []
  return [
    {
      name: 'kills',
      count: lives(kills),
      lanes: 2,
      run: life => killStore(script, seed, life, killsIn(kills, life)),
      note: () => `${kills} kills of a database`,
    },
    {
      name: 'journal-kills',
      count: lives(journalKills),
      lanes: 2,
      run: life => killJournal(script, seed, life, killsIn(journalKills, life)),
      note: () => `${journalKills} kills of a journal`,
    },
    { name: 'store-states', count: states, lanes: 1, run: index => made.check('store', index) },
    { name: 'journal-states', count: states, lanes: 1, run: index => made.check('journal', index) },
    { name: 'file-states', count: states, lanes: 1, run: index => made.check('file', index) },
    {
      name: 'mutants',
      count: MUTANTS.length + 1,
      lanes: 1,
      run: async index => {
        const mutant = MUTANTS[index]
        if (mutant === undefined) return control(made)
        const { subject, without } = mutant
        for (let state = 0; state < LARGEST_SEARCH; state++) {
          const found = await made.check(subject, state, without)
          if (found === undefined) continue
          caught = [...caught, `${subject} without syncs of ${without.source}: state ${state}`]
          return undefined
        }
        return `${subject} without syncs of ${without.source} passes ${LARGEST_SEARCH} states: the simulator proves nothing`
      },
      note: () => `found out: ${caught.join(', ')}`,
    },
    { name: 'damaged-store', count: damages, lanes: 1, run: index => damagedStore(seed, index) },
    { name: 'damaged-journal', count: damages, lanes: 1, run: index => damagedJournal(seed, index) },
    {
      name: 'faults',
      count: FAULTS.length,
      lanes: 2,
      run: async index => {
        const { runs, wrong } = await provokeFaults(
          script,
          seed,
          FAULTS[index] as (typeof FAULTS)[number],
          states < 300 ? 4 : 1,
        )
        faults += runs
        return wrong ?? (runs === 0 ? 'no call was ever made to fail' : undefined)
      },
      note: () => `${faults} faults`,
    },
  ]
}

/** The wrapping of a mutant, dropping nothing, must pass: else a mutant may be found out for the wrong reason. */
async function control(made: States): Promise<string | undefined> {
  for (const subject of ['store', 'journal', 'file'] as const) {
    for (let state = 0; state < 8; state++) {
      const found = await made.check(subject, state, /nothing is dropped/)
      if (found !== undefined) return `a ${subject} wrapped without dropping a sync, state ${state}: ${found}`
    }
  }
  return undefined
}

/** Runs the cases of one part; prints a line of progress now and then, and what is wrong with how to see it again. */
async function prove(part: Part, seed: number, sizes: Sizes, only: number | undefined): Promise<number> {
  const startedAt = performance.now()
  let next = only ?? 0
  const end = only === undefined ? part.count : only + 1
  let done = 0
  let wrong = 0
  let spoken = startedAt
  const lane = async (): Promise<void> => {
    for (let index = next++; index < end; index = next++) {
      const found = await part.run(index).catch(error => (error instanceof Error ? `${error.stack}` : String(error)))
      done++
      if (found !== undefined) {
        wrong++
        console.log(`FAIL  ${part.name}:${index}  ${found}`)
        console.log(
          `      npm run prove:store -- --kills ${sizes.kills} --states ${sizes.states} --seed ${seed} --only ${part.name}:${index}`,
        )
      } else if (performance.now() - spoken > 10_000) {
        spoken = performance.now()
        console.log(`      ${part.name} ${done} of ${part.count}`)
      }
    }
  }
  await Promise.all(Array.from({ length: part.lanes }, lane))
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  const note = (only === undefined && part.note?.()) || `${done} of ${part.count} cases`
  console.log(
    `${wrong > 0 ? 'FAIL' : 'ok  '}  ${part.name}  ${note}${wrong > 0 ? `, ${wrong} wrong` : ''}  ${seconds} s`,
  )
  return wrong
}

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({ options: { kills: text, states: text, seed: text, only: text } })
  const number = (name: 'kills' | 'states' | 'seed', fallback: number): number => {
    const value = Number(values[name] ?? fallback)
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} takes a whole number`)
    return value
  }
  const sizes = { kills: number('kills', 50), states: number('states', 100) }
  const seed = number('seed', firstSeed())
  const [onlyName, onlyIndex = '0'] = values.only?.split(':') ?? []
  console.log(`seed ${seed}: ${sizes.kills} kills, ${sizes.states} states`)
  return withChild(async script => {
    let wrong = 0
    const parts = partsOf(script, seed, sizes).filter(({ name }) => onlyName === undefined || name === onlyName)
    const count = onlyName === undefined ? Infinity : (parts[0]?.count ?? 0)
    if (!(Number(onlyIndex) < count)) throw new Error(`--only takes <part>:<index>, not ${values.only}`)
    for (const part of parts)
      wrong += await prove(part, seed, sizes, onlyName === undefined ? undefined : Number(onlyIndex))
    const passed = onlyName === undefined ? 'the store is proven' : 'passed'
    console.log(`${wrong === 0 ? passed : `${wrong} failures`}, seed ${seed}`)
    return wrong === 0 ? 0 : 1
  })
}

process.exitCode = await main().catch(error => {
  console.error(error instanceof Error ? error.message : error)
  return 2
})
