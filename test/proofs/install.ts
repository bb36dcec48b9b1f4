// Proves that extensions are installed safely: `npm run prove:install -- [--archives N] [--kills N] [--seed S]`.
// N archives, mutated and made to do harm, are installed one after the other, and the world around the home is compared byte by
// byte after each; a reader that believes them must be seen to do harm. Then install, update and remove are killed with
// SIGKILL at each of their calls of the disk, and `--kills` times more with a second kill of the start behind it: after the
// next start the extension is the old one or the new one, whole. Then enable, disable, reload and remove --purge of one that
// has code, a table, a record, a process and a binding are killed at each of their calls of the kernel and of the disk: after
// the next start it is on or off with all of it, or gone with all of it. A seed gives the same again. Exits with 1 when anything is
// wrong. A rename that is a copy must be found out; leaving out the intent (install/ledger.ts) or a rule of install/tree.ts
// fails it.
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { believeAll, installAll } from './install/archives.js'
import { type Kill, Kills } from './install/kills.js'
import { Lives } from './install/life.js'
import { firstSeed } from './library/seed.js'

const BELIEVED = 100

async function archives(seed: number, count: number): Promise<string[]> {
  const startedAt = performance.now()
  let spoken = startedAt
  const { installed, refused, wrong } = await installAll(seed, count, done => {
    if (performance.now() - spoken < 10_000) return
    spoken = performance.now()
    console.log(`      archives ${done} of ${count}`)
  })
  const problems = [...wrong]
  const escaped = await believeAll(seed, Math.min(count, BELIEVED))
  if (count >= BELIEVED && escaped === 0) problems.push('no archive would have done harm: the corpus proves nothing')
  const reasons = [...refused].sort((a, b) => b[1] - a[1]).map(([reason, times]) => `${reason} ${times}`)
  const taken = Object.entries(installed).map(([make, times]) => `${make} ${times}`)
  report(
    'archives',
    problems,
    startedAt,
    `${count} archives, 0 escapes; ${escaped} of ${BELIEVED} escape a reader that believes them`,
  )
  console.log(`      installed: ${taken.join(', ')}`)
  console.log(`      refused: ${reasons.join(', ')}`)
  return problems
}

async function kills(seed: number, more: number): Promise<string[]> {
  const startedAt = performance.now()
  return Kills.with(async world => {
    const all = await world.all(seed, more)
    const problems: string[] = []
    let next = 0
    const lane = async () => {
      for (let kill = all[next++]; kill !== undefined; kill = all[next++]) {
        const wrong = await world.run(kill)
        if (wrong !== undefined) problems.push(`${nameOf(kill)}: ${wrong}`)
      }
    }
    await Promise.all([lane(), lane()])
    const mutant = await foundOut(world, all)
    if (mutant === undefined) problems.push('a rename that copies file by file passes: the kills prove nothing')
    report(
      'kills',
      problems,
      startedAt,
      `${all.length - more} boundaries, ${more} of them killed again; found out: ${mutant}`,
    )
    return problems
  })
}

async function lives(): Promise<string[]> {
  const startedAt = performance.now()
  return Lives.with(async world => {
    const all = await world.all()
    const problems: string[] = []
    let next = 0
    const lane = async () => {
      for (let kill = all[next++]; kill !== undefined; kill = all[next++]) {
        const wrong = await world.run(kill)
        if (wrong !== undefined) problems.push(`${kill.act} killed at call ${kill.at}: ${wrong}`)
      }
    }
    await Promise.all([lane(), lane(), lane()])
    const killed = all.length - world.missed
    if (killed < all.length * 0.8) problems.push(`only ${killed} of ${all.length} were killed: that proves nothing`)
    report('lives', problems, startedAt, `enable, disable, reload and purge killed at ${killed} boundaries`)
    return problems
  })
}

/** The first kill that finds out renames which are copies. */
async function foundOut(world: Kills, all: readonly Kill[]): Promise<string | undefined> {
  const last = Math.max(...all.filter(({ operation }) => operation === 'install').map(({ at }) => at))
  for (let at = last; at > 0; at--) {
    const kill: Kill = { operation: 'install', at, again: 0 }
    const wrong = await world.run(kill, 'copies')
    if (wrong !== undefined && !wrong.startsWith('it was not killed')) return nameOf(kill)
  }
  return undefined
}

function nameOf({ operation, at, again }: Kill): string {
  return `${operation} killed at call ${at}${again > 0 ? `, its start at call ${again}` : ''}`
}

function report(name: string, problems: readonly string[], startedAt: number, text: string): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  for (const problem of problems) console.log(`FAIL  ${name}  ${problem}`)
  if (problems.length === 0) console.log(`ok    ${name}  ${text}  ${seconds} s`)
}

const text = { type: 'string' } as const
const { values } = parseArgs({ options: { archives: text, kills: text, seed: text } })
const number = (name: 'archives' | 'kills' | 'seed', fallback: number): number => {
  const value = Number(values[name] ?? fallback)
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} takes a whole number`)
  return value
}
const seed = number('seed', firstSeed())
console.log(`seed ${seed}`)
const problems = [
  ...(await archives(seed, number('archives', 1000))),
  ...(await kills(seed, number('kills', 10))),
  ...(await lives()),
]
console.log(
  problems.length === 0 ? `the installer is proven, seed ${seed}` : `${problems.length} failures, seed ${seed}`,
)
process.exitCode = problems.length === 0 ? 0 : 1
