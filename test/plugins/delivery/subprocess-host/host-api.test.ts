import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { grantsOf } from '../../../../plugins/delivery/extensions/consent/grants.js'
import { hostMethods } from '../../../../plugins/delivery/extensions/manifest/permissions.js'
import { agents, automation, providers, sessions, workspaces } from '../../../../plugins/index.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { type Made, type Making, type Scene, scene } from './scene.js'

let world: Scene
let clock: VirtualClock
test.before(async () => {
  clock = new VirtualClock()
  world = await scene({ clock, plugins: [workspaces, providers, agents, sessions, automation] })
})
test.after(() => world.close())

async function withExtension(making: Making, use: (made: Made) => Promise<void>): Promise<void> {
  const made = await world.make(making)
  await made.runtime.start()
  await use(made)
  await made.runtime.stop({ deadlineMs: 0 })
}

const publish = { families: ['window_layouts'] }
const layout = (id: string, name = id) => ({ kind: 'window_layout', id, scope: { kind: 'global' }, spec: { name } })
const stored = async () =>
  (await world.host.request('GET', '/api/resources/window_layout')).body.records.map(
    ({ id, version, source }: { id: string; version: number; source: { id: string } }) =>
      `${source.id}/${id}@${version}`,
  )

test('unknown, ungranted and unanswered methods have different errors', () =>
  withExtension(
    { permissions: ['sessions/list', 'memory/list', 'network/status', 'observe/health'] },
    async ({ ask }) => {
      assert.is((await ask('no/such')).error.code, -32601)
      const { code, data } = (await ask('sessions/create', {})).error
      assert.is(code, -32001)
      assert.equal(data, {
        code: 'capability_denied',
        method: 'sessions/create',
        required: ['session.write'],
        granted: ['memory.read', 'network.read', 'observe.read', 'session.read'],
      })
      for (const [method, area] of [
        ['memory/list', 'memory'],
        ['network/status', 'network'],
      ] as const) {
        assert.equal((await ask(method)).error.data, { code: 'method_unavailable', method, area })
      }
      assert.equal((await ask('sessions/list')).result, { ...(await world.host.request('GET', '/api/sessions')).body })
      assert.is((await ask('observe/health')).result.daemon.pid, process.pid)
      assert.is((await ask('sessions/list', { limt: 1 })).error.data.code, 'invalid_query')
      assert.is((await ask('sessions/list', [])).error.data.code, 'invalid_params')
    },
  ))

test('records of an extension belong to it, and an operator can change them', () =>
  withExtension(
    { permissions: ['automation/jobs/create', 'automation/jobs/get', 'automation/jobs/delete'] },
    async ({ ask }) => {
      const job = {
        name: 'tick',
        agent_name: 'general',
        prompt: 'count',
        scope: 'global',
        schedule: { mode: 'every', interval: '1h' },
        enabled: false,
      }
      const { result, error } = await ask('automation/jobs/create', job)
      assert.is(error, undefined, JSON.stringify(error))
      const { id } = result.job
      const { record } = (await world.host.request('GET', `/api/resources/automation.job/${id}`)).body
      assert.equal(record.owner, { kind: 'extension', id: 'probe' })
      assert.equal(record.source, { kind: 'daemon', id: 'system' })
      assert.is((await ask('automation/jobs/get', { id })).result.job.name, 'tick')
      assert.is((await ask('automation/jobs/get', { id: '../../status' })).error.data.code, 'job_not_found')
      assert.is((await ask('automation/jobs/get', { id: '..' })).error.data.code, 'invalid_params')
      assert.is((await ask('automation/jobs/get')).error.data.code, 'invalid_params')
      const changed = await world.host.request('PATCH', `/api/automation/jobs/${id}`, { prompt: 'count more' })
      assert.is(changed.status, 200)
      assert.is((await ask('automation/jobs/delete', { id })).result, null)
    },
  ))

test('calls have a burst of twenty, then ten a second; a refusal names the retry time', () =>
  withExtension({ permissions: ['observe/health'] }, async ({ tell, ask }) => {
    const answers = await tell('hosts', { method: 'observe/health', times: 25 })
    assert.is(answers.filter((answer: { result?: unknown }) => answer.result).length, 20)
    const { code, data } = answers.at(-1).error
    assert.equal(
      [code, data],
      [-32003, { code: 'rate_limited', retry_after_ms: 100, limit: 10, burst: 20, scope: 'host_api.observe/health' }],
    )
    await clock.advance(data.retry_after_ms)
    assert.ok((await ask('observe/health')).result)
    assert.is((await ask('observe/health')).error.data.code, 'rate_limited')
  }))

