// Proves leases: `npm run prove:tasks -- [--claims N] [--claimants N] [--kills N] [--seed N]`. First sessions claim and complete
// runs of one daemon over its socket, all at once: each run is given away once. Then the daemon is killed with -9 at points of
// chance while they do, and started again: what it had said is so, nothing is given to two at once, no run is lost and none is
// completed twice. The whole is 1,000,000 claims by 50 claimants and 200 kills; the default takes a minute or so.
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type StartedDaemon, startDaemon } from '../testing/index.js'
import { chance } from './prove-store/chance.js'
import { Claimants, many, queueRun } from './prove-tasks/claimants.js'
import { firstSeed } from './seed.js'

const { values } = parseArgs({
  options: {
    claims: { type: 'string', default: '1000' },
    claimants: { type: 'string', default: '50' },
    kills: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(firstSeed()) },
  },
})
const [claims, claimants, kills, seed] = [values.claims, values.claimants, values.kills, values.seed].map(Number) as [
  number,
  number,
  number,
  number,
]
/** Runs that wait at a time: a million tasks are not made before the first one is claimed. */
const BATCH = 10_000
const RUNS_PER_KILL = 20
const MS_TO_KILL = 700

const wrong: string[] = []
const random = chance(seed, 'tasks')
const began = Date.now()
const note = (text: string) =>
  console.log(`${text}, ${wrong.length} wrong, ${Math.round((Date.now() - began) / 1000)} s`)

const daemon = (await startDaemon({ config: { limits: { max_concurrent_agents: 1000 } } })) as StartedDaemon
try {
  const agent = path.join(daemon.home, 'agents', 'claimant')
  await mkdir(agent, { recursive: true })
  await writeFile(path.join(agent, 'AGENT.md'), "---\nname: claimant\ncommand: 'true'\n---\nYou claim.\n")
  const root = path.join(daemon.home, '..', 'work')
  await mkdir(root, { recursive: true })
  const workspace = (await daemon.request('POST', '/api/workspaces', { root_dir: root, name: 'w' })).body.workspace.id

  const given = new Map<string, string>()
  let all = await Claimants.of(daemon, workspace, claimants)
  for (let done = 0; done < claims; ) {
    const count = Math.min(BATCH, claims - done)
    await many(count, 8, n => queueRun(daemon, `claim ${done + n}`))
    await Promise.all(all.sessions.map(session => drain(all, session)))
    done += count
    if (given.size !== done) wrong.push(`${done} runs were queued and ${given.size} given away`)
    note(`${done} claims by ${claimants}`)
  }

  /** Claims until there is nothing; what is given twice is wrong. */
  async function drain(of: Claimants, session: string): Promise<void> {
    for (;;) {
      const { status, body } = await of.ask(session, 'claim-next')
      if (status === 204) return
      if (status !== 200) return void wrong.push(`claim-next: ${status} ${JSON.stringify(body)}`)
      const { id } = body.claim.run
      const other = given.get(id)
      if (other !== undefined) wrong.push(`run ${id} was given to ${other} and to ${session}`)
      given.set(id, session)
      const ended = await of.ask(session, `${id}/complete`)
      if (ended.status !== 200) wrong.push(`complete ${id}: ${ended.status} ${JSON.stringify(ended.body)}`)
    }
  }

  /** Runs of the part with kills: who holds them in this life of the daemon, and which were said to be completed. */
  const holders = new Map<string, string>()
  const completed = new Set<string>()
  const queued = new Set<string>()
  for (let kill = 0; kill < kills; kill++) {
    for (const id of await many(RUNS_PER_KILL, 4, n => queueRun(daemon, `kill ${kill}.${n}`))) queued.add(id)
    let isDead = false
    const work = all.sessions.slice(0, 8).map(async session => {
      while (!isDead) {
        const claim = await all.ask(session, 'claim-next').catch(() => undefined)
        if (!claim || claim.status === 204) return
        if (claim.status !== 200) return void wrong.push(`claim-next: ${claim.status} ${JSON.stringify(claim.body)}`)
        const { id } = claim.body.claim.run
        if (completed.has(id)) wrong.push(`run ${id} was given away after it was completed`)
        if (holders.has(id)) wrong.push(`run ${id} is given to ${session}, and ${holders.get(id)} holds it`)
        holders.set(id, session)
        if (random.int(2) === 0) await all.ask(session, `${id}/start`).catch(() => undefined)
        const ended = await all.ask(session, `${id}/complete`).catch(() => undefined)
        if (ended?.status !== 200) continue
        holders.delete(id)
        completed.add(id)
      }
    })
    await sleep(random.int(MS_TO_KILL))
    await daemon.kill('SIGKILL')
    isDead = true
    await Promise.all(work)
    await daemon.restart()
    holders.clear()
    all = await Claimants.of(daemon, workspace, 8)
    for (const id of queued) {
      const { status, body } = await daemon.request('GET', `/api/task-runs/${id}`)
      const run = body?.run?.run
      if (status !== 200) wrong.push(`run ${id} is lost: ${status}`)
      else if (completed.has(id) && run.status !== 'completed')
        wrong.push(`run ${id} was completed and is ${run.status}`)
      else if (!['queued', 'completed', 'failed'].includes(run.status))
        wrong.push(`run ${id} is ${run.status} of nobody`)
      else if (run.status === 'failed' && run.failure_kind !== 'daemon_restarted')
        wrong.push(`run ${id} failed by ${run.failure_kind}`)
      if (run?.status === 'completed' || run?.status === 'failed') queued.delete(id)
    }
  }
  note(`${kills} kills, ${completed.size} completed by their word`)
} finally {
  await daemon.stop()
}
for (const line of wrong.slice(0, 20)) console.log(`  ${line}`)
console.log(`${wrong.length} wrong (--seed ${seed})`)
process.exitCode = wrong.length > 0 ? 1 : 0
