import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { Bundles, type BundlesApi } from '../../../../plugins/delivery/bundles/api.js'
import { automation, configuration, hooks, settings, tasks } from '../../../../plugins/index.js'
import network from '../../../../plugins/reach/network/index.js'
import { BOUNDS, type BoundName } from '../../../../plugins/reach/network/participation/bounds.js'
import { NativeHooks } from '../../../../plugins/work/hooks/api.js'
import { agentText, eventually, openWorld, type WorldOptions } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

const NAMED = { mode: 'live', channel_strategy: 'named', channel_id: 'team' } as const
const RUN = { mode: 'live', channel_strategy: 'run' } as const
const DEFAULTS = Object.fromEntries(Object.entries(BOUNDS).map(([name, { initial }]) => [name, initial]))

async function open(options: WorldOptions = {}) {
  const world = await openWorld({
    ...options,
    plugins: [configuration, settings, network, tasks, ...(options.plugins ?? [])],
  })
  await world.agent('ada')
  await world.agent('bob')
  const request = (method: string, url: string, body?: unknown): Promise<{ status: number; body: Reply }> =>
    world.kernel.request(method, url, body)
  const place = `/api/workspaces/${world.workspaceId}`
  const create = (participation?: unknown, agent = 'ada') =>
    request('POST', '/api/sessions', {
      workspace: world.workspaceId,
      agent_name: agent,
      ...(participation !== undefined && { network_participation: participation }),
    })
  const task = async (more: object = {}) => {
    const { status, body } = await request('POST', '/api/tasks', {
      title: 'work',
      scope: 'workspace',
      workspace: world.workspaceId,
      ...more,
    })
    assert.is(status, 201, JSON.stringify(body))
    return body.task.id as string
  }
  const start = (id: string, body: object = {}) => request('POST', `/api/tasks/${id}/start`, body)
  const claim = async (session: string, agent: string, body: object) => {
    const headers = { 'x-service-session-id': session, 'x-service-agent': agent }
    const reply = await world.kernel.kernel.inject({
      ...{ method: 'POST', url: '/api/agent/tasks/claim-next', headers, body },
    })
    return { status: reply.status, body: JSON.parse(reply.body) as Reply }
  }
  const peers = async (channel: string) =>
    (await request('GET', `${place}/network/peers?channel=${channel}`)).body.peers.map((one: Reply) => one.session_id)
  const disable = () => request('PATCH', '/api/settings/network', { config: { enabled: false } })
  return { ...world, request, create, task, start, claim, peers, disable, place }
}

test('a participating session has its channel, bounds and environment, and keeps them across a restart', async () => {
  const { create, peers, close, prompt, row, restart, request, workspaceId, place } = await open()
  try {
    const { status, body } = await create({ ...NAMED, bounds: { max_wakes: 2 } })
    assert.is(status, 201, JSON.stringify(body))
    const { id, resolved_network_participation: resolved } = body.session
    assert.equal(resolved, {
      ...{ mode: 'live', source: 'explicit_request', version: 'network-participation/v1' },
      ...{ workspace_id: workspaceId, channel_id: 'team', channel_strategy: 'named' },
      bounds: { ...DEFAULTS, max_wakes: 2 },
    })
    assert.equal(await peers('team'), [id])
    const env = agentText(await prompt(`${place}/sessions/${id}`, 'env SVC_SESSION_CHANNEL\nenv SVC_PEER_ID'))
    assert.match(env, 'team')
    assert.match(env, `ada.${id}`)
    await restart()
    assert.equal((await row(id)).resolved_network_participation, resolved)
    assert.equal(await peers('team'), [id])
    const { network } = (await request('GET', '/api/network/status')).body
    assert.equal([network.status, network.local_peers, network.channels], ['active', 1, 1])
    assert.equal((await request('GET', '/api/status')).body.daemon.network, network)
  } finally {
    await close()
  }
})