test('a snapshot is the complete set of an extension; only its process publishes, in order', () =>
  withExtension({ permissions: ['resources/snapshot', 'resources/list', 'resources/get'], publish }, async made => {
    const { ask } = made
    const snapshot = async (source_version: number, records: unknown[], more: object = {}) => {
      const { result, error } = await ask('resources/snapshot', { source_version, records, ...more })
      return result ?? error.data
    }
    assert.equal(await snapshot(1, [layout('a'), layout('b')]), {
      source_version: 1,
      created: 2,
      updated: 0,
      unchanged: 0,
      deleted: 0,
    })
    assert.equal(await snapshot(4, [layout('b', 'other'), layout('c')]), {
      source_version: 4,
      created: 1,
      updated: 1,
      unchanged: 0,
      deleted: 1,
    })
    assert.equal(await stored(), ['probe/b@2', 'probe/c@1'])
    const refusals: [object, string, number?][] = [
      [await snapshot(4, []), 'snapshot_stale', 409],
      [await snapshot(5, [], { session_nonce: 'an older one' }), 'source_inactive', 409],
      [await snapshot(5, [layout('d'), layout('d')]), 'invalid_snapshot', 422],
      [await snapshot(5, [{ ...layout('d'), expected_version: 1 }]), 'invalid_snapshot', 422],
      [await snapshot(5, [{ ...layout('d'), kind: 'automation.job' }]), 'not_granted', 403],
      [await snapshot(5, [layout('d', 'x'.repeat(300_000))]), 'payload_too_large', 413],
      [
        await snapshot(
          5,
          Array.from({ length: 257 }, (_, i) => layout(`n${i}`)),
        ),
        'payload_too_large',
        413,
      ],
      [await snapshot(5, [{ ...layout('d'), owner: { kind: 'daemon', id: 'system' } }]), 'invalid_params'],
      [await snapshot(0, []), 'invalid_params'],
    ]
    for (const [data, code, status] of refusals) {
      assert.equal([code, (data as { code: string }).code], [code, code])
      if (status) assert.is((data as { status: number }).status, status)
      await clock.advance(1000)
    }
    assert.equal(await stored(), ['probe/b@2', 'probe/c@1'])
    assert.equal(
      (await ask('resources/list', { kind: 'window_layout' })).result.records.map(
        (record: { id: string }) => record.id,
      ),
      ['b', 'c'],
    )
    assert.is((await ask('resources/get', { kind: 'window_layout', id: 'c' })).result.record.spec.name, 'c')

    await withExtension(
      { name: 'second', permissions: ['resources/snapshot', 'resources/list'], publish },
      async second => {
        const taken = await second.ask('resources/snapshot', { source_version: 1, records: [layout('b')] })
        assert.is(taken.error.data.status, 409)
        assert.equal((await second.ask('resources/list', { kind: 'window_layout' })).result.records, [])
      },
    )
    // The next process counts anew.
    await made.runtime.stop({ deadlineMs: 0 })
    await made.runtime.start()
    await clock.advance(5000)
    assert.is((await snapshot(1, [layout('c')])).deleted, 1)
    assert.equal(await stored(), ['probe/c@1'])
  }))

test('snapshots have a separate rate where the operator sets one', () =>
  withExtension(
    {
      name: 'hasty',
      permissions: ['resources/snapshot'],
      publish,
      limits: { snapshotRate: { requests: 2, window: '10s', queue: 0 } },
    },
    async ({ ask }) => {
      const snapshot = (source_version: number) => ask('resources/snapshot', { source_version, records: [] })
      assert.ok((await snapshot(1)).result)
      assert.ok((await snapshot(2)).result)
      assert.equal((await snapshot(3)).error.data, {
        code: 'rate_limited',
        retry_after_ms: 5000,
        limit: 2,
        burst: 2,
        scope: 'resources.snapshot',
      })
      await clock.advance(5000)
      assert.ok((await snapshot(3)).result)
    },
  ))

