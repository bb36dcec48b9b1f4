// timeout: 180s
import { spawnSync } from 'node:child_process'
import { mkdir, realpath, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import {
  auth,
  automation,
  configuration,
  disk,
  extensions,
  heartbeats,
  hooks,
  identity,
  network,
  sandboxes,
  selfService,
  settings,
  sidecars,
  tasks,
  tools,
  windowManager,
} from '../../../../plugins/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import { type HookPayload, NativeHooks } from '../../../../plugins/work/hooks/api.js'
import { fieldsOf } from '../../../../plugins/work/hooks/families.js'
import { hookEvents } from '../../../../plugins/work/hooks/hook-events.js'
import { OF_TASKS } from '../../../../plugins/work/hooks/points/work.js'
import { TaskEvents } from '../../../../plugins/work/tasks/api.js'
import { HookEvent } from '../../../../schemas/hooks.js'
import { probe } from '../../../../testing/traces.js'
import { AGENT, agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'
import { ask } from '../../../kernel/http/doors.js'

/** What each event told first, and names of sessions that are refused. */
const heard = new Map<string, HookPayload>()
const refused = new Set<string>()
/** Members that were told of each event. */
const members = new Map<string, Set<string>>()

const emitted = HookEvent.options.filter(event => hookEvents[event].emitted)
const listener = definePlugin({ name: 'test.listener', version: '1.0.0' }).surface({
  registries: [
    surfaceOf().contribute(NativeHooks, () =>
      emitted.map(event => ({
        name: 'listener',
        event,
        mode: hookEvents[event].sync ? ('sync' as const) : ('async' as const),
        run: payload => {
          if (!heard.has(event)) heard.set(event, payload)
          members.set(event, new Set([...(members.get(event) ?? []), ...Object.keys(payload)]))
          return refused.delete(event) ? { deny: 'not today' } : undefined
        },
      })),
    ),
  ],
})

const log = probe({ events: Events })
let world: World
const folder = (name: string) => path.join(world.home, 'agents', name)
const request: World['kernel']['request'] = (...args) => world.kernel.request(...args)

async function agent(name: string, head: readonly string[], flags = '') {
  await mkdir(folder(name), { recursive: true })
  const lines = [`name: ${name}`, ...head, `command: '${process.execPath} ${AGENT} ${flags}'`]
  await writeFile(path.join(folder(name), 'AGENT.md'), `---\n${lines.join('\n')}\n---\nYou do what you are told.\n`)
}

const wait = (...events: readonly string[]) =>
  eventually(
    async () => events.every(event => heard.has(event)),
    `${events.filter(event => !heard.has(event))}, heard ${[...heard.keys()].sort()}`,
  )
const stop = (at: string) => request('POST', `${at}/stop`)

test.before(async () => {
  const root = await realpath(await temporaryFolder('emitted'))
  const work = path.join(root, 'work')
  await mkdir(work)
  const git = (...args: string[]) =>
    spawnSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], { cwd: work })
  git('init', '-q', '-b', 'main')
  await writeFile(path.join(work, 'there'), 'x')
  git('add', '-A')
  git('commit', '-qm', 'first')
  world = await openWorld({
    root: work,
    listen: ['socket'],
    config: { agents: { heartbeat: { active_session_only: false, wake_cooldown: '1s' } } },
    plugins: [
      ...[auth, identity, configuration, settings, disk, sidecars, sandboxes, selfService, heartbeats, automation],
      ...[windowManager, hooks, listener, log.plugin, extensions, tools, tasks, network],
    ],
  })
  await agent('plain', ['permissions: approve-all'], '--load')
  await agent('asks', ['permissions: approve-reads'])
})
test.after(async () => {
  await world.close()
  await rm(path.dirname(world.root), { recursive: true, force: true })
})

