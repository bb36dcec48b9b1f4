// timeout: 120s
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { audit, auth, configuration, disk, extensions, identity, tasks, tools } from '../../../../plugins/index.js'
import { agentText, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

const usage = (used: number) => `update ${JSON.stringify({ sessionUpdate: 'usage_update', used, size: 10_000 })}`

type Call = (id: string, input?: object) => Promise<{ readonly failed: boolean; readonly text: string }>
const test = suite<{ world: World; at: string; call: Call; close: () => Promise<void> }>('task tools')

/** A session whose agent is another program that speaks to the server it was handed. */
test.before(async context => {
  const world = await openWorld({
    plugins: [audit, auth, identity, disk, extensions, configuration, tools, tasks],
    listen: ['socket'],
    env: { PATH: process.env.PATH, SVC_BIN_DIR: path.resolve('dist/bin'), XDG_RUNTIME_DIR: '/tmp' },
  })
  await world.agent('ada')
  const { at } = await world.session('ada', { sandbox: 'none' })
  const handed: Reply[] = JSON.parse(agentText(await world.prompt(at, 'handed')))
  const { command, args, env } = handed.find(({ name }) => name === 'svc') as Reply
  const [{ Client }, { StdioClientTransport }] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/client/stdio.js'),
  ])
  const client = new Client({ name: 'test', version: '1' })
  const given = Object.fromEntries(env.map(({ name, value }: Reply) => [name, value]))
  await client.connect(
    new StdioClientTransport({ command, args, env: { PATH: process.env.PATH ?? '', ...given }, stderr: 'ignore' }),
  )
  context.world = world
  context.at = at
  context.call = async (id, input = {}) => {
    const reply = (await client.callTool({ name: 'tool_call', arguments: { id: `service__${id}`, input } })) as Reply
    return { failed: reply.isError === true, text: reply.content.map(({ text }: Reply) => text).join('') }
  }
  context.close = async () => {
    await client.close()
    await world.close()
  }
})
test.after(({ close }) => close())

async function queued({ kernel, workspaceId }: World, more: object = {}) {
  const body = { title: 'work', scope: 'workspace', workspace: workspaceId, ...more }
  const { task } = (await kernel.request('POST', '/api/tasks', body)).body
  const { run } = (await kernel.request('POST', `/api/tasks/${task.id}/start`)).body
  return { task: task.id as string, run: run.id as string }
}

test('an agent completes a task with tools only, without an approval', async ({ world, at, call }) => {
  const recap = async () => (await world.kernel.request('GET', `${at}/recap`)).body.recap
  assert.is((await recap()).active_run, null)
  assert.equal(await call('task_run_claim_next'), { failed: false, text: '' }, 'there is nothing to do')
  const { task, run } = await queued(world, { title: 'paint it' })
  const claim = JSON.parse((await call('task_run_claim_next', { lease_seconds: 600 })).text).claim
  assert.equal([claim.run.id, claim.task.title], [run, 'paint it'])
  assert.is(JSON.parse((await call('task_info', { id: task })).text).task.task.id, task)
  assert.is(JSON.parse((await call('task_run_info', { id: run })).text).run.run.status, 'claimed')
  assert.is(JSON.parse((await call('task_run_start', { run_id: run })).text).run.status, 'running')
  assert.is(JSON.parse((await call('task_run_heartbeat', { run_id: run })).text).lease.run_id, run)
  const { active_run: active } = await recap()
  assert.equal([active.id, active.task_id, active.status], [run, task, 'running'])
  const done = await call('task_run_complete', { run_id: run, result: { branch: 'work' } })
  assert.is(JSON.parse(done.text).lease.status, 'completed')
  assert.is((await recap()).active_run, null)
  const { body } = await world.kernel.request('GET', `/api/tasks/${task}`)
  assert.equal([body.task.task.status, body.task.runs[0].result], ['completed', { branch: 'work' }])
})

test('an agent releases and fails runs, and a call without a lease returns the error code of the route', async ({
  world,
  call,
}) => {
  const { run } = await queued(world)
  await call('task_run_claim_next')
  await call('task_run_release', { run_id: run, reason: 'too much' })
  const late = await call('task_run_heartbeat', { run_id: run })
  assert.equal([late.failed, /AUTONOMY_NO_ACTIVE_LEASE|has no active lease/.test(late.text)], [true, true], late.text)
  await call('task_run_claim_next', { run_id: run })
  assert.is(JSON.parse((await call('task_run_fail', { run_id: run, error: 'no paint' })).text).lease.status, 'failed')
})

test('a global task can be claimed by run id, a task of another workspace cannot', async ({ world, call }) => {
  const { run } = await queued(world, { scope: 'global', workspace: undefined })
  assert.is((await call('task_run_claim_next')).text, '')
  assert.is(JSON.parse((await call('task_run_claim_next', { scope: 'global' })).text).claim.run.id, run)
  await call('task_run_complete', { run_id: run })
  assert.ok((await call('task_run_claim_next', { workspace_id: 'ws_other' })).failed)
})

test('the turn of an agent that exceeds its budget is canceled and the run needs attention', async ({
  world,
  at,
  call,
}) => {
  const { task, run } = await queued(world)
  const put = await world.kernel.request('PUT', `/api/budgets/task/${task}`, { tokens: 1000 })
  assert.is(put.status, 200, JSON.stringify(put.body))
  await world.prompt(at, usage(300))
  await call('task_run_claim_next', { run_id: run })
  const events = await world.prompt(at, [usage(900), usage(1400), 'hang'].join('\n'))
  assert.is(events.at(-1)?.content.stop_reason, 'cancelled', JSON.stringify(events.at(-1)))
  const { budget } = (await world.kernel.request('GET', `/api/budgets/task/${task}`)).body
  assert.equal([budget.spent.tokens, budget.exhausted, budget.reserved.tokens], [1100, true, 0])
  const { runs } = (await world.kernel.request('GET', `/api/tasks/${task}/runs`)).body
  assert.equal([runs[0].status, runs[0].failure_kind], ['needs_attention', 'budget_exceeded'])
  assert.ok((await call('task_run_complete', { run_id: run })).failed)
})

test('tools that can start agents need approval, and tools that manage tasks are for operators', async ({ world }) => {
  const { body } = await world.kernel.request('GET', '/api/tools')
  const risks = new Map<string, Reply>(body.tools.map(({ descriptor }: Reply) => [descriptor.tool_id, descriptor]))
  const risk = (name: string) => risks.get(`service__${name}`)?.risk
  for (const name of ['claim_next', 'start', 'heartbeat', 'complete', 'fail', 'release'])
    assert.is(risk(`task_run_${name}`), 'mutating', name)
  for (const name of ['task_create', 'task_start', 'task_publish', 'task_run_retry'])
    assert.is(risk(name), 'destructive')
  assert.is(risks.get('service__task_recover')?.visibility, 'operator')
  const { toolset } = (await world.kernel.request('GET', '/api/toolsets/autonomy')).body
  assert.ok(toolset.expanded_tools.includes('service__task_run_claim_next'))
})

test.run()
