import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { BridgeStatus } from '../../../../plugins/reach/bridges/api.js'
import { TRANSITIONS } from '../../../../plugins/reach/bridges/instances/states.js'
import { FakePlatform } from './fake-platform.js'
import { outcome, scene } from './scene.js'

const statuses = Object.keys(TRANSITIONS) as BridgeStatus[]

for (const from of statuses)
  test(`an instance in ${from} makes only the transitions of the table`, async () => {
    const platform = new FakePlatform({ reports: null })
    const s = await scene([platform])
    for (const to of statuses) {
      const { id } = await s.create({ enabled: from !== 'disabled', display_name: `${from} to ${to}` })
      if (from !== 'disabled') {
        await s.until('the adapter has it', () => platform.running.some(one => one.id === id))
        if (from !== 'starting') await platform.host.report(id, { status: from })
      } else await s.create({ display_name: `for the host, ${to}` })
      await s.until('there is a host', () => platform.managed.length > 0)
      assert.is(await s.statusOf(id), from)
      const isAllowed = from === to || TRANSITIONS[from].includes(to)
      const went = await attempt(s, platform, id, from, to)
      assert.is(went, isAllowed, `${from} to ${to}`)
      assert.is(await s.statusOf(id), isAllowed ? to : from, `${from} to ${to}`)
    }
    await s.end()
  })

/** Enabling, disabling, or the report of the adapter; whether it was taken. */
async function attempt(
  s: Awaited<ReturnType<typeof scene>>,
  platform: FakePlatform,
  id: string,
  from: BridgeStatus,
  to: BridgeStatus,
): Promise<boolean> {
  if (to === 'disabled' || (from === 'disabled' && to === 'starting')) {
    const { status } = await s.request('POST', `/api/bridges/${id}/${to === 'disabled' ? 'disable' : 'enable'}`)
    return status === 200
  }
  try {
    await platform.host.report(id, { status: to })
    return true
  } catch (error) {
    assert.is((error as { code: string }).code, 'bridge_transition')
    return false
  }
}

test('a changed status emits one event, and a recovery clears the degradation', async () => {
  const platform = new FakePlatform()
  const s = await scene([platform])
  const { id } = await s.create()
  await s.reaches(id, 'ready')
  const { host } = platform
  await host.report(id, { status: 'degraded', reason: 'rate_limited', message: 'slow down' })
  await host.report(id, { status: 'degraded', reason: 'provider_timeout', message: 'no answer' })
  const { bridge, health } = (await s.request('GET', `/api/bridges/${id}`)).body
  assert.equal(bridge.degradation, { reason: 'provider_timeout', message: 'no answer' })
  assert.equal(
    [health.status, health.last_error, health.diagnostics[0].kind],
    ['degraded', 'no answer', 'transient_delivery_failure'],
  )
  // It starts again and fails again: nobody is told of the same twice.
  await host.report(id, { status: 'starting' })
  await host.report(id, { status: 'degraded', reason: 'provider_timeout', message: 'no answer' })
  await host.report(id, { status: 'ready' })
  const after = (await s.request('GET', `/api/bridges/${id}`)).body
  assert.equal([after.bridge.degradation, after.health.diagnostics], [null, []])
  await host.report(id, { status: 'auth_required', reason: 'auth_failed', message: 'token revoked' })
  assert.is((await s.request('GET', `/api/bridges/${id}`)).body.health.auth_failures_total, 1)
  await host.report(id, { status: 'error', message: 'given up' })
  assert.equal((await s.events('bridge.ready')).length, 2)
  assert.equal(
    (await s.events('bridge.degraded')).map(({ message }) => message),
    ['slow down'],
  )
  assert.equal((await s.events('bridge.auth_required')).length, 1)
  assert.equal((await s.events('bridge.error')).length, 1)
  await s.end()
})

