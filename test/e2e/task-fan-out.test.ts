// proof, timeout: 400s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isAlive } from '../fixtures/session-world.js'
import { TaskWorld } from '../fixtures/task-world.js'
import type { Reply } from '../harness/kernel.js'

const by = (agent: string) => ({
  worker: { mode: 'select', agent_name: agent },
  sandbox: { mode: 'none' },
  worktree: { mode: 'per_run' },
})
const is = (status: string) => (reply: Reply) => reply.run.status === status
const SUPERVISION = { supervision: { frozen_after: '3s' } }

/** Queues runs for a task, one for each brief; their ids, in order. */
async function fanOut(world: TaskWorld, task: string, briefs: readonly string[]): Promise<string[]> {
  const designations = briefs.map(brief => ({ brief }))
  const { runs } = await world.post(`/api/tasks/${task}/runs/fan-out`, { idempotency_key: 'once', designations })
  return runs.map(({ id }: { id: string }) => id)
}

/** The process that works on a run, once it does what the brief says. */
const workerOf = (world: TaskWorld, run: string) =>
  world.untilNoted(note => note.run === run && note.step.startsWith('write'), `the work on ${run}`)

const recover = async (world: TaskWorld, run: string) =>
  (
    await world.svc.json<{ run: { id: string; previous_run_id: string } }>(
      'task',
      'run',
      'recover',
      run,
      '--reason',
      'go on',
    )
  ).run.id

test('a fan-out to three agents completes after one agent is killed, one is suspended and the daemon is killed', async () => {
  const world = await TaskWorld.open({ session: SUPERVISION })
  try {
    world.agent('coder')
    const files = ['a', 'b', 'c'].map(name => world.signalFile(name))
    const briefs = files.map((file, n) => `write ${'abc'[n]}.txt; wait ${file}; complete`)
    const task = await world.task('three parts', by('coder'))
    const [a = '', b = '', c = ''] = await fanOut(world, task, briefs)
    const [killed, frozen, third] = await Promise.all([a, b, c].map(run => workerOf(world, run)))
    assert.is(new Set([killed, frozen, third].map(note => note?.cwd)).size, 3, 'each has a worktree of its own')
    process.kill(killed?.pid ?? 0, 'SIGKILL')
    process.kill(frozen?.pid ?? 0, 'SIGSTOP')
    const stuck = await Promise.all([a, b].map(run => world.untilRun(run, is('needs_attention'), 'needs attention')))
    assert.match(stuck[0].run.error, 'exited unexpectedly')
    assert.match(stuck[1].run.error, 'is unresponsive')
    assert.is((await world.run(c)).run.status, 'claimed')
    for (const run of [a, b])
      assert.match(await world.svc.svc('task', 'run', 'inspect', run), `svc task run recover ${run}`)
    // What a person sees who only asks what is going on: the two that are stuck and why, and the one that is not.
    const board = await world.svc.svc('task', 'board')
    for (const [run, why] of [
      [a, 'exited unexpectedly'],
      [b, 'is unresponsive'],
    ] as const) {
      const [, about = ''] = board.split(run)
      assert.match(about.split('trun_')[0] ?? '', new RegExp(`^\\s+needs_attention[^]*${why}`), board)
    }
    assert.match(board, new RegExp(`${c}\\s+claimed`))
    const { dashboard } = await world.svc.json<{ dashboard: Reply }>('task', 'board')
    const items = new Map<string, Reply>(dashboard.active_runs.items.map((item: Reply) => [item.run_id, item]))
    assert.equal(
      [a, b, c].map(run => items.get(run)?.health_status === 'needs_attention'),
      [true, true, false],
      JSON.stringify(dashboard.active_runs),
    )
    const { scheduler } = await world.svc.json<{ scheduler: Reply }>('scheduler', 'status')
    assert.equal([scheduler.needs_attention_run_count, scheduler.active_claim_count], [2, 1])

    // Whoever held them comes too late, by whatever door.
    const { session_id: late } = stuck[1].run
    const refused = await world.svc.request('socket', 'POST', `/api/agent/tasks/${b}/complete`, {})
    assert.is(refused.status, 401)
    assert.is((await world.request('POST', `/api/task-runs/${b}/complete`, {})).status, 409, late)

    const again = [await recover(world, a), await recover(world, b)]
    for (const run of [a, b])
      assert.is((await world.request('POST', `/api/runs/${run}/recover`, { reason: 'twice' })).status, 409)
    await Promise.all(again.map(run => workerOf(world, run)))
    const before = world.notes().length
    await world.killed()
    // The three that were claimed are queued again, and worked on by others.
    const runs = [...again, c]
    await Promise.all(
      runs.map(run =>
        world.untilNoted((note, at) => at >= before && note.run === run && note.step === 'next', `${run} again`),
      ),
    )
    for (const name of ['a', 'b', 'c']) world.signal(name)
    const done = await Promise.all(
      runs.map(run => world.untilRun(run, reply => is('completed')(reply) && reply.worker.ended_at, 'is completed')),
    )
    for (const [n, { worktree, run }] of done.entries()) {
      assert.is(
        world.git('show', `${worktree.branch}:${'abc'[n]}.txt`),
        `by ${run.session_id}`,
        'the result is on a branch',
      )
      const completed = world.notes().filter(note => note.run === run.id && note.step === 'complete' && note.code === 0)
      assert.is(completed.length, 1, `run ${run.id} is completed once`)
    }
    const detail = (await world.request('GET', `/api/tasks/${task}`)).body.task
    assert.is(detail.task.status, 'completed')
    const states = Object.fromEntries(detail.runs.map(({ id, status }: Reply) => [id, status]))
    assert.equal(states, { [a]: 'failed', [b]: 'failed', ...Object.fromEntries(runs.map(run => [run, 'completed'])) })
    const { timeline } = (await world.request('GET', `/api/tasks/${task}/timeline?limit=500`)).body
    for (const run of runs) {
      const ends = timeline.filter((entry: Reply) => entry.event_type === 'task.run_completed' && entry.run?.id === run)
      assert.is(ends.length, 1, `run ${run} ended once`)
    }
    const sessions = (await world.request('GET', '/api/sessions?limit=100')).body.sessions
    assert.equal(
      sessions.filter(({ state }: Reply) => state === 'active').map(({ id }: Reply) => id),
      [],
    )
  } finally {
    await world.close()
  }
})

test('with a threshold of 0, the run of an unresponsive agent is requeued when its lease expires', async () => {
  const world = await TaskWorld.open({ session: SUPERVISION, daemon: { subprocess_health_escalation_threshold: 0 } })
  try {
    world.agent('coder', '--lease=10')
    const file = world.signalFile('go')
    const task = await world.task('one part', by('coder'))
    const [run = ''] = await fanOut(world, task, [`write a.txt; wait ${file}; complete`])
    const frozen = await workerOf(world, run)
    process.kill(frozen.pid, 'SIGSTOP')
    await world.untilRun(run, ({ run }) => run.recovery_count === 1, 'is queued again')
    await world.untilNoted(note => note.run === run && note.pid !== frozen.pid, 'another session')
    world.signal('go')
    const done = await world.untilRun(run, reply => is('completed')(reply) && reply.worker.ended_at, 'is completed')
    assert.is.not(done.run.session_id, frozen.session)
    assert.match(done.worktree.branch, new RegExp(`${run}-2$`), 'in a worktree that the other one cannot write into')
    assert.not(isAlive(frozen.pid))
  } finally {
    await world.close()
  }
})

test.run()
