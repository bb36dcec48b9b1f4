// timeout: 120s
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { Confinement } from '../../../../plugins/access/sandboxes/api.js'
import { Spawning } from '../../../../plugins/agents/self-service/api.js'
import {
  auth,
  configuration,
  identity,
  sandboxes,
  selfService,
  settings,
  sidecars,
  tasks,
} from '../../../../plugins/index.js'
import { Sessions } from '../../../../plugins/work/sessions/api.js'
import { probe } from '../../../../testing/traces.js'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import { ask } from '../../../kernel/http/doors.js'

/** Points of spawned sessions and sandboxes that were called, and what is denied. */
const messages: string[] = []
const denied = new Set<string>()
const { tap } = surfaceOf<unknown>()
const hear =
  (name: string) =>
  () =>
  (value: unknown): undefined => {
    messages.push(name)
    return denied.has(name) ? ({ ...(value as object), deny: 'not today' } as never) : undefined
  }
const look = probe({ sessions: Sessions })
const listener = definePlugin({
  name: 'test.points',
  version: '1.0.0',
  requires: { spawning: Spawning, confinement: Confinement },
}).surface({
  taps: [
    tap(Spawning, ({ points }) => points.preCreate, hear('preCreate')),
    tap(Spawning, ({ points }) => points.created, hear('created')),
    tap(Spawning, ({ points }) => points.parentStopped, hear('parentStopped')),
    tap(Spawning, ({ points }) => points.ttlExpired, hear('ttlExpired')),
    tap(Spawning, ({ points }) => points.reaped, hear('reaped')),
    tap(Confinement, ({ points }) => points.prepare, hear('prepare')),
    tap(Confinement, ({ points }) => points.ready, hear('ready')),
    tap(Confinement, ({ points }) => points.stop, hear('stop')),
  ],
})

interface Agent {
  readonly id: string
  readonly at: string
  /** Sends a request over the socket of the session. */
  ask(method: string, url: string, body?: unknown): ReturnType<typeof ask>
}

const test = suite<{ world: World; ada: Agent }>('self-service')

/** A session whose process runs outside of a sandbox, so that its environment can be looked at. */
async function begin(world: World, name: string, body: object = {}): Promise<Agent> {
  const { id, at } = await world.session(name, { sandbox: 'none', ...body })
  return speaker(world, id, at)
}

async function speaker(world: World, id: string, at: string): Promise<Agent> {
  const socketPath = /SVC_SOCKET=(.*)/.exec(agentText(await world.prompt(at, 'env SVC_SOCKET')))?.[1] ?? ''
  return {
    id,
    at,
    ask: (method, url, sent) => ask({ socketPath }, url, { method, ...(sent !== undefined && { body: sent }) }),
  }
}

test.before(async context => {
  const world = await openWorld({
    plugins: [auth, identity, configuration, settings, sidecars, sandboxes, selfService, tasks, look.plugin, listener],
    listen: ['socket'],
  })
  const agent = `command: '${process.execPath} ${path.resolve('test/fixtures/acp-agent.mjs')} --modes=default,bypassPermissions'`
  for (const name of ['ada', 'eve']) {
    const folder = path.join(world.home, 'agents', name)
    await mkdir(folder, { recursive: true })
    const tools = `tools: ["mcp__github__*", "svc__read"]\ndeny_tools: ["mcp__github__delete_*"]\nmcp_servers:\n  - { name: git, command: git-mcp }`
    await writeFile(
      path.join(folder, 'AGENT.md'),
      `---\nname: ${name}\npermissions: approve-all\n${tools}\n${agent}\n---\nYou do what you are told.\n`,
    )
  }
  await mkdir(path.join(world.root, 'part'))
  context.world = world
  context.ada = await begin(world, 'ada')
})
test.after(({ world }) => world.close())

const rights = (world: World, more: object = {}) => ({
  tools: [],
  skills: [],
  mcp_servers: [],
  workspace_paths: [world.root],
  network_channels: [],
  sandbox_profiles: [],
  ...more,
})
const wish = (world: World, more: object = {}) => ({
  agent_name: 'eve',
  auto_stop_on_parent: true,
  permissions: rights(world),
  spawn_role: 'worker',
  ttl_seconds: 600,
  ...more,
})

