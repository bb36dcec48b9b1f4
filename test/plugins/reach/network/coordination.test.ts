import { suite, test } from 'uvu'
import * as assert from 'uvu/assert'
import { tasks } from '../../../../plugins/index.js'
import { eligibilityOf, type Situation } from '../../../../plugins/reach/network/coordination/eligibility.js'
import network from '../../../../plugins/reach/network/index.js'
import { EligibilityReason } from '../../../../schemas/network/coordination.js'
import { openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

/** A run of a fan-out that two others work for: everything speaks for it. */
const ELIGIBLE: Situation = {
  ...{ isEnabled: false, isDismissed: false, isAvailable: true },
  run: { isActive: true, isCoordinator: true, workers: 2 },
}
const run = (more: Partial<NonNullable<Situation['run']>>) => ({ run: { ...ELIGIBLE.run!, ...more } })

/** What speaks against it, in the order in which it is judged. */
const AGAINST: readonly (readonly [EligibilityReason, Partial<Situation>])[] = [
  ['already_enabled', { isEnabled: true }],
  ['invitation_dismissed', { isDismissed: true }],
  ['network_unavailable', { isAvailable: false }],
  ['run_required', { run: undefined }],
  ['run_inactive', run({ isActive: false })],
  ['coordinator_required', run({ isCoordinator: false })],
  ['workers_required', run({ workers: 1 })],
]

test('every reason is tested, and no reason means eligible', () => {
  assert.equal([...AGAINST.map(([reason]) => reason), 'eligible'], EligibilityReason.options)
  assert.is(eligibilityOf(ELIGIBLE), 'eligible')
})

for (const [n, [reason, change]] of AGAINST.entries())
  test(`the reason ${reason} is reported alone and before later ones`, () => {
    assert.is(eligibilityOf({ ...ELIGIBLE, ...change }), reason)
    // A run that is not there hides what is said of runs: the last one wins in `all`, so the earlier ones come last.
    const all: Situation = Object.assign(
      {},
      ELIGIBLE,
      ...AGAINST.slice(n)
        .map(([, one]) => one)
        .reverse(),
    )
    assert.is(eligibilityOf(all), reason, `${reason} before later ones`)
  })
test.run()

const record = suite<{ world: World; at: string }>('coordination record')
record.before(async context => {
  context.world = await openWorld({ plugins: [network, tasks] })
  context.at = `/api/workspaces/${context.world.workspaceId}/network-coordination`
})
record.after(({ world }) => world.close())

const ask = async ({ world }: { world: World }, method: string, url: string, body?: unknown) => {
  const reply = await world.kernel.request(method, url, body)
  return {
    status: reply.status,
    code: reply.body?.code,
    coordination: reply.body?.coordination as Reply,
    body: reply.body,
  }
}

async function madeTask({ world }: { world: World }, scope: 'global' | 'workspace' = 'workspace') {
  const place = scope === 'global' ? { scope } : { scope, workspace: world.workspaceId }
  const { body } = await world.kernel.request('POST', '/api/tasks', { title: 'work', ...place })
  const started = await world.kernel.request('POST', `/api/tasks/${body.task.id}/start`, {})
  return { task: body.task.id as string, run: started.body.run.id as string, first: started.body.run as Reply }
}

record('a record changes in its present revision only, and future runs follow it', async context => {
  const { at } = context
  const fresh = await ask(context, 'GET', `${at}?scope=workspace`)
  assert.equal(
    [fresh.coordination.enabled, fresh.coordination.revision, fresh.coordination.invitation],
    [false, 0, null],
  )
  assert.is(fresh.coordination.eligibility.reason, 'run_required')
  const before = await madeTask(context)
  assert.is(before.first.resolved_network_participation.mode, 'local')

  const on = { scope: 'workspace', enabled: true }
  assert.is((await ask(context, 'PUT', at, on)).status, 400, 'without a revision')
  assert.is((await ask(context, 'PUT', at, { ...on, expected_revision: 1 })).code, 'coordination_conflict')
  const { coordination } = await ask(context, 'PUT', at, { ...on, expected_revision: 0 })
  assert.equal([coordination.enabled, coordination.revision, coordination.updated_by], [true, 1, 'operator'])
  assert.is(coordination.eligibility.reason, 'already_enabled')
  assert.equal((await ask(context, 'PUT', at, { ...on, expected_revision: 0 })).status, 409)
  assert.is((await madeTask(context)).first.resolved_network_participation.source, 'workspace_coordination')
  const same = await context.world.kernel.request('GET', `/api/tasks/${before.task}/runs`)
  assert.is(same.body.runs[0].resolved_network_participation.mode, 'local', 'what was decided stays')
  await ask(context, 'PUT', at, { scope: 'workspace', enabled: false, expected_revision: 1 })
})

record(
  'what was decided for a task counts before its workspace, an answered invitation decides nothing',
  async context => {
    const { at } = context
    const { task, run } = await madeTask(context)
    const of = { scope: 'task', task_id: task }
    const query = `${at}?scope=task&task_id=${task}`
    const dismissed = await ask(context, 'PUT', `${at}/invitation`, { ...of, dismissed: true, expected_revision: 0 })
    assert.equal(
      [dismissed.coordination.enabled, dismissed.coordination.revision, dismissed.coordination.invitation.dismissed],
      [false, 1, true],
    )
    assert.equal((await ask(context, 'GET', query)).coordination.eligibility.reason, 'invitation_dismissed')
    const workspace = (await ask(context, 'GET', `${at}?scope=workspace`)).coordination
    await ask(context, 'PUT', at, { scope: 'workspace', enabled: true, expected_revision: workspace.revision })
    const next = async (n: number) => {
      const failed = await context.world.kernel.request('POST', `/api/runs/${n === 0 ? run : last}/fail`, {
        reason: 'again',
      })
      assert.is(failed.status, 200, JSON.stringify(failed.body))
      const reply = await context.world.kernel.request('POST', `/api/tasks/${task}/start`, { idempotency_key: `k${n}` })
      assert.is(reply.status, 201, JSON.stringify(reply.body))
      last = reply.body.run.id
      return reply.body.run.resolved_network_participation.mode
    }
    let last = run
    assert.is((await ask(context, 'GET', query)).coordination.eligibility.reason, 'already_enabled')
    assert.is(await next(0), 'live', 'the workspace decides where nothing was decided for the task')
    await ask(context, 'PUT', at, { ...of, enabled: false, expected_revision: 1 })
    const other = await madeTask(context)
    assert.is(other.first.resolved_network_participation.mode, 'live')
    const reset = await ask(context, 'PUT', `${at}/invitation`, { ...of, dismissed: false, expected_revision: 2 })
    assert.equal(
      [reset.coordination.invitation.dismissed, reset.coordination.enabled, reset.coordination.revision],
      [false, false, 3],
    )
  },
)

record('a run is judged as far as it goes, and one from elsewhere is refused', async context => {
  const { at, world } = context
  const workspace = (await ask(context, 'GET', `${at}?scope=workspace`)).coordination
  await ask(context, 'PUT', at, { scope: 'workspace', enabled: false, expected_revision: workspace.revision })
  const mine = await madeTask(context)
  const shown = await ask(context, 'GET', `${at}?scope=task&task_id=${mine.task}&run_id=${mine.run}`)
  assert.equal(shown.coordination.eligibility, {
    ...{ eligible: false, reason: 'run_inactive', coordinator: false, run_id: mine.run, worker_count: 0 },
  })
  await world.agent('ada')
  const { id } = await world.session('ada')
  const headers = { 'x-service-session-id': id, 'x-service-agent': 'ada' }
  const claimed = await world.kernel.kernel.inject({
    ...{
      method: 'POST',
      url: '/api/agent/tasks/claim-next',
      headers,
      body: { run_id: mine.run, workspace_id: world.workspaceId },
    },
  })
  assert.is(claimed.status, 200, claimed.body)
  const held = await ask(context, 'GET', `${at}?scope=workspace&run_id=${mine.run}`)
  assert.is(held.coordination.eligibility.reason, 'coordinator_required')

  const other = await madeTask(context)
  const global = await madeTask(context, 'global')
  const refused: readonly (readonly [query: string, status: number, code: string])[] = [
    [`scope=task&task_id=${mine.task}&run_id=${other.run}`, 403, 'coordination_scope_mismatch'],
    [`scope=workspace&run_id=${global.run}`, 403, 'coordination_scope_mismatch'],
    [`scope=task&task_id=${global.task}`, 403, 'coordination_scope_mismatch'],
    ['scope=task&task_id=task_none', 404, 'task_not_found'],
    ['scope=workspace&run_id=trun_none', 404, 'task_run_not_found'],
    ['scope=task', 400, 'coordination_scope_invalid'],
    [`scope=workspace&task_id=${mine.task}`, 400, 'coordination_scope_invalid'],
  ]
  for (const [query, status, code] of refused) {
    const reply = await ask(context, 'GET', `${at}?${query}`)
    assert.equal([reply.status, reply.code], [status, code], query)
  }
  const put = { scope: 'task', task_id: mine.task, run_id: other.run, enabled: true, expected_revision: 0 }
  assert.is((await ask(context, 'PUT', at, put)).status, 403)
  assert.is((await ask(context, 'GET', `${at}?scope=task&task_id=${mine.task}`)).coordination.revision, 0)
})

record(
  'a fan-out under a coordinator is eligible once the coordinator is at work and has two workers',
  async context => {
    const { at, world } = context
    const { id } = await world.session('ada')
    const eligibility = async (briefs: readonly string[], isClaimed: boolean) => {
      const place = { title: 'led', scope: 'workspace', workspace: world.workspaceId }
      const { task } = (await world.kernel.request('POST', '/api/tasks', place)).body
      const profile = { coordinator: { mode: 'guided' }, worker: { mode: 'select', agent_name: 'ghost' } }
      await world.kernel.request('PUT', `/api/tasks/${task.id}/execution-profile`, profile)
      const body = { designations: briefs.map(brief => ({ brief })), idempotency_key: task.id }
      const { runs } = (await world.kernel.request('POST', `/api/tasks/${task.id}/runs/fan-out`, body)).body
      const run = runs.at(-1).id
      const attached = { session_id: id }
      if (isClaimed) {
        const { status, body } = await world.kernel.request('POST', `/api/task-runs/${run}/attach-session`, attached)
        assert.is(status, 200, JSON.stringify(body))
      }
      return (await ask(context, 'GET', `${at}?scope=task&task_id=${task.id}&run_id=${run}`)).coordination.eligibility
    }
    const shown = [
      await eligibility(['one', 'two'], false),
      await eligibility(['one'], true),
      await eligibility(['one', 'two'], true),
    ]
    assert.equal(
      shown.map(({ reason, coordinator, worker_count }) => [reason, coordinator, worker_count]),
      [
        ['run_inactive', true, 2],
        ['workers_required', true, 1],
        ['eligible', true, 2],
      ],
    )
  },
)

record('records survive a restart', async context => {
  const before = (await ask(context, 'GET', `${context.at}?scope=workspace`)).coordination
  await context.world.restart()
  assert.equal((await ask(context, 'GET', `${context.at}?scope=workspace`)).coordination, before)
})
record.run()