test('a process that crashes too often loses its published records', () =>
  withExtension({ name: 'fragile', permissions: ['resources/snapshot'], publish }, async ({ ask, tell, runtime }) => {
    assert.is((await ask('resources/snapshot', { source_version: 1, records: [layout('f')] })).result.created, 1)
    for (let i = 1; i <= 5; i++) {
      const changed = new Promise<void>(resolve => {
        runtime.onChange(() => ['waiting', 'given_up'].includes(runtime.state.status) && resolve())
      })
      tell('exit', { code: 1 }).catch(() => {})
      await changed
      if (i === 5) break
      assert.ok((await stored()).includes('fragile/f@1'))
      const ready = new Promise<void>(resolve => {
        runtime.onChange(() => runtime.state.status === 'ready' && resolve())
      })
      await clock.advance(runtime.health().restartBackoffMs)
      await ready
    }
    assert.is(runtime.state.status, 'given_up')
    assert.not((await stored()).includes('fragile/f@1'))
  }))

const declared = { permissions: [...hostMethods.keys()] }
const manifest = (max_scope = 'global', permissions = declared.permissions) =>
  ({
    permissions: { requires: permissions },
    resources: { publish: { families: ['window_layouts'], max_scope } },
  }) as never
const limits = (maxScope: '' | 'global' | 'workspace' = '', allowedKinds: string[] = []) => ({ maxScope, allowedKinds })

test('grants: three tiers get their declared ones, a marketplace extension reads some kinds', () => {
  for (const tier of ['bundled', 'user', 'workspace'] as const) {
    const { permissions, dropped } = grantsOf({ manifest: manifest(), tier }, limits())
    assert.equal([permissions.length, dropped], [104, []])
  }
  const { permissions, dropped } = grantsOf({ manifest: manifest(), tier: 'marketplace' }, limits())
  assert.equal(permissions, [
    'sessions/list',
    'sessions/status',
    'sessions/events',
    'sessions/history',
    'sessions/inbox',
    'sessions/subscribe',
    'sessions/unsubscribe',
    'sessions/permissions/list',
    'sessions/permissions/get',
    'sessions/clarifications/list',
    'memory/list',
    'memory/recall',
    'observe/health',
    'logs/list',
    'skills/list',
    'state/get',
    'state/list',
    'state/put',
    'state/delete',
    'secrets/get',
  ])
  assert.is(dropped.length, 104 - permissions.length)
  // The operator consented to more of what it asks for.
  const allowed = grantsOf({ manifest: manifest(), tier: 'marketplace' }, limits(), ['session.write'])
  assert.ok(allowed.permissions.includes('sessions/prompt'))
  assert.not(allowed.permissions.includes('bridges/messages/ingest'))
})

test('grants: kinds are the intersection of requested and allowed ones, the scope is the narrowest', () => {
  const granted = (tier: 'user' | 'workspace', wanted: string, ...operator: Parameters<typeof limits>) => {
    const { kinds, scopes } = grantsOf({ manifest: manifest(wanted), tier }, limits(...operator))
    return `${kinds} ${scopes}`
  }
  assert.is(granted('user', 'global'), 'window_layout global,workspace')
  assert.is(granted('user', 'workspace'), 'window_layout workspace')
  assert.is(granted('workspace', 'global'), 'window_layout workspace')
  assert.is(granted('user', 'global', 'workspace'), 'window_layout workspace')
  assert.is(granted('user', 'global', 'global', ['window_layout']), 'window_layout global,workspace')
  assert.is(granted('user', 'global', '', ['skill']), ' ')
})

test('grants withheld by a marketplace are in the log of the extension', () =>
  withExtension({ name: 'shop', tier: 'marketplace', permissions: ['tasks/create', 'observe/health'] }, async made => {
    assert.match(made.said(), /not granted to an extension from a marketplace: tasks\/create/)
    assert.is((await made.ask('tasks/create')).error.data.code, 'capability_denied')
    assert.ok((await made.ask('observe/health')).result)
  }))

test('every answered method names a consent of its area, and the route of a subsystem', () => {
  assert.is(hostMethods.size, 104)
  for (const [method, { consent, route }] of hostMethods) {
    assert.match(consent, /^[a-z]+\.(read|write)$/, method)
    if (route) assert.is(/\.read$/.test(consent), /^GET |\/validate$/.test(route), method)
  }
})

test.run()
