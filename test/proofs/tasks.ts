// Proves leases: `npm run prove:tasks -- [--histories N] [--steps N] [--lanes N] [--inside N] [--claims N] [--claimants N] [--kills N]
// [--seed N]`, in four parts; 0 leaves one out. Random histories of claims, heartbeats, expiries, kills and restarts, some at once,
// against a model. Then sessions claim runs, all at once, and give them back or complete them: nothing is held by two; first of a
// daemon within this process (`--inside`), then of one over its socket (`--claims`). Then that daemon is killed with -9 at points of
// chance while they do, and started again: what it had said is so, nothing is given to two at once, no run is lost and none is
// completed twice. The whole is 10,000 histories, 1,000,000 claims by 50 claimants and 200 kills; the default takes a minute or so.
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type StartedDaemon, startDaemon } from '../../testing/index.js'
import { chance } from './library/chance.js'
import { firstSeed } from './library/seed.js'
import { Claimants, many, queueRun } from './tasks/claimants.js'
import { passAround, passInside } from './tasks/claims.js'
import { playHistories } from './tasks/histories.js'

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '20' },
    steps: { type: 'string', default: '40' },
    lanes: { type: 'string', default: '4' },
    claims: { type: 'string', default: '1000' },
    inside: { type: 'string', default: '2000' },
    claimants: { type: 'string', default: '50' },
    kills: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(firstSeed()) },
  },
})
const { histories, steps, lanes, claims, inside, claimants, kills, seed } = Object.fromEntries(
  Object.entries(values).map(([name, value]) => [name, Number(value)]),
) as Record<keyof typeof values, number>
/** Runs that wait at the begin of each life of the daemon: more than it lives to see done, mostly. */
const WAITING = 100
const MS_TO_KILL = 300

const wrong: string[] = []
const random = chance(seed, 'tasks')
const began = Date.now()
const note = (text: string) =>
  console.log(`${text}, ${wrong.length} wrong, ${Math.round((Date.now() - began) / 1000)} s`)

wrong.push(...(await playHistories(histories, { steps, seed, lanes, note: done => note(`${done} histories`) })))
const proof = { wrong, random, note }
if (inside > 0) await passInside(inside, claimants, proof)
if (claims === 0 && kills === 0) end()
const daemon = (await startDaemon({ config: { limits: { max_concurrent_agents: 1000 } } })) as StartedDaemon
try {
  const agent = path.join(daemon.home, 'agents', 'claimant')
  await mkdir(agent, { recursive: true })
  await writeFile(path.join(agent, 'AGENT.md'), "---\nname: claimant\ncommand: 'true'\n---\nYou claim.\n")
  const root = path.join(daemon.home, '..', 'work')
  await mkdir(root, { recursive: true })
  const workspace = (await daemon.request('POST', '/api/workspaces', { root_dir: root, name: 'w' })).body.workspace.id

  let all = await Claimants.of(daemon, workspace, claims > 0 ? claimants : 8)
  if (claims > 0) {
    const queue = (title: string) => queueRun(daemon, title)
    await passAround({ sessions: all.sessions, ask: (...asked) => all.ask(...asked), queue }, claims, proof)
  }

  /** Runs of the part with kills: who holds them in this life of the daemon, and which were said to be completed. */
  const holders = new Map<string, string>()
  const completed = new Set<string>()
  const queued = new Set<string>()
  for (let kill = 0; kill < kills; kill++) {
    const missing = Math.max(0, WAITING - queued.size)
    for (const id of await many(missing, 4, n => queueRun(daemon, `kill ${kill}.${n}`))) queued.add(id)
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
    all.close()
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
    if ((kill + 1) % 20 === 0) note(`${kill + 1} kills`)
  }
  note(`${kills} kills, ${completed.size} completed by their word`)
} finally {
  await daemon.stop()
}
end()

function end(): never {
  for (const line of wrong.slice(0, 20)) console.log(`  ${line}`)
  console.log(`${wrong.length} wrong (--seed ${seed})`)
  process.exit(wrong.length > 0 ? 1 : 0)
}