test('a session without participation or with local is local, with the source of the decision', async () => {
  const { create, close, prompt, place } = await open({ env: { SVC_PEER_ID: 'other.ses_1' } })
  try {
    const sources = []
    for (const participation of [undefined, { mode: 'local' }]) {
      const { body } = await create(participation)
      sources.push([
        body.session.resolved_network_participation.mode,
        body.session.resolved_network_participation.source,
      ])
      const env = agentText(await prompt(`${place}/sessions/${body.session.id}`, 'env SVC_PEER_ID'))
      assert.not.match(env, 'other.ses_1', 'what the daemon was started with is not handed on')
    }
    assert.equal(sources, [
      ['local', 'built_in_local'],
      ['local', 'explicit_request'],
    ])
  } finally {
    await close()
  }
})

test('a bound over its ceiling or of zero is refused and leaves no session', async () => {
  const { create, close, request } = await open()
  try {
    for (const name of Object.keys(BOUNDS) as BoundName[]) {
      const isCount = typeof BOUNDS[name].ceiling === 'number'
      const over = isCount ? Number(BOUNDS[name].ceiling) + 1 : name === 'coalesce_window' ? '6s' : '3h'
      for (const value of [over, isCount ? 0 : '0', isCount ? -1 : 'soon']) {
        const { status, body } = await create({ ...NAMED, bounds: { [name]: value } })
        assert.equal([status, body.code], [400, 'participation_invalid'], `${name} ${value}`)
        assert.match(body.error, `bounds.${name}`)
      }
      const { status } = await create({ ...NAMED, bounds: { [name]: BOUNDS[name].ceiling } })
      assert.is(status, 201, `${name} at its ceiling`)
    }
    assert.is((await create({ mode: 'live', channel_strategy: 'loop_run' })).status, 400)
    assert.is((await create({ ...RUN, channel_id: 'team' })).status, 400)
    assert.is((await create({ mode: 'local', channel_id: 'team' })).status, 400)
    const total = (await request('GET', '/api/sessions')).body.page.total
    assert.is(total, Object.keys(BOUNDS).length)
  } finally {
    await close()
  }
})

test('settings limit the requested bounds; a larger default is reduced to the limit', async () => {
  const { create, close } = await open({ config: { network: { live: { limits: { max_wakes: 3 } } } } })
  try {
    assert.is((await create({ ...NAMED, bounds: { max_wakes: 4 } })).status, 400)
    assert.is((await create(NAMED)).body.session.resolved_network_participation.bounds.max_wakes, 3)
  } finally {
    await close()
  }
})

test('participation of a run comes from the first source: request, profile, task, workspace', async () => {
  const { task, start, request, close, place } = await open()
  try {
    const shown = async (id: string, body: object = {}) => {
      const { status, body: reply } = await start(id, body)
      assert.is(status, 201, JSON.stringify(reply))
      const { mode, source, channel_id, channel_strategy } = reply.run.resolved_network_participation
      return { run: reply.run, of: [mode, source, channel_id, channel_strategy] }
    }
    const local = await shown(await task())
    assert.equal(local.of, ['local', 'built_in_local', undefined, undefined])
    assert.is(local.run.coordination_channel, undefined)

    const { status } = await request('PUT', `${place}/network-coordination`, {
      scope: 'workspace',
      enabled: true,
      expected_revision: 0,
    })
    assert.is(status, 200)
    const coordinated = await shown(await task())
    assert.equal(coordinated.of.slice(0, 2), ['live', 'workspace_coordination'])
    assert.match(coordinated.of[2], /^coord-trun-[0-9a-f-]+-[0-9a-f]{12}$/)
    assert.is(coordinated.run.coordination_channel.id, coordinated.of[2])

    const own = await task({ network_participation: { ...NAMED, channel_id: 'own' } })
    const profiled = await task({ network_participation: { ...NAMED, channel_id: 'own' } })
    await request('PUT', `/api/tasks/${profiled}/execution-profile`, {
      network_participation: { ...NAMED, channel_id: 'profile' },
    })
    assert.equal((await shown(own)).of, ['live', 'task_profile', 'own', 'named'])
    assert.equal((await shown(profiled)).of, ['live', 'task_profile', 'profile', 'named'])
    const taskReply = await task({ network_participation: { ...NAMED, channel_id: 'own' } })
    assert.equal((await shown(taskReply, { network_participation: NAMED })).of, [
      'live',
      'explicit_request',
      'team',
      'named',
    ])
    const kept = await task({ network_participation: NAMED })
    const asksLocal = await shown(kept, { network_participation: { mode: 'local' } })
    assert.equal(asksLocal.of.slice(0, 2), ['local', 'explicit_request'])
  } finally {
    await close()
  }
})

