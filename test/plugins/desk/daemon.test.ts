import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '../../../kernel/plugin.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'
import { codes, doctor, guest } from '../guest-plugin.js'

test('a status without other plugins has every member, empty and unavailable', async () => {
  const host = await boot({ plugins: [daemon] })
  const { status, body } = await host.request('GET', '/api/status')
  assert.is(status, 200)
  assert.is(body.schema_version, '1')
  assert.is(body.daemon.status, 'ok')
  assert.is(body.daemon.pid, process.pid)
  assert.is(body.health.global_db_size_bytes > 0, true)
  for (const name of ['sessions', 'subprocess_health', 'memory', 'automation', 'tasks', 'bridges', 'skills']) {
    assert.is(body[name].status, 'unavailable', name)
  }
  assert.is(body.daemon.network.status, 'unavailable')
  assert.equal([body.providers, body.mcp_servers], [[], []])
  assert.is(body.config.home_dir, host.kernel.home.root)
  assert.ok(body.daemon.schema_streams.some((stream: { stream: string }) => stream.stream === 'kernel'))
  await host.close()
})

test('identity is the bounded part of the status', async () => {
  const host = await boot({ plugins: [daemon] })
  const { body } = await host.request('GET', '/api/status/identity')
  const { body: whole } = await host.request('GET', '/api/status')
  for (const name of ['pid', 'version', 'started_at', 'http_host', 'http_port', 'user_home_dir']) {
    assert.is(body.daemon[name], whole.daemon[name], name)
  }
  assert.is(body.schema_version, '1')
  await host.close()
})

test('members of other plugins are merged by path; a failing one is degraded and affects no other', async () => {
  const requests: unknown[] = []
  const { plugin } = guest({
    members: [
      { path: 'sessions', read: () => ({ active: 2, total: 3, by_badge: { idle: 2 } }) },
      { path: 'daemon.active_sessions', read: () => 2 },
      { path: 'health', read: () => ({ failures: { total: 1 }, active_agents: 2 }) },
      { path: 'automation.jobs', read: async () => ({ total: 7 }) },
      { path: 'providers', read: () => [{ name: 'local', default: true, state: 'ready' }] },
      { path: 'bridges', read: () => ({ status: 'degraded' }) },
      {
        path: 'tasks',
        read: () => {
          throw new Error('no tasks today')
        },
      },
      { path: 'skills', read: about => void requests.push(about) },
    ],
  })
  const host = await boot({ plugins: [daemon, plugin] })
  const { body } = await host.request('GET', '/api/status?workspace=main')
  assert.equal(body.sessions, { active: 2, total: 3, by_badge: { idle: 2 }, by_status: {}, status: 'ok' })
  assert.is(body.daemon.active_sessions, 2)
  assert.is(body.health.active_agents, 2)
  assert.equal([body.health.failures.total, body.health.failures.status], [1, 'ok'])
  assert.equal(body.automation.jobs, { enabled: 0, total: 7 })
  assert.is(body.automation.status, 'ok')
  assert.is(body.providers[0].name, 'local')
  assert.is(body.bridges.status, 'degraded')
  assert.is(body.tasks.status, 'degraded')
  assert.is(body.skills.status, 'unavailable')
  assert.equal(requests, [{ workspace: 'main' }])
  assert.ok(host.log.some(line => line.msg.includes('no tasks today')))
  await host.close()
})

test('drain refuses new work, is in status and doctor, is idempotent and reported once', async () => {
  const { plugin, seen } = guest()
  const host = await boot({ plugins: [daemon, plugin] })
  assert.is((await host.request('POST', '/api/guest/work')).status, 200)
  for (let i = 0; i < 2; i++) {
    const { status, body } = await host.request('POST', '/api/drain')
    assert.equal([status, body.state], [200, 'draining'])
  }
  assert.is(seen.daemon.draining, true)
  const refused = await host.request('POST', '/api/guest/work')
  assert.is(refused.status, 503)
  assert.is(refused.body.code, 'draining')
  assert.is(refused.body.error, 'daemon is draining; new work admission is closed')
  assert.is((await host.request('GET', '/api/status')).body.daemon.status, 'draining')
  const report = await doctor(host, '?quiet=true&exclude=daemon.node')
  assert.equal(codes(report), ['daemon_draining'])
  assert.is(report.status, 'ok')
  for (let i = 0; i < 2; i++) assert.is((await host.request('POST', '/api/undrain')).body.state, 'active')
  assert.is((await host.request('POST', '/api/guest/work')).status, 200)
  const events = (await seen.kernel.needs.events.list({})).map(event => event.name)
  assert.equal(
    events.filter(name => name.startsWith('daemon.')),
    ['daemon.started', 'daemon.draining', 'daemon.active'],
  )
  await host.close()
})

test('a drain ends with a restart', async () => {
  const home = await temporaryFolder('drain')
  const first = await boot({ plugins: [daemon], home })
  await first.request('POST', '/api/drain')
  await first.close()
  const second = await boot({ plugins: [daemon], home })
  assert.is((await second.request('GET', '/api/status')).body.daemon.status, 'ok')
  await second.close()
  await rm(home, { recursive: true })
})

test('the admission guard is called, and nothing is admitted after the start of a shutdown', async () => {
  const { plugin, seen } = guest({ refuse: new Fault('not_today', 409, 'come back tomorrow') })
  const host = await boot({ plugins: [daemon, plugin], quiesceOrder: ['admission'] })
  const refused = await host.request('POST', '/api/guest/guest')
  assert.equal([refused.status, refused.body.code], [409, 'not_today'])
  assert.is((await host.request('POST', '/api/guest/other')).status, 200)
  await host.close()
  const late = await seen.daemon.admit('other').catch(error => error)
  assert.equal([late.code, late.status], ['shutting_down', 503])
})

test('the OpenAPI document has every route of the running plugins', async () => {
  const host = await boot({ plugins: [daemon] })
  const { status, body } = await host.request('GET', '/api/openapi.json')
  assert.is(status, 200)
  const routes = (daemon.surface.routes ?? []).map(route => `${route.method.toLowerCase()} ${route.path}`)
  for (const route of routes) {
    const [method = '', at = ''] = route.split(' ')
    assert.ok(body.paths[at]?.[method], route)
  }
  await host.close()
})

test('a list of a missing plugin stays empty', async () => {
  const read = () => {
    throw new Error('not now')
  }
  const { plugin } = guest({ members: [{ path: 'providers', read }] })
  const host = await boot({ plugins: [daemon, plugin] })
  const { status, body } = await host.request('GET', '/api/status')
  assert.equal([status, body.providers], [200, []])
  await host.close()
})

test.run()