test('session, turn, message, tool and permission events are emitted', async () => {
  const { id, at } = await world.session('plain', { sandbox: 'none' })
  const result = { sessionUpdate: 'tool_call', toolCallId: 'a', title: 'well', kind: 'read', status: 'completed' }
  const usage = (used: number) => `update ${JSON.stringify({ sessionUpdate: 'usage_update', used, size: 10_000 })}`
  const lines = [
    'say hello',
    `update ${JSON.stringify(result)}`,
    `update ${JSON.stringify({ ...result, toolCallId: 'b', status: 'failed' })}`,
    usage(9000),
    usage(1000),
    `call fs/read_text_file ${JSON.stringify({ path: 'there' })}`,
  ]
  await world.prompt(at, lines.join('\n'))
  const option = (kind: string) => ({ optionId: kind, kind, name: kind })
  const toolCall = { toolCallId: 'c', kind: 'edit', title: 'e', locations: [{ path: path.join(world.root, 'there') }] }
  await world.prompt(at, `ask ${JSON.stringify({ toolCall, options: ['allow_once', 'reject_once'].map(option) })}`)
  const asks = await world.session('asks')
  const outside = { ...toolCall, locations: [{ path: path.join(world.home, 'config.json') }] }
  await world.prompt(asks.at, `ask ${JSON.stringify({ toolCall: outside, options: [option('reject_once')] })}`)
  // Somebody is wanted to look while a question waits.
  await request('POST', `${asks.at}/prompt`, {
    text: `ask ${JSON.stringify({ toolCall, options: ['allow_once', 'reject_once'].map(option) })}`,
  })
  await wait('session.attention.changed', 'permission.resolved', 'permission.denied', 'permission.request')
  await stop(asks.at)
  await request('POST', `${at}/prompt`, { text: 'exit 3' })
  await wait('agent.crashed')
  await eventually(
    async () => (await request('POST', `${at}/prompt`, { text: 'say again' })).status === 200,
    'a restart',
  )
  await wait('session.runtime_recovery.succeeded', 'session.post_resume', 'session.pre_resume')
  await eventually(async () => !(await world.row(id)).health.active_prompt, 'the end of the turn')
  await request('POST', `${at}/prompt`, { text: 'exit 3' })
  await eventually(async () => (await world.row(id)).state === 'stopped', 'the second crash')
  await agent('plain', ['permissions: approve-all'], '--no-such --exit-at-start')
  await writeFile(
    path.join(folder('plain'), 'AGENT.md'),
    '---\nname: plain\npermissions: approve-all\ncommand: /bin/false\n---\nYou fail.\n',
  )
  await request('POST', `${at}/prompt`, { text: 'say never' })
  await wait('session.runtime_recovery.exhausted')
  await agent('plain', ['permissions: approve-all'], '--load')
  assert.is(heard.get('session.message_persisted')?.session_id, id)
  assert.is(heard.get('tool.pre_call')?.tool_name, 'read')
  assert.is(heard.get('turn.start')?.workspace_root, world.root)
})

test('worktree events are emitted', async () => {
  const { at } = await world.session('plain', { sandbox: 'none' })
  const fork = (body: Reply) => request('POST', `${at}/worktree-fork`, { confirmed: true, ...body })
  const made = await fork({ new_worktree: { name: 'one' } })
  assert.is(made.status, 201, JSON.stringify(made.body))
  assert.is((await fork({ worktree: 'one' })).status, 201)
  refused.add('session.pre_create')
  assert.is((await fork({ new_worktree: { name: 'two' } })).status, 403)
  await wait('worktree.pre_create', 'worktree.created', 'worktree.adopted')
  await wait('worktree.pre_remove', 'worktree.removed')
})

test('soul and heartbeat events are emitted', async () => {
  const sidecar = async (name: string, text: string) => {
    const { status, body } = await request('PUT', `/api/agents/asks/${name}`, { body: text })
    assert.is(status, 200, JSON.stringify(body))
  }
  await sidecar('soul', '---\nrole: calm\n---\nYou are calm.\n')
  await sidecar('heartbeat', '---\npreferences: { min_interval: 10m }\n---\nsay awake\n')
  const { id, at } = await world.session('asks')
  await world.prompt(at, 'say here')
  const wish = { session_id: id, source: 'manual', workspace_id: world.workspaceId }
  const wake = () => request('POST', '/api/agents/asks/heartbeat/wake', wish)
  // What the agent said last is heard before its turn is over, and nobody is woken in the middle of one.
  await eventually(async () => (await wake()).body.decision.result === 'sent', 'the wake')
  await wait('agent.soul.mutation.after', 'agent.soul.snapshot.resolved', 'agent.heartbeat.policy.resolved')
  await wait('agent.heartbeat.wake.before', 'agent.heartbeat.wake.after', 'session.health.update.after')
})

test('spawn and sandbox events are emitted', async () => {
  const { at } = await world.session('plain', { sandbox: 'none' })
  const socketPath = /SVC_SOCKET=(.*)/.exec(agentText(await world.prompt(at, 'env SVC_SOCKET')))?.[1] ?? ''
  const permissions = {
    ...{ tools: [], skills: [], mcp_servers: [], network_channels: [], sandbox_profiles: [] },
    workspace_paths: [world.root],
  }
  const spawn = async (ttl: number) => {
    const wish = { agent_name: 'plain', auto_stop_on_parent: true, spawn_role: 'worker', ttl_seconds: ttl, permissions }
    const { status, body } = await ask({ socketPath }, '/api/agent/spawn', { method: 'POST', body: wish })
    assert.is(status, 201, JSON.stringify(body))
  }
  await spawn(1)
  await wait('spawn.pre_create', 'spawn.created', 'spawn.ttl_expired', 'spawn.reaped')
  await spawn(600)
  await stop(at)
  await wait('spawn.parent_stopped')
  const boxed = await world.session('plain', { sandbox: 'default' })
  await world.prompt(boxed.at, 'say inside')
  await stop(boxed.at)
  await wait('sandbox.prepare', 'sandbox.ready', 'sandbox.stop')
})