test('the session that claims a run takes part in its channel, which the lease names', async () => {
  const { task, start, create, claim, peers, close, request, workspaceId } = await open()
  try {
    const session = (await create()).body.session.id
    const id = await task()
    const queued = (await start(id, { network_participation: RUN })).body.run
    const channel = queued.resolved_network_participation.channel_id
    assert.equal(await peers(channel), [])
    const { status, body } = await claim(session, 'ada', { workspace_id: workspaceId })
    assert.is(status, 200, JSON.stringify(body))
    const wanted = {
      ...{ id: channel, display_name: channel, run_id: queued.id, task_id: id, workspace_id: workspaceId },
      allowed_message_kinds: ['status', 'request', 'reply', 'blocker', 'handoff', 'result', 'review_request'],
    }
    assert.equal(body.claim.coordination_channel, wanted)
    assert.equal(body.claim.lease.coordination_channel, wanted)
    assert.equal(body.claim.run.resolved_network_participation, queued.resolved_network_participation)
    assert.equal(await peers(channel), [session])
    assert.is((await request('GET', `/api/tasks/${id}/runs?participation_channel=${channel}`)).body.runs.length, 1)
  } finally {
    await close()
  }
})

test('a disabled network accepts no new participation and keeps existing ones', async () => {
  const { create, task, start, row, disable, close, request, place } = await open()
  try {
    const before = (await create(NAMED)).body.session
    const key = { scope: 'workspace', enabled: true, expected_revision: 0 }
    await request('PUT', `${place}/network-coordination`, key)
    assert.is((await disable()).status, 200)
    const { status, body } = await create(NAMED)
    assert.equal([status, body.code], [503, 'network_disabled'])
    const id = await task()
    const refused = await start(id, { network_participation: RUN })
    assert.equal([refused.status, refused.body.code], [503, 'network_disabled'])
    assert.is((await request('GET', `/api/tasks/${id}/runs`)).body.runs.length, 0)
    const run = (await start(id)).body.run
    assert.is(
      run.resolved_network_participation.source,
      'built_in_local',
      'the workspace does not keep tasks from running',
    )
    assert.equal((await row(before.id)).resolved_network_participation, before.resolved_network_participation)
    assert.is((await create({ mode: 'local' })).status, 201)
  } finally {
    await close()
  }
})

test('wakes stay within the bounds of the participation', async () => {
  const { create, close, request, place } = await open()
  try {
    const ada = (await create(NAMED)).body.session.id
    const bob = (await create({ ...NAMED, bounds: { max_wakes: 1, coalesce_window: '100ms' } }, 'bob')).body.session.id
    const send = (to: string) =>
      request('POST', `${place}/network/send`, {
        ...{ channel: 'team', kind: 'say', session_id: ada, to, body: { text: 'say yes' } },
      })
    const { status, body } = await send(`bob.${bob}`)
    assert.is(status, 200, JSON.stringify(body))
    const usage = async () => (await request('GET', `${place}/network/usage?owner_kind=session&owner_id=${bob}`)).body
    const settled = async () => (await usage()).details.every((wake: Reply) => wake.state === 'settled')
    await eventually(settled, 'the end of the first wake')
    assert.is((await send(`bob.${bob}`)).status, 200)
    assert.equal([(await usage()).total.wake_count, (await usage()).budget.exhausted_reason], [1, 'max_wakes'])
  } finally {
    await close()
  }
})