test('an adapter reports only valid states of its own instances', async () => {
  const platform = new FakePlatform()
  const other = new FakePlatform({ name: 'otherchat', platform: 'otherchat' })
  const s = await scene([platform, other])
  const { id } = await s.create()
  await s.create({ platform: 'otherchat', extension_name: 'otherchat' })
  await s.reaches(id, 'ready')
  await s.until('both run', () => other.managed.length > 0)
  const refused = async (work: Promise<unknown>) =>
    work.then(
      () => 'taken',
      error => error.code,
    )
  assert.is(await refused(other.host.report(id, { status: 'error' })), 'bridge_not_found')
  assert.is(await refused(platform.host.report('nosuch', { status: 'error' })), 'bridge_not_found')
  assert.is(await refused(platform.host.report(id, { status: 'asleep' as never })), 'bridge_report_invalid')
  assert.is(
    await refused(platform.host.report(id, { status: 'ready', webhook_public_url: 'no url' })),
    'bridge_report_invalid',
  )
  await platform.host.report(id, { status: 'ready', webhook_public_url: 'https://chat.example/hook' })
  assert.is((await s.request('GET', `/api/bridges/${id}`)).body.bridge.webhook_public_url, 'https://chat.example/hook')
  await s.end()
})

test('an adapter that does not start is retried with back-off up to five times, until a restart', async () => {
  const platform = new FakePlatform()
  platform.refusals.push('no route to host', 'no route to host')
  const s = await scene([platform])
  const { id } = await s.create()
  await s.reaches(id, 'degraded')
  assert.match((await s.request('GET', `/api/bridges/${id}`)).body.bridge.degradation.message, /no route to host/)
  await s.reaches(id, 'ready')
  platform.refusals.push(...Array(5).fill('gone'))
  assert.is(outcome(await s.request('POST', `/api/bridges/${id}/restart`)), '200')
  await s.reaches(id, 'error')
  assert.is(platform.refusals.length, 0)
  const tries = platform.managed.length
  await s.clock.advance(3600_000)
  assert.is(platform.managed.length, tries, 'it was given up')
  assert.match(
    (await s.request('GET', `/api/bridges/${id}`)).body.health.diagnostics[0].next_action,
    /svc bridge restart/,
  )
  await s.request('POST', `/api/bridges/${id}/restart`)
  await s.reaches(id, 'ready')
  await s.end()
})

test('a restart stops and starts one instance, others run on; a disabled one is not restarted', async () => {
  const platform = new FakePlatform()
  const s = await scene([platform])
  const a = await s.create()
  const b = await s.create()
  await s.reaches(a.id, 'ready')
  await s.reaches(b.id, 'ready')
  const before = platform.managed.length
  assert.is((await s.request('POST', `/api/bridges/${a.id}/restart`)).body.bridge.status, 'starting')
  await s.reaches(a.id, 'ready')
  assert.equal(
    platform.managed.slice(before).map(list => list.map(({ id }) => id)),
    [[b.id], [a.id, b.id].sort()],
  )
  await s.request('POST', `/api/bridges/${a.id}/disable`)
  assert.is(outcome(await s.request('POST', `/api/bridges/${a.id}/restart`)), '409 bridge_transition')
  await s.end()
})

test('bridges of an unloaded extension are degraded, and serve again when it returns', async () => {
  const platform = new FakePlatform()
  const s = await scene([platform])
  const { id } = await s.create()
  await s.reaches(id, 'ready')
  const { host } = s.host.kernel
  await s.until('it is unloaded', () => host.unload(platform.plugin.name).then(() => true))
  await s.reaches(id, 'degraded')
  const { diagnostics } = (await s.request('GET', `/api/bridges/${id}`)).body.health
  assert.match(diagnostics[0].message, /does not run/)
  const again = new FakePlatform()
  await s.until('it is loaded', () => host.load(again.plugin).then(() => true))
  await s.reaches(id, 'ready')
  await s.end()
})

test('the daemon starts enabled bridges at its start, and applies records changed meanwhile', async () => {
  const platform = new FakePlatform()
  const first = await scene([platform])
  const a = await first.create()
  const b = await first.create({ enabled: false })
  await first.reaches(a.id, 'ready')
  await platform.host.report(a.id, { status: 'error', message: 'given up' })
  await first.leave()
  const restarted = await scene([new FakePlatform({ reports: null })], { home: first.home })
  assert.equal([await restarted.statusOf(a.id), await restarted.statusOf(b.id)], ['starting', 'disabled'])
  await restarted.end()
  await first.clean()
})

test.run()