test('automation events are emitted', async () => {
  const definition = { agent_name: 'asks', prompt: 'say hello', scope: 'workspace', workspace_id: world.workspaceId }
  const job = async (name: string, more: object = {}) => {
    const schedule = { mode: 'every', interval: '24h' }
    const made = await request('POST', '/api/automation/jobs', { ...definition, name, schedule, ...more })
    assert.is(made.status, 201, JSON.stringify(made.body))
    await request('POST', `/api/automation/jobs/${made.body.job.id}/trigger`)
  }
  const trigger = { ...definition, name: 'on-end', event: 'session.stopped', fire_limit: { max: 1, window: '1h' } }
  const made = await request('POST', '/api/automation/triggers', trigger)
  assert.is(made.status, 201, JSON.stringify(made.body))
  await job('fine')
  await wait('automation.job.pre_fire', 'automation.job.post_fire', 'automation.run.completed')
  await wait('automation.trigger.pre_fire', 'automation.trigger.post_fire')
  await job('fails', { prompt: 'exit 3', retry: { strategy: 'none', base_delay: '', max_retries: 0 } })
  await wait('automation.run.failed')
})

test('window manager events are emitted', async () => {
  const at = `/api/workspaces/${world.workspaceId}/window-manager`
  const run = async (command_id: string, payload: object) => {
    const { revision } = (await request('GET', at)).body
    const reply = await request('POST', `${at}/commands`, { expected_revision: revision, command_id, payload })
    assert.is(reply.status, 200, `${command_id}: ${JSON.stringify(reply.body)}`)
  }
  for (const id of ['a', 'b', 'c']) await run('window.open', { id, app: 'mail' })
  await run('desktop.create', { id: 'second' })
  await run('window.move', { window_id: 'c', desktop_id: 'second' })
  await run('layout.arrange', { mode: 'stack' })
  await run('window.focus', { window_id: 'a' })
  await run('layout.arrange', { mode: 'columns' })
  await run('window.close', { window_id: 'b' })
  const [first] = (await request('GET', at)).body.desktops
  await run('desktop.delete', { desktop_id: 'second', move_to: first.id })
  const { version, workspace_id, desktops, windows, overrides } = (await request('GET', at)).body
  const document = { version, workspace_id, desktops, windows, overrides }
  await run('layout.replace', { document })
  const wanted = emitted.filter(event => event.startsWith('window_manager.'))
  await wait(...wanted)
})

test('a hook denies a tool call', async () => {
  const { tools: all } = (await request('GET', '/api/tools')).body
  const id = all.find(({ descriptor }: Reply) => descriptor.read_only && !descriptor.input_schema?.required?.length)
    .descriptor.tool_id
  refused.add('tool.pre_call')
  const { status, body } = await request('POST', `/api/tools/${id}/invoke`, { input: {} })
  assert.equal([status >= 400, body.error?.reason_codes ?? body], [true, ['hook_denied']])
  assert.is((await request('POST', `/api/tools/${id}/invoke`, { input: {} })).status, 200)
  await eventually(async () => members.get('tool.post_call')?.has('tool_namespace'), 'the end of the call')
})

test('a hook denies a claim', async () => {
  const { at } = await world.session('plain', { sandbox: 'none' })
  const socketPath = /SVC_SOCKET=(.*)/.exec(agentText(await world.prompt(at, 'env SVC_SOCKET')))?.[1] ?? ''
  const claim = () => ask({ socketPath }, '/api/agent/tasks/claim-next', { method: 'POST', body: {} })
  assert.is((await claim()).status, 204)
  refused.add('task.run.pre_claim')
  const { status, body } = await claim()
  assert.equal([status, JSON.parse(JSON.stringify(body)).code], [403, 'task_claim_denied'])
  await stop(at)
})