test('a channel declared by a bundle is created only by the first participating run', async () => {
  const declared = [{ name: 'findings', description: 'What reviews found', bundle_name: 'review' }]
  const bundles = definePlugin({
    name: 'bundles',
    version: '1.0.0',
    provides: Bundles,
    service: async () =>
      class {
        declaredChannels = () => declared
      } as unknown as new () => BundlesApi,
  }).surface({})
  const { create, task, start, close, request, place } = await open({ plugins: [bundles] })
  try {
    const status = async () => (await request('GET', '/api/network/status')).body.network
    const before = await status()
    assert.equal([before.declared_channels, before.channels], [declared, 0])
    assert.is((await request('GET', `${place}/network/channels/findings`)).body.code, 'channel_not_found')
    await create()
    await create({ ...NAMED, channel_id: 'other' })
    assert.is((await status()).channels, 1)
    const { status: started } = await start(await task(), {
      network_participation: { ...NAMED, channel_id: 'findings' },
    })
    assert.is(started, 201)
    const made = (await request('GET', `${place}/network/channels/findings`)).body.channel
    assert.equal([made.purpose, made.peer_count], ['What reviews found', 0])
    assert.is((await request('GET', `${place}/network/channels/other`)).body.channel.purpose, undefined)
  } finally {
    await close()
  }
})

test('the run of a job with participation takes part, with the job as source', async () => {
  const { close, request, workspaceId } = await open({ plugins: [automation] })
  try {
    const put = await request('PUT', '/api/resources/automation.job/review', {
      expected_version: 0,
      scope: { kind: 'workspace', id: workspaceId },
      spec: { name: 'review', task: { title: 'review', network_participation: NAMED } },
    })
    assert.ok(put.status < 300, JSON.stringify(put.body))
    const known = async () => (await request('GET', '/api/automation/jobs/review')).status === 200
    await eventually(known, 'the job')
    const { status, body } = await request('POST', '/api/automation/jobs/review/trigger')
    assert.ok(status < 300, JSON.stringify(body))
    const run = await eventually(async () => {
      const { run } = (await request('GET', `/api/automation/runs/${body.run.id}`)).body
      return run.task_id && (await request('GET', `/api/tasks/${run.task_id}/runs`)).body.runs[0]
    }, 'the run of its task')
    const { mode, source, channel_id } = run.resolved_network_participation
    assert.equal([mode, source, channel_id], ['live', 'automation_job', 'team'])
  } finally {
    await close()
  }
})

/** Hooks that are functions of a plugin, and what they were told. */
function hooked(answer: (request: Reply) => Reply | undefined) {
  const notices: (readonly [string, Reply])[] = []
  const { contribute } = surfaceOf<unknown>()
  const events = [
    ...['network.participation.resolved', 'network.message.persisted', 'network.thread.opened'],
    ...['network.direct_room.opened', 'network.peer.joined', 'network.peer.left'],
    ...['network.work.opened', 'network.work.transitioned', 'network.work.closed'],
  ] as const
  const plugin = definePlugin({ name: 'test.network-hooks', version: '1.0.0' }).surface({
    registries: [
      contribute(NativeHooks, () => [
        {
          name: 'asked',
          event: 'network.participation.pre_resolve' as const,
          mode: 'sync' as const,
          run: async (payload: Reply) => answer(payload),
        },
        ...events.map(event => ({
          name: event,
          event: event as 'network.peer.joined',
          run: async (payload: Reply) => {
            notices.push([event, payload])
            return undefined
          },
        })),
      ]),
    ],
  })
  return { plugins: [hooks, plugin], told: notices }
}