test('an agent asks for its identity, and the operator is answered that it is no agent', async ({ world, ada }) => {
  const { me } = (await ada.ask('GET', '/api/agent/me')).body
  assert.equal(me.self, { agent_name: 'ada', provider: 'local', session_id: ada.id })
  assert.equal([me.limits.max_children, me.limits.max_spawn_depth], [5, 1])
  assert.is(me.workspace.id, world.workspaceId)
  const { context } = (await ada.ask('GET', '/api/agent/context')).body
  assert.equal([context.soul.present, context.task.available], [false, false])
  assert.ok(context.soul.max_bytes >= context.soul.max_body_bytes)
  const { coordinator } = (await ada.ask('GET', '/api/agent/coordinator/config')).body
  assert.equal([coordinator.default_ttl_seconds, coordinator.source], [7200, 'default'])
  assert.is((await ada.ask('GET', '/api/agent/coordinator/config?workspace=ws_other')).body.code, 'spawn_foreign')
  assert.is((await ada.ask('GET', '/api/agent/soul')).body.present, false)
  const operator = await world.kernel.request('GET', '/api/agent/me')
  assert.equal([operator.status, operator.body.code], [401, 'identity_required'])
})

test('an agent checks only its own persona', async ({ ada }) => {
  const good = await ada.ask('POST', '/api/agent/soul/validate', { body: '---\nrole: helper\n---\nBe kind.\n' })
  assert.equal([good.status, good.body.frontmatter.role], [200, 'helper'])
  const bad = await ada.ask('POST', '/api/agent/soul/validate', { body: '---\ntools: [x]\n---\nBe kind.\n' })
  assert.equal([bad.status, bad.body.validation_status], [422, 'invalid'])
  const other = await ada.ask('POST', '/api/agent/soul/validate', { agent_name: 'eve', body: 'x' })
  assert.equal([other.status, other.body.code], [403, 'spawn_foreign'])
})

test('a child has fewer rights, is shown with its lineage, and starts no further one', async ({ world, ada }) => {
  const part = path.join(world.root, 'part')
  const reply = await ada.ask(
    'POST',
    '/api/agent/spawn',
    wish(world, {
      permissions: rights(world, { workspace_paths: [part], tools: ['mcp__github__issues'] }),
      prompt_overlay: 'Be brief.',
    }),
  )
  assert.is(reply.status, 201, JSON.stringify(reply.body))
  const { session, lineage, permissions } = reply.body.spawn
  assert.equal([session.type, lineage.parent_session_id, lineage.spawn_depth], ['spawned', ada.id, 1])
  assert.equal(permissions.workspace_paths, [part])
  assert.is(session.sandbox.profile ?? session.sandbox.backend, session.sandbox.profile ?? 'none')
  const at = `/api/workspaces/${world.workspaceId}/sessions/${session.id}`
  const first = agentText(await world.prompt(at, 'echo'))
  assert.match(first, /Be brief\./)
  assert.match(first, new RegExp(`at ${part}`))
  await writeFile(path.join(world.root, 'above'), 'not yours')
  const read = `call fs/read_text_file ${JSON.stringify({ path: path.join(world.root, 'above') })}`
  assert.match(agentText(await world.prompt(at, read)), /error/)
  const socket = /SVC_SOCKET=(.*)/.exec(agentText(await world.prompt(at, 'env SVC_SOCKET')))?.[1] ?? ''
  const grandchild = await ask({ socketPath: socket }, '/api/agent/spawn', { method: 'POST', body: wish(world) })
  assert.equal([grandchild.status, grandchild.body.code], [403, 'spawn_depth_exceeded'])
  await world.kernel.request('POST', `${at}/stop`)
})

