import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, Requests, surfaceOf } from '../../../../kernel/plugin.js'
import { WakeContexts } from '../../../../plugins/agents/heartbeats/api.js'
import { type ClaimWish, Tasks } from '../../../../plugins/work/tasks/api.js'
import { probe } from '../../../../testing/traces.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'
import { type Agent, type Scene, scene } from './scene.js'

const look = probe({ request: Requests })
let change: (wish: ClaimWish) => ClaimWish | undefined = () => undefined
const asker = definePlugin({ name: 'asker', version: '1.0.0', requires: { tasks: Tasks } }).surface({
  taps: [
    surfaceOf<object>().tap(
      Tasks,
      tasks => tasks.preClaim,
      () => wish => change(wish),
    ),
  ],
})
const test = suite<{ world: Scene }>('task permissions and notifications')

test.before.each(async context => {
  change = () => undefined
  context.world = await scene({ plugins: [look.plugin, asker] })
})
test.after.each(({ world }) => world.close())

/** As the agent of a session, whose identity nobody judges here. */
const as = async ({ id }: Agent, url: string, body: object | undefined = {}, method = 'POST'): Promise<Reply> => {
  const actor = { ...look.kernel().actor, onBehalfOf: { kind: 'agent_session', id } }
  const reply = await look.kernel().needs.request({ method, url, ...(method === 'POST' && { body }) }, actor)
  return { status: reply.status, body: JSON.parse(reply.body) }
}

test('a pre-claim hook can refuse or narrow a claim but not widen it', async ({ world }) => {
  const low = await world.queued({ priority: 'low' })
  change = wish => ({ ...wish, deny: 'not on a Sunday' })
  const denied = await world.agent().claim()
  assert.equal([denied.status, denied.body.code, denied.body.error], [403, 'task_claim_denied', 'not on a Sunday'])
  change = wish => ({ ...wish, priorityMin: 20 })
  assert.is((await world.agent().claim()).status, 204)
  change = wish => ({ ...wish, priorityMin: 0 })
  assert.is((await world.agent().claim({ priority_min: 20 })).status, 204, 'what the caller asked for stays')
  change = () => undefined
  assert.is((await world.agent().claim()).body.claim.run.id, low.run)
})

test('an agent lists and counts only runs of global tasks and of its own workspace', async ({ world }) => {
  const root = await temporaryFolder('elsewhere')
  const { workspace } = (await world.post('/api/workspaces', { root_dir: root })).body
  const everywhere = await world.queued()
  const here = await world.queued({ scope: 'workspace', workspace: world.workspace })
  const there = await world.queued({ scope: 'workspace', workspace: workspace.id })
  const seen = async (agent: Agent) => {
    const { body } = await as(agent, '/api/task-runs', undefined, 'GET')
    return [body.runs.map(({ id }: Reply) => id), body.page.total]
  }
  assert.equal(await seen(world.agent()), [[here.run, everywhere.run], 2])
  assert.equal(await seen(world.agent({ workspaceId: workspace.id })), [[there.run, everywhere.run], 2])
  assert.equal(await seen({ ...world.agent(), id: 'ses_ffffffffffffffff' }), [[everywhere.run], 1], 'of none')
  assert.is((await world.request('GET', '/api/task-runs')).body.page.total, 3)
})

test('a wake contains the held run, the claimable runs and the inbox of the agent', async ({ world }) => {
  const ada = world.agent()
  const textOf = async (name: string) => {
    const { entry } = look
      .kernel()
      .collect(WakeContexts)
      .find(({ entry }) => entry.name === name) as Reply
    return entry.read({ id: ada.id, workspaceId: world.workspace, agentName: 'ada' })
  }
  assert.equal([await textOf('task'), await textOf('inbox_summary')], [undefined, undefined])
  const owner = { kind: 'agent_session', ref: ada.id }
  const { task, run } = await world.queued({ scope: 'workspace', workspace: world.workspace, title: 'paint it', owner })
  assert.match(await textOf('task'), /claimable runs: 1/)
  await ada.claim({ scope: 'workspace' })
  assert.match(await textOf('task'), new RegExp(`you hold run ${run} of task ${task}, .*paint it.*: claimed`))
  assert.match(await textOf('inbox_summary'), new RegExp(`tasks in your inbox: 1\\n.*my_work: ${task}`))
})

test('agents can force runs of their workspace unless task.recovery.allow_agent_force is false', async ({ world }) => {
  const eve = world.agent()
  const { run } = await world.queued()
  await world.agent().claim({ run_id: run })
  assert.is((await as(eve, `/api/runs/${run}/release`)).status, 200)
  const own = await world.queued({ scope: 'workspace', workspace: world.workspace })
  const bob = world.agent({ workspaceId: 'ws_other' })
  const foreign = await as(bob, `/api/runs/${own.run}/fail`, { reason: 'mine' })
  assert.equal([foreign.status, foreign.body.code], [403, 'identity_unauthorized'])
  const strict = await scene({ plugins: [look.plugin], config: { task: { recovery: { allow_agent_force: false } } } })
  const work = await strict.queued()
  const refused = await as(strict.agent(), `/api/runs/${work.run}/fail`, { reason: 'mine' })
  assert.equal([refused.status, refused.body.code], [403, 'task_force_refused'])
  assert.is((await strict.post(`/api/runs/${work.run}/fail`, { reason: 'his' })).status, 200)
  await strict.close()
})

test('task.orchestration.designated_run_max limits a fan-out', async () => {
  const world = await scene({ config: { task: { orchestration: { designated_run_max: 2 } } } })
  const { task } = (await world.post('/api/tasks', { title: 'shared', scope: 'global' })).body
  const designations = ['a', 'b', 'c'].map(brief => ({ brief, idempotency_key: brief }))
  const many = await world.post(`/api/tasks/${task.id}/runs/fan-out`, { designations })
  assert.equal([many.status, many.body.error], [422, 'designations: must have 1 to 2 entries, not 3'])
  await world.close()
})

test.run()