test('a hook narrows or refuses participation and does not widen it', async () => {
  const requests: Reply[] = []
  let answer: Reply | undefined
  const { plugins } = hooked(payload => {
    requests.push(payload)
    return answer
  })
  const { create, task, start, close, request } = await open({ plugins })
  try {
    answer = { request: { ...NAMED, bounds: { max_wakes: 1 } } }
    const narrowed = (await create(NAMED)).body.session.resolved_network_participation
    assert.equal(narrowed.bounds, { ...DEFAULTS, max_wakes: 1 })
    assert.equal(
      [
        requests[0]?.participation_mode,
        requests[0]?.participation_source,
        requests[0]?.channel,
        requests[0]?.request.bounds,
      ],
      ['live', 'explicit_request', 'team', DEFAULTS],
    )
    for (const wider of [{ ...NAMED, bounds: { max_wakes: 9 } }, { ...NAMED, channel_id: 'other' }, RUN]) {
      answer = { request: wider }
      const kept = (await create(NAMED)).body.session.resolved_network_participation
      assert.equal([kept.channel_id, kept.bounds], ['team', DEFAULTS], JSON.stringify(wider))
    }
    answer = { request: { mode: 'local' } }
    assert.is((await create(NAMED)).body.session.resolved_network_participation.mode, 'local')
    const id = await task()
    const run = (await start(id, { network_participation: RUN })).body.run
    assert.equal(
      [run.resolved_network_participation.mode, run.resolved_network_participation.source],
      ['local', 'explicit_request'],
    )
    answer = { deny: 'not today' }
    const { status, body } = await create(NAMED)
    assert.equal([status, body.code], [403, 'participation_denied'])
    assert.match(body.error, 'not today')
    const other = await task()
    assert.is((await start(other, { network_participation: RUN })).body.code, 'participation_denied')
    assert.is((await request('GET', `/api/tasks/${other}/runs`)).body.runs.length, 0)
    const before = requests.length
    assert.is((await create()).status, 201)
    assert.is(requests.length, before, 'nothing is asked of a session that is local')
  } finally {
    await close()
  }
})

test('hooks get channel events without the text of messages', async () => {
  const { plugins, told } = hooked(() => undefined)
  const { create, close, request, place, kernel } = await open({ plugins })
  try {
    const ada = (await create(NAMED)).body.session.id
    const bob = (await create(NAMED, 'bob')).body.session.id
    await request('POST', `${place}/network/channels/team/directs/resolve`, { session_id: ada, peer_id: `bob.${bob}` })
    const send = (session: string, more: object) =>
      request('POST', `${place}/network/send`, { channel: 'team', kind: 'say', session_id: session, ...more })
    const open = await send(ada, { to: `bob.${bob}`, work_id: 'w1', body: { text: 'say secret' } })
    assert.is(open.status, 200, JSON.stringify(open.body))
    const at = { kind: 'trace', work_id: 'w1', thread_id: open.body.message.thread_id, surface: 'thread' }
    assert.is((await send(bob, { ...at, body: { state: 'completed' } })).status, 200)
    await request('POST', `${place}/sessions/${ada}/stop`, {})
    const names = () => told.map(([name]) => name)
    for (let n = 0; !names().includes('network.peer.left') && n < 1000; n++)
      await new Promise(done => setImmediate(done))
    await kernel.close()
    const wanted = [
      ...['network.participation.resolved', 'network.peer.joined', 'network.direct_room.opened'],
      ...['network.thread.opened', 'network.work.opened', 'network.message.persisted'],
      ...['network.work.transitioned', 'network.work.closed', 'network.peer.left'],
    ]
    assert.equal(
      wanted.filter(name => !names().includes(name)),
      [],
    )
    const closed = told.find(([name]) => name === 'network.work.closed')?.[1]
    assert.equal([closed?.work_state, closed?.channel, closed?.surface], ['completed', 'team', 'thread'])
    assert.not.match(JSON.stringify(told), 'secret')
  } finally {
    await close()
  }
})

test.run()