test('a child is refused anything outside its tools, in every mode, and its session says so', async ({
  world,
  ada,
}) => {
  assert.is(agentText(await world.prompt(ada.at, 'mode')), 'mode bypassPermissions\n')
  const { body } = await ada.ask(
    'POST',
    '/api/agent/spawn',
    wish(world, { permissions: rights(world, { tools: ['svc__read', 'mcp__github__is*'] }) }),
  )
  const { session } = body.spawn
  assert.is(session.permissions, 'approve-all')
  const at = `/api/workspaces/${world.workspaceId}/sessions/${session.id}`
  assert.is(agentText(await world.prompt(at, 'mode')), 'mode default\n', 'it asks, so that it can be refused')
  await writeFile(path.join(world.root, 'shown'), 'yours')
  const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, kind, name: kind }))
  const decisionOf = async (toolCall: object) =>
    agentText(await world.prompt(at, `ask ${JSON.stringify({ toolCall: { toolCallId: 'c', ...toolCall }, options })}`))
  assert.match(await decisionOf({ kind: 'search', title: 'grep' }), /allow_once/)
  assert.match(await decisionOf({ kind: 'other', title: 'mcp__github__issues' }), /allow_once/)
  for (const call of [
    { kind: 'edit', title: 'edit a file' },
    { kind: 'execute', title: 'run', rawInput: { command: 'git push' } },
    { kind: 'other', title: 'anything' },
    { kind: 'read', name: 'mcp__github__delete', title: 'harmless' },
    { kind: 'execute', title: 'mcp__github__issues', rawInput: { command: 'mcp__github__issues' } },
  ])
    assert.match(await decisionOf(call), /reject_once/, JSON.stringify(call))
  const refused = (await world.events(at, '?type=permission&limit=1000')).filter(
    ({ content }) => content.resolved_by === 'rights',
  )
  assert.is(refused.length, 5)
  assert.match(refused[0]!.content.note, /^tool_not_granted: .*svc__edit/)
  const file = path.join(world.root, 'written')
  const did = await world.prompt(
    at,
    [
      `call fs/read_text_file ${JSON.stringify({ path: path.join(world.root, 'shown') })}`,
      `call fs/write_text_file ${JSON.stringify({ path: file, content: 'x' })}`,
      `call fs/write_text_file ${JSON.stringify({ path: file, content: 'x' })}`,
      `call terminal/create ${JSON.stringify({ command: 'true' })}`,
    ].join('\n'),
  )
  assert.match(agentText(did), /read_text_file: .*yours/)
  assert.match(agentText(did), /write_text_file: error .*without the tool svc__edit/)
  assert.match(agentText(did), /terminal\/create: error .*without the tool svc__execute/)
  const warned = did.filter(({ content }) => content.warning === 'tool_not_granted').map(({ content }) => content.tool)
  assert.equal(warned, ['svc__edit', 'svc__execute'], 'each of them once a turn')
  await world.kernel.request('POST', `${at}/stop`)
})

test('a parent cannot grant rights it lacks, and invalid requests are refused with a reason', async ({
  world,
  ada,
}) => {
  const refused: readonly (readonly [object, number, string])[] = [
    [{ permissions: rights(world, { tools: ['svc__write'] }) }, 403, 'spawn_rights_exceeded'],
    [{ permissions: rights(world, { tools: ['mcp__*'] }) }, 403, 'spawn_rights_exceeded'],
    [{ permissions: rights(world, { tools: ['mcp__github__delete_branch'] }) }, 403, 'spawn_rights_exceeded'],
    [{ permissions: rights(world, { tools: ['mcp__github__*'] }) }, 403, 'spawn_rights_exceeded'],
    [{ permissions: rights(world, { mcp_servers: ['jira'] }) }, 403, 'spawn_rights_exceeded'],
    [{ permissions: rights(world, { skills: ['x'] }) }, 403, 'spawn_rights_exceeded'],
    [{ permissions: rights(world, { network_channels: ['x'] }) }, 403, 'spawn_rights_exceeded'],
    [{ permissions: rights(world, { workspace_paths: ['/'] }) }, 403, 'spawn_rights_exceeded'],
    [{ permissions: rights(world, { workspace_paths: [`${world.root}/../..`] }) }, 403, 'spawn_rights_exceeded'],
    [{ permissions: rights(world, { workspace_paths: ['part'] }) }, 403, 'spawn_rights_exceeded'],
    [{ permissions: rights(world, { workspace_paths: [] }) }, 422, 'spawn_invalid'],
    [{ permissions: rights(world, { sandbox_profiles: ['nothing'] }) }, 422, 'sandbox_profile_not_found'],
    [{ permissions: { tools: [] } }, 422, 'unprocessable'],
    [{ ttl_seconds: 0 }, 422, 'spawn_invalid'],
    [{ ttl_seconds: -1 }, 422, 'spawn_invalid'],
    [{ ttl_seconds: 1e9 }, 422, 'spawn_invalid'],
    [{ spawn_role: 'coordinator' }, 422, 'spawn_invalid'],
    [{ agent_name: 'nobody' }, 422, 'spawn_invalid'],
    [{ provider: 'codex' }, 422, 'spawn_invalid'],
  ]
  for (const [more, status, code] of refused) {
    const reply = await ada.ask('POST', '/api/agent/spawn', wish(world, more))
    assert.equal([reply.status, reply.body.code], [status, code], JSON.stringify(more))
  }
})

test('roles.coordinator.max_children limits the children of a coordinator', async ({ world }) => {
  const set = await world.kernel.request('PATCH', '/api/settings/roles', {
    config: { coordinator: { max_children: 1 } },
  })
  assert.is(set.status, 200, JSON.stringify(set.body))
  const { actor, needs } = look.kernel()
  const wanted = {
    workspaceId: world.workspaceId,
    agentName: 'ada',
    type: 'coordinator',
    sandbox: 'none',
    actor,
  } as const
  const { id } = await needs.sessions.create(wanted)
  const lead = await speaker(world, id, `/api/workspaces/${world.workspaceId}/sessions/${id}`)
  assert.is((await lead.ask('POST', '/api/agent/spawn', wish(world))).status, 201)
  const second = await lead.ask('POST', '/api/agent/spawn', wish(world))
  assert.equal([second.status, second.body.code], [409, 'spawn_children_exceeded'])
  assert.match(second.body.error, /has 1 of at most 1 children/)
  await world.kernel.request('POST', `${lead.at}/stop`)
})