test('a hook denies a coordinator, and events of the next one are emitted', async () => {
  const about = { scope: 'workspace', workspace: world.workspaceId, description: 'env SVC_SOCKET\nhang' }
  const { task } = (await request('POST', '/api/tasks', { title: 'divide', ...about })).body
  const coordinator = { mode: 'guided', agent_name: 'plain' }
  const profile = { sandbox: { mode: 'none' }, coordinator }
  assert.is((await request('PUT', `/api/tasks/${task.id}/execution-profile`, profile)).status, 200)
  refused.add('coordinator.pre_spawn')
  const { run } = (await request('POST', `/api/tasks/${task.id}/start`)).body
  await wait('coordinator.failed', 'coordinator.spawned')
  assert.match(String(heard.get('coordinator.failed')?.error), /a hook refused the coordinator: not today/)
  const { session_id: session, agent_name: agent, autonomy } = heard.get('coordinator.spawned') ?? {}
  assert.equal([agent, autonomy], ['plain', { task_id: task.id, run_id: run.id, coordinator_session_id: session }])
  const at = `/api/workspaces/${world.workspaceId}/sessions/${session}`
  const socketPath = String(
    await eventually(async () => /SVC_SOCKET=(.*)/.exec(agentText(await world.events(at)))?.[1], 'the socket'),
  )
  const agentAsks = (url: string, body: object) => ask({ socketPath }, url, { method: 'POST', body })
  const claimed = await agentAsks('/api/agent/tasks/claim-next', { run_id: run.id })
  assert.is(claimed.status, 200)
  const parts = { designations: [{ brief: 'the parser' }], idempotency_key: 'parts' }
  assert.is((await agentAsks(`/api/tasks/${task.id}/runs/fan-out`, parts)).status, 201)
  await wait('coordinator.decision')
  const decision = heard.get('coordinator.decision') as { readonly run_ids: readonly string[] }
  assert.is(decision.run_ids.length, 1)
  const { claim_token } = JSON.parse(claimed.text).claim
  const done = await agentAsks(`/api/agent/tasks/${run.id}/complete`, { claim_token, result: { summary: 'divided' } })
  assert.is(done.status, 200, done.text)
  await request('POST', `${at}/prompt/cancel`)
  await wait('coordinator.stopped')
  await request('POST', `/api/tasks/${task.id}/cancel`)
})

test('task events are emitted from the event log', async () => {
  for (const name of Object.keys(OF_TASKS) as (keyof typeof OF_TASKS)[])
    await log.kernel().db.tx(t => {
      log.kernel().needs.events.emit(t, TaskEvents[name], { task_id: 'tsk_1' }, { scope: world.workspaceId })
    })
  await wait(...Object.values(OF_TASKS))
  assert.is(heard.get('task.run.enqueued')?.workspace_root, world.root)
})

test('events of the network are emitted', async () => {
  const part = { mode: 'live', channel_strategy: 'named', channel_id: 'team' }
  const [one, other] = [0, 1].map(() => world.session('plain', { sandbox: 'none', network_participation: part }))
  const [ada, bob] = [await one, await other] as [{ id: string; at: string }, { id: string; at: string }]
  const at = `/api/workspaces/${world.workspaceId}/network`
  const to = `plain.${bob.id}`
  await request('POST', `${at}/channels/team/directs/resolve`, { session_id: ada.id, peer_id: to })
  const say = { channel: 'team', kind: 'say', session_id: ada.id, to, work_id: 'w1', body: { text: 'say yes' } }
  const { status, body } = await request('POST', `${at}/send`, say)
  assert.is(status, 200, JSON.stringify(body))
  const { thread_id } = body.message
  const trace = { channel: 'team', kind: 'trace', session_id: bob.id, work_id: 'w1', surface: 'thread', thread_id }
  assert.is((await request('POST', `${at}/send`, { ...trace, body: { state: 'completed' } })).status, 200)
  for (const session of [ada, bob]) await stop(session.at)
  await wait(...emitted.filter(event => event.startsWith('network.')))
})

test('every event marked as emitted was emitted by these tests', () => {
  assert.equal(
    emitted.filter(event => !heard.has(event)),
    [],
  )
})

/** Fields that a matcher may name and these events cannot tell: no tool of the daemon fails here, nothing is synced, a peer has no state of work. */
const UNTOLD: Readonly<Record<string, readonly string[]>> = {
  sandbox: ['sync_direction'],
  'tool.post_error': ['tool_id', 'tool_namespace'],
  'network.message': ['work_state'],
  'network.thread': ['kind', 'direction', 'work_state'],
  'network.direct_room': ['kind', 'direction', 'work_state'],
  'network.peer': ['surface', 'kind', 'direction', 'work_state'],
  'network.work': ['direction'],
}

test('every event describes its matchable members', () => {
  const isKnown = (event: string, field: string) =>
    Object.entries(UNTOLD).some(([start, fields]) => event.startsWith(start) && fields.includes(field))
  const untold = emitted.flatMap(event =>
    fieldsOf(event)
      .filter(field => !members.get(event)?.has(field) && !isKnown(event, field))
      .map(field => `${event}: ${field}`),
  )
  assert.equal(untold, [])
})

test.run()
