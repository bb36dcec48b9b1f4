// A task fanned out to real agents: `node --import tsx test/real/task-fan-out.ts [agent …]`; default: two of them. Run by
// scripts/test-real.ts, which installs the agents and says in SVC_REAL_AGENTS where. Each run is worked on in a worktree of its
// own, in a sandbox; they claim, extend and complete once by the tools of the daemon and once by the commands of `svc`.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { processesWith } from '../e2e/installed.js'
import { TaskWorld, until } from '../fixtures/task-world.js'
import type { Reply } from '../harness/kernel.js'
import { AT_EACH_CHANGE, commandOf, type RealAgent, realAgents } from './agents.js'

const named = process.argv.slice(2).filter(name => realAgents[name])
const names = named.length > 0 ? named : AT_EACH_CHANGE
const installed = process.env.SVC_REAL_AGENTS
if (!installed) throw new Error('usage: npm run test:real -- tasks')

let model: ChildProcess
let world: TaskWorld

test.before(async () => {
  const script = fileURLToPath(new URL('fake-model.mjs', import.meta.url))
  model = spawn(process.execPath, [script, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(model.stdout!, 'data')
  const base = /http:\/\/\S+/.exec(String(line))?.[0] ?? ''
  world = await TaskWorld.open()
  // That of the daemon's user: in a sandbox an agent has its own settings of it, and nothing else.
  const home = world.svc.env.HOME ?? ''
  for (const name of names) {
    const command = commandOf(realAgents[name] as RealAgent, { root: installed, home, base })
    const head = `name: ${name}\npermissions: approve-all\ncommand: '${command}'`
    world.svc.writeHome(path.join('agents', name, 'AGENT.md'), `---\n${head}\n---\nYou do what you are told.\n`)
  }
})
test.after(async () => {
  await world?.close()
  model?.kill()
})

/** What makes the model do one thing after the other. */
const script = (...steps: readonly string[]) => [...steps, '[[say:done]]'].join('')
const step = (directive: string) => directive.replace('[[tool:', '[[do:')
/** Calls a tool of the daemon, by its MCP server. */
const call = (id: string, input = '{}') => `[[do:tool_call$ {"id":"service__${id}","input":${input} }]]`
const RUN = '{"run_id":"RUN_ID"}'

/** What an agent does with its run, by tools or by commands. */
function brief(agent: RealAgent, file: string, byTools: boolean): string {
  const shell = (command: string) => step(agent.tool(command, false))
  const work = shell(
    `echo work > ${file} && git add ${file} && git -c user.name=a -c user.email=a@b commit -qm ${file}`,
  )
  if (!byTools) {
    const svc = '"$SVC_BIN" task'
    return script(
      shell(`${svc} next --lease-seconds 300 && ${svc} begin RUN_ID`),
      work,
      shell(`${svc} heartbeat RUN_ID && ${svc} complete RUN_ID --result '{"summary":"by commands" }'`),
    )
  }
  const result = '{"run_id":"RUN_ID","result":{"summary":"by tools" } }'
  return script(
    ...(agent.lookUp ? [step(agent.lookUp.replace('note_it', 'svc tool_call').replace(/\[\[say:.*$/, ''))] : []),
    call('task_run_claim_next', '{"lease_seconds":300}'),
    call('task_run_start', RUN),
    work,
    call('task_run_heartbeat', RUN),
    call('task_run_complete', result),
  )
}

for (const byTools of [true, false]) {
  const way = byTools ? 'by tools' : 'by commands'
  test(`${names.join(', ')} claim, extend and complete the runs of one task ${way}, each in a worktree`, async () => {
    const task = await world.task('parts', {
      worker: { mode: 'inherit', allowed_agent_names: names },
      worktree: { mode: 'per_run' },
    })
    const file = (name: string) => `${name}-${way.replace(' ', '-')}.txt`
    const designations = names.map(name => ({
      brief: brief(realAgents[name] as RealAgent, file(name), byTools),
      idempotency_key: `${name}-${way}`,
    }))
    const { runs } = await world.post(`/api/tasks/${task}/runs/fan-out`, { designations })
    const ended: Reply[] = await Promise.all(
      runs.map(({ id }: Reply) => world.untilRun(id, ({ worker }: Reply) => worker?.ended_at, 'has ended')),
    )
    for (const [at, name] of names.entries()) {
      const { run, worktree, worker } = ended[at]
      const session = (await world.request('GET', `/api/sessions/${run.session_id}`)).body?.session
      const seen = [session?.agent_name, session?.sandbox?.backend, run.status, run.result?.summary]
      assert.equal(seen, [name, 'bubblewrap', 'completed', way], JSON.stringify({ run, session, worker }))
      assert.is(world.git('show', `${worktree.branch}:${file(name)}`), 'work')
    }
    assert.is(new Set(ended.map(({ worktree }) => worktree.folder)).size, names.length)
    const { timeline } = (await world.request('GET', `/api/tasks/${task}/timeline?limit=1000`)).body
    for (const event of ['task.run_claimed', 'task.run_started', 'task.run_lease_extended', 'task.run_completed'])
      for (const { id } of runs as Reply[]) {
        const seen = timeline.filter((entry: Reply) => entry.event_type === event && entry.run?.id === id)
        assert.is(seen.length, 1, `${event} of ${id}`)
      }
    assert.is((await world.request('GET', `/api/tasks/${task}`)).body.task.task.status, 'completed')
  })
}

test('runs of a killed and of a suspended agent are recovered, also after the daemon is killed', async () => {
  const [first = '', second = first] = names
  const stuck = (run: Reply) => run.run.status === 'needs_attention'
  const go = world.signalFile('go')
  const begun = (n: number) => world.signalFile(`begun-${n}`)
  // Who comes after the signal does the work; who came before waits, and is ended while it does.
  const work = (name: string, n: number) => {
    const shell = (command: string) => step((realAgents[name] as RealAgent).tool(command, false))
    const commit = `git add . && git -c user.name=a -c user.email=a@b commit -qm part-${n}`
    return script(
      // Not begun: what a daemon that is killed leaves running has failed, what is claimed is queued again.
      shell('"$SVC_BIN" task next --lease-seconds 300'),
      shell(`if [ ! -e ${go} ]; then echo begun > ${begun(n)}; sleep 100; fi`),
      shell(`echo work > part-${n}.txt && ${commit}`),
      shell(`"$SVC_BIN" task complete RUN_ID --result '{"summary":"after all" }'`),
    )
  }
  mkdirSync(path.dirname(go), { recursive: true })
  const agents = [second, first, second]
  const task = await world.task('faults', {
    worker: { mode: 'inherit', allowed_agent_names: [...new Set(agents)] },
    sandbox: { mode: 'none' },
    worktree: { mode: 'per_run' },
  })
  const designations = agents.map((name, n) => ({ brief: work(name, n), idempotency_key: `faults-${n}` }))
  const { runs } = await world.post(`/api/tasks/${task}/runs/fan-out`, { designations })
  const ids: string[] = runs.map(({ id }: Reply) => id)
  const [frozen = '', killed = '', third = ''] = ids
  const processesOf = async (n: number) => {
    await until(
      async () => existsSync(begun(n)) || undefined,
      90_000,
      () => `the work on ${ids[n]}${world.svc.logTail()}`,
    )
    const { run } = await world.run(ids[n] as string)
    const { session } = (await world.request('GET', `/api/sessions/${run.session_id}`)).body
    assert.is(session.agent_name, agents[n])
    return processesWith(`SVC_SESSION_ID=${run.session_id}`)
  }
  const [ofFrozen, ofKilled] = [await processesOf(0), await processesOf(1), await processesOf(2)]
  // Of the killed one the process that the daemon started: what that started in turn is the daemon's business.
  process.kill(ofKilled?.[0] ?? 0, 'SIGKILL')
  for (const pid of ofFrozen) process.kill(pid, 'SIGSTOP')
  const [byKill, byStop] = [await world.untilRun(killed, stuck, 'stuck'), await world.untilRun(frozen, stuck, 'stuck')]
  assert.match(byKill.run.error, 'exited unexpectedly')
  assert.match(byStop.run.error, 'is unresponsive')
  const board = await world.svc.svc('task', 'board')
  assert.match(board, new RegExp(`${killed}[^]*?exited unexpectedly`))
  assert.match(board, new RegExp(`${frozen}[^]*?is unresponsive`))
  assert.match(board, new RegExp(`${third}\\s+claimed`))
  const recover = async (run: string): Promise<string> => {
    const command = ['task', 'run', 'recover', run, '--reason', 'go on']
    return (await world.svc.json<{ run: { id: string } }>(...command)).run.id
  }
  const again = [await recover(frozen), await recover(killed)]
  await world.killed()
  world.signal('go')
  const isDone = ({ run, worker }: Reply) => run.status === 'completed' && worker?.ended_at
  for (const [n, run] of [again[0], again[1], third].entries()) {
    const { worktree } = await world.untilRun(run as string, isDone, 'is completed')
    assert.is(world.git('show', `${worktree.branch}:part-${n}.txt`), 'work')
  }
  const { timeline } = (await world.request('GET', `/api/tasks/${task}/timeline?limit=1000`)).body
  const completed = timeline.filter((entry: Reply) => entry.event_type === 'task.run_completed')
  assert.equal(completed.map((entry: Reply) => entry.run?.id).sort(), [...again, third].sort(), 'each ended once')
  assert.is((await world.request('GET', `/api/tasks/${task}`)).body.task.task.status, 'completed')
})

test.run()