test('a key spawns once; five children are the limit; they stop with their parent', async ({ world }) => {
  const bob = await begin(world, 'ada')
  const spawn = (more: object = {}) => bob.ask('POST', '/api/agent/spawn', wish(world, more))
  const [one, again] = await Promise.all([spawn({ idempotency_key: 'k' }), spawn({ idempotency_key: 'k' })])
  assert.is(one.body.spawn.session.id, again.body.spawn.session.id)
  assert.is((await spawn({ idempotency_key: 'k', name: 'other' })).body.code, 'spawn_key_conflict')
  const more = await Promise.all(Array.from({ length: 6 }, () => spawn()))
  assert.equal(more.map(({ status }) => status).sort(), [201, 201, 201, 201, 409, 409])
  const children = [one, ...more].flatMap(({ body }) => body.spawn?.session.id ?? [])
  await world.kernel.request('POST', `${bob.at}/stop`)
  for (const id of children) {
    await eventually(async () => (await world.row(id)).state === 'stopped', 'the end of a child')
    assert.is((await world.row(id)).stop_detail, 'spawn_parent_stopped')
  }
})

test('a child ends at its time limit, and no prompt restarts it', async ({ world, ada }) => {
  const { body } = await ada.ask('POST', '/api/agent/spawn', wish(world, { ttl_seconds: 1 }))
  const { id } = body.spawn.session
  await eventually(async () => (await world.row(id)).state === 'stopped', 'the end of the child')
  assert.is((await world.row(id)).stop_detail, 'spawn_ttl_expired')
  const at = `/api/workspaces/${world.workspaceId}/sessions/${id}`
  const { status, body: refusal } = await world.kernel.request('POST', `${at}/prompt`, { text: 'say hello' })
  assert.equal([status, refusal.code], [409, 'session_stopped'])
})

test('a child of a sandboxed session has no weaker sandbox', async ({ world }) => {
  const { id, at } = await world.session('ada', { sandbox: 'default' })
  const carl = await speaker(world, id, at)
  const { body } = await carl.ask('POST', '/api/agent/spawn', wish(world))
  assert.is(body.spawn.session.sandbox.profile, 'default')
  const none = wish(world, { permissions: rights(world, { sandbox_profiles: ['none'] }) })
  assert.is((await carl.ask('POST', '/api/agent/spawn', none)).body.code, 'spawn_rights_exceeded')
})

test('a child with an unknown end because of a kill is not restarted', async ({ world }) => {
  const dora = await begin(world, 'ada')
  const { body } = await dora.ask('POST', '/api/agent/spawn', wish(world))
  const database = path.join(world.home, 'svc.db')
  await world.restart({
    meanwhile: () => void execFileSync('sqlite3', [database, 'DELETE FROM self_service_child']),
  })
  const events = await world.prompt(
    `/api/workspaces/${world.workspaceId}/sessions/${body.spawn.session.id}`,
    'say hello',
  )
  assert.is(agentText(events), '')
  assert.match(JSON.stringify(events.find(({ type }) => type === 'error')), /this spawned session has no end time/)
})

test('spawns, their ends and sandboxes are events, and a guard can refuse them', async ({ world }) => {
  const ada = await begin(world, 'ada')
  const points = ['preCreate', 'created', 'parentStopped', 'ttlExpired', 'reaped', 'prepare', 'ready', 'stop']
  await eventually(async () => points.every(name => messages.includes(name)), `all of ${points} instead of ${messages}`)
  denied.add('preCreate')
  const { status, body } = await ada.ask('POST', '/api/agent/spawn', wish(world))
  assert.equal([status, body.code], [403, 'hook_denied'])
  denied.clear()
  denied.add('prepare')
  const { at } = await world.session('eve', { sandbox: 'default' })
  const reply = await world.kernel.request('POST', `${at}/prompt`, { text: 'say x' })
  const shown = async () => JSON.stringify([reply.body, await world.events(at)])
  await eventually(async () => /not today/.test(await shown()), 'the refusal')
  denied.clear()
})

test('the matrix of callers lists every route of an agent', () => {
  const routes = (selfService.surface.routes ?? []).map(({ method, path: at }) => `${method} ${at}`)
  assert.ok(routes.every(line => line.includes('/api/agent/')))
  assert.ok(readFileSync('schemas/openapi.json', 'utf8').includes('/api/agent/spawn'))
})

test.run()
