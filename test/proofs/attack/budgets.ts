import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { TaskWorld, until } from '../../fixtures/task-world.js'
import type { Reply } from '../../harness/kernel.js'
import { chance } from '../library/chance.js'
import type { Attack, AttackRun } from './attack.js'

const SPENDER = fileURLToPath(new URL('./budgets/spender.mjs', import.meta.url))
const PATIENCE_MS = 120_000
/** Tokens of one call of a model, and of a budget. */
const CALL = 100
const LIMIT = 1000

/** A way to get past a budget, and the runs that try it at the same time. */
interface Trick {
  readonly name: string
  readonly runs?: number
  /** Calls that are made before the daemon can know, where an agent does not tell of them: those of its first turns. */
  readonly unknown?: number
}

const TRICKS: readonly Trick[] = [
  { name: 'honest' },
  { name: 'negative' },
  { name: 'words' },
  { name: 'decreasing' },
  { name: 'small' },
  { name: 'flood' },
  { name: 'release' },
  { name: 'crash' },
  { name: 'together', runs: 3 },
  { name: 'silent', unknown: 3 },
  { name: 'garbage', unknown: 3 },
  { name: 'once', unknown: 6 },
]

/** Tries one trick on a task of its own; what went wrong. */
async function attempt(world: TaskWorld, trick: Trick, round: number, counted: Map<string, number>): Promise<string[]> {
  const agent = `${trick.name}-${round}`
  const ledger = path.join(world.svc.folder, `ledger-${agent}`)
  const command = `${process.execPath} ${SPENDER} ${trick.name} ${ledger} ${CALL}`
  const head = `name: ${agent}\npermissions: approve-all\ncommand: '${command}'`
  world.svc.writeHome(path.join('agents', agent, 'AGENT.md'), `---\n${head}\n---\nSpend.\n`)
  const profile = { worker: { mode: 'select', agent_name: agent }, sandbox: { mode: 'none' } }
  const task = await world.task(agent, profile, { max_attempts: 10 })
  await world.post(`/api/budgets/task/${task}`, { tokens: LIMIT }, 'PUT')
  const runs = trick.runs ?? 1
  const designations = Array.from({ length: runs }, (_, n) => ({
    brief: `part ${n}`,
    idempotency_key: `${agent}-${n}`,
  }))
  const made: string[] = (await world.post(`/api/tasks/${task}/runs/fan-out`, { designations })).runs.map(
    ({ id }: Reply) => id,
  )
  const ends = await Promise.all(made.map(run => endOf(world, run)))
  const calls = existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n').length : 0
  counted.set(trick.name, Math.max(calls, counted.get(trick.name) ?? 0))
  const most = trick.unknown ?? LIMIT / CALL + runs
  const kind = trick.unknown === undefined ? 'budget_exhausted' : 'budget_unmeasured'
  const wrong = ends.filter(error => !error.startsWith(kind)).map(error => `the run ended as ${error}`)
  if (calls > most) wrong.push(`${calls} calls, at most ${most} are allowed`)
  if (calls === 0) wrong.push('no call was made')
  return wrong.map(text => `${agent}: ${text}`)
}

/** The error of a run that its budget has ended; one whose agent died before is recovered as often as that happens. */
async function endOf(world: TaskWorld, first: string): Promise<string> {
  let run = first
  return until(
    async () => {
      const { run: now } = await world.run(run)
      if (now.status === 'queued' || now.ended_at || now.status !== 'needs_attention') return undefined
      if (now.error.startsWith('budget_')) return now.error as string
      run = (await world.post(`/api/runs/${run}/recover`, { reason: 'once more' })).run.id
      return undefined
    },
    PATIENCE_MS,
    () => `the end of run ${run}`,
  )
}

async function run({ seed, cases, say }: AttackRun): Promise<readonly string[]> {
  const world = await TaskWorld.open({
    observability: { transcripts: { max_bytes_per_session: 1024 * 1024 } },
    task: { orchestration: { spawn_failure_limit: 0 } },
  })
  const wrong: string[] = []
  /** The most calls that each trick made. */
  const counted = new Map<string, number>()
  try {
    const random = chance(seed, 'budgets')
    for (let done = 0; done < cases && wrong.length === 0; done += TRICKS.length) {
      const waiting = TRICKS.slice(0, cases - done).sort(() => random() - 0.5)
      const lane = async () => {
        for (let trick = waiting.shift(); trick; trick = waiting.shift())
          wrong.push(...(await attempt(world, trick, done, counted)))
      }
      await Promise.all([lane(), lane()])
    }
    say(`calls: ${[...counted].map(([name, calls]) => `${name} ${calls}`).join(', ')}; ${LIMIT / CALL} reach the limit`)
  } catch (error) {
    wrong.push((error as Error).message)
  } finally {
    await world.close()
  }
  return wrong
}

/** Agents that tell what is not so, or nothing, to spend more than they may. */
export const attack: Attack = {
  name: 'budgets',
  holds: 'an agent gets past its budget by one call of a model at most; one that tells nothing ends with its turn',
  size: { ci: 12, full: 120, unit: 'tricks' },
  run,
}
