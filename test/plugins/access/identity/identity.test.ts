// timeout: 120s
import { existsSync, readFileSync, statSync } from 'node:fs'
import { mkdtemp, realpath, rm, stat } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../../../kernel/plugin.js'
import { makeFolder } from '../../../../plugins/access/identity/folder.js'
import { isOwn } from '../../../../plugins/access/identity/own.js'
import { audit, auth, identity, inTree } from '../../../../plugins/index.js'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { ask } from '../../../kernel/http/doors.js'
import { bearer, tokenOf } from '../auth/scene.js'

interface Agent {
  readonly id: string
  readonly at: string
  readonly env: Readonly<Record<string, string>>
  readonly socket: { readonly socketPath: string }
}

const test = suite<{ world: World; ada: Agent; bob: Agent; tcp: object; operator: object }>('identity')

/** A session whose process runs, and the environment of that process. */
async function begin(world: World, name: string): Promise<Agent> {
  const { id, at } = await world.session(name)
  const pid = Number(/\d+/.exec(agentText(await world.prompt(at, 'pid')))?.[0])
  const pairs = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
  const env = Object.fromEntries(pairs.map(pair => pair.split(/=(.*)/s)))
  return { id, at, env, socket: { socketPath: env.SVC_SOCKET ?? '' } }
}

/** Milliseconds that the clock of the daemon is ahead. */
let aheadMs = 0

test.before(async context => {
  const world = await openWorld({
    config: { http: { port: 0 } },
    clock: { ...systemClock(), now: () => Date.now() + aheadMs },
    plugins: [auth, identity, audit],
    listen: ['socket', 'tcp'],
  })
  await world.agent('ada')
  await world.agent('bob')
  const listener = world.kernel.kernel.host.listeners().find(({ door }) => door === 'tcp')
  Object.assign(context, {
    world,
    ada: await begin(world, 'ada'),
    bob: await begin(world, 'bob'),
    tcp: { host: '127.0.0.1', port: listener?.door === 'tcp' ? listener.port : 0 },
    operator: { socketPath: path.join(world.home, 'daemon.sock') },
  })
})
test.after(({ world }) => world.close())

const answer = async (where: object, url: string, more: Parameters<typeof ask>[2] = {}) => {
  const { status, body } = await ask(where, url, more)
  return status < 300 ? `${status}` : `${status} ${body.code}`
}
const named = (session: string, agent: string) => ({ 'x-service-session-id': session, 'x-service-agent': agent })

test('a process has a socket and a token of its session, which the daemon shows in no reply', async ({
  world,
  ada,
  bob,
}) => {
  assert.match(ada.env.SVC_SESSION_TOKEN ?? '', /^svc_ses_[0-9a-f]{16}_[0-9a-f]{64}$/)
  assert.is.not(ada.env.SVC_SESSION_TOKEN, bob.env.SVC_SESSION_TOKEN)
  const socket = ada.socket.socketPath
  assert.ok(Buffer.byteLength(socket) <= 107)
  assert.is(statSync(socket).mode & 0o777, 0o600)
  assert.is(statSync(path.dirname(socket)).mode & 0o777, 0o700)
  assert.match(agentText(await world.prompt(ada.at, 'env SVC_SESSION_TOKEN')), '[redacted:session-token]')
})

test('an agent reads only its own session and workspace over its socket', async ({ world, ada, bob }) => {
  const { socket } = ada
  const own = [`/api/sessions/${ada.id}`, `/api/sessions/${ada.id}/owner`, `${ada.at}/events`, `${ada.at}/transcript`]
  for (const url of [...own, `/api/workspaces/${world.workspaceId}`, '/api/status/identity'])
    assert.is(await answer(socket, url), '200', url)
  const others = [`/api/sessions/${bob.id}`, `${bob.at}/events`, '/api/workspaces/ws_0000000000000000']
  for (const url of [
    ...others,
    '/api/sessions',
    '/api/workspaces',
    '/api/agents',
    '/api/resources/agent',
    '/api/auth/matrix',
  ])
    assert.is(await answer(socket, url), '403 identity_unauthorized', url)
  const escaped = `/api/sessions/%73${bob.id.slice(1)}`
  assert.is(await answer(socket, escaped), '403 identity_unauthorized')
})

test('an agent changes nothing and cannot answer its own questions', async ({ world, ada }) => {
  const running = world.kernel.kernel.host.plugins().map(({ name }) => name)
  for (const plugin of inTree.filter(({ name }) => running.includes(name))) {
    for (const { method, path: template, public: isPublic, origins } of plugin.surface.routes ?? []) {
      // What is made for agents judges them itself.
      if (method === 'GET' || isPublic || origins?.includes('agent_session')) continue
      const url = template.replace('{session_id}', ada.id).replace(/\{\w+\}/g, 'nothing')
      const status = await answer(ada.socket, url, { method })
      assert.ok(status === '403 identity_unauthorized', `${method} ${url}: ${status}`)
    }
  }
  const approve = { method: 'POST', body: { request_id: 'x', decision: 'allow-once' } }
  assert.is(await answer(ada.socket, `${ada.at}/approve`, approve), '403 identity_unauthorized')
})

test('the token of a session has over TCP the rights of its socket', async ({ tcp, ada, bob }) => {
  const headers = bearer(ada.env.SVC_SESSION_TOKEN ?? '')
  assert.is(await answer(tcp, `/api/sessions/${ada.id}`, { headers }), '200')
  assert.is(await answer(tcp, `/api/sessions/${bob.id}`, { headers }), '403 identity_unauthorized')
  assert.is(await answer(tcp, '/api/sessions', { headers }), '403 identity_unauthorized')
  const wrong = bearer(`svc_${ada.id}_${'0'.repeat(64)}`)
  assert.is(await answer(tcp, `/api/sessions/${ada.id}`, { headers: wrong }), '401 identity_stale')
  assert.is(await answer(tcp, '/api/v0/auth/generate', { method: 'POST', headers }), '403 identity_unauthorized')
})

test('headers on the socket of an agent must be its own', async ({ ada, bob }) => {
  const url = `/api/sessions/${ada.id}`
  assert.is(await answer(ada.socket, url, { headers: named(ada.id, 'ada') }), '200')
  assert.is(await answer(ada.socket, url, { headers: named(bob.id, 'bob') }), '401 identity_mismatch')
  assert.is(await answer(ada.socket, url, { headers: named(ada.id, 'bob') }), '401 identity_mismatch')
  assert.is(await answer(ada.socket, url, { headers: { 'x-service-agent': 'ada' } }), '401 identity_required')
})

test('headers alone prove nothing on an operator transport', async ({ world, operator, tcp, ada }) => {
  const url = `/api/sessions/${ada.id}`
  const known = bearer(await tokenOf(world.home))
  assert.is(await answer(operator, url, { headers: named(ada.id, 'ada') }), '401 identity_required')
  assert.is(await answer(operator, url, { headers: { ...named(ada.id, 'ada'), ...known } }), '200')
  assert.is(await answer(tcp, url, { headers: { ...named(ada.id, 'ada'), ...known } }), '200')
  assert.is(await answer(operator, url, { headers: { ...named(ada.id, 'bob'), ...known } }), '401 identity_mismatch')
  const gone = named('ses_0000000000000000', 'ada')
  assert.is(await answer(operator, url, { headers: { ...gone, ...known } }), '401 identity_stale')
  const half = { 'x-service-session-id': ada.id }
  assert.is(await answer(operator, url, { headers: { ...half, ...known } }), '401 identity_required')
})

test('a change by the operator for an agent is recorded as such, with the original request', async ({
  world,
  operator,
  ada,
}) => {
  const headers = { ...named(ada.id, 'ada'), ...bearer(await tokenOf(world.home)) }
  const url = '/api/workspaces/resolve'
  const body = { path: await temporaryFolder('elsewhere') }
  assert.is(await answer(operator, url, { method: 'POST', headers, body }), '200')
  const entries = (await world.kernel.request('GET', '/api/audit')).body.entries as Record<string, unknown>[]
  const created = entries.find(({ action }) => action === 'workspace.created')
  const acting = entries.find(({ action }) => action === 'identity.acting_for')
  assert.equal([acting?.subject, acting?.request], [ada.id, `POST ${url}`])
  assert.is(acting?.cause, created?.cause)
  const session = `agent_session/${ada.id}`
  assert.equal([acting?.on_behalf_of, created?.on_behalf_of], [session, session])
  const { chain } = (await world.kernel.request('GET', `/api/audit/why?id=${created?.event}`)).body
  const steps = chain.map(({ what, on_behalf_of }: Record<string, string>) => [what, on_behalf_of])
  assert.equal(steps, [
    ['workspace.created', session],
    [`POST ${url}`, session],
  ])
  const { body: plain } = await world.kernel.request('POST', '/api/workspaces/resolve', {
    path: path.dirname(world.home),
  })
  const { entries: after } = (await world.kernel.request('GET', `/api/audit?subject=${plain.workspace.id}`)).body
  assert.is(after[0]?.on_behalf_of, undefined, 'who acts alone acts for nobody')
})

test('over a route that is not audited and runs no code, an event a minute stands for the requests of a caller for a session', async ({
  world,
  operator,
  tcp,
  ada,
  bob,
}) => {
  const known = bearer(await tokenOf(world.home))
  const recorded = async () => {
    const { body } = await world.kernel.request('GET', '/api/audit?action=identity.acting_for&limit=100')
    return (body.entries as Record<string, string>[])
      .filter(({ request }) => request?.includes('/prompt/queue/'))
      .map(({ subject, origin, request }) => [subject, origin, request?.split(' ')[0]])
      .reverse()
  }
  const remove = (where: object, { id, at }: Agent, agent: string) =>
    ask(where, `${at}/prompt/queue/none`, { method: 'DELETE', headers: { ...named(id, agent), ...known } })
  assert.is((await remove(operator, ada, 'ada')).status, 404)
  await remove(operator, ada, 'ada')
  const all = [[ada.id, 'uds', 'DELETE']]
  assert.equal(await recorded(), all)
  await remove(operator, bob, 'bob')
  await remove(tcp, ada, 'ada')
  all.push([bob.id, 'uds', 'DELETE'], [ada.id, 'http', 'DELETE'])
  assert.equal(await recorded(), all, 'another session, and another door')
  aheadMs += 59_000
  await remove(operator, ada, 'ada')
  assert.equal(await recorded(), all)
  aheadMs += 2000
  await remove(operator, ada, 'ada')
  all.push([ada.id, 'uds', 'DELETE'])
  assert.equal(await recorded(), all)
  aheadMs = 0
  await remove(operator, ada, 'ada')
  all.push([ada.id, 'uds', 'DELETE'])
  assert.equal(await recorded(), all, 'a clock that was set back')
  const url = '/api/workspaces/resolve'
  const before = (await world.kernel.request('GET', '/api/audit?action=identity.acting_for&limit=100')).body.entries
  for (const _ of [1, 2])
    await ask(operator, url, {
      method: 'POST',
      headers: { ...named(ada.id, 'ada'), ...known },
      body: { path: world.root },
    })
  const after = (await world.kernel.request('GET', '/api/audit?action=identity.acting_for&limit=100')).body.entries
  assert.is(after.length, before.length + 2, 'on other routes every request has its entry')
})

test('socket and token end with the session, and with the work open on them', async ({ world, tcp }) => {
  await world.agent('carl')
  const carl = await begin(world, 'carl')
  const headers = bearer(carl.env.SVC_SESSION_TOKEN ?? '')
  assert.is(await answer(tcp, `/api/sessions/${carl.id}`, { headers }), '200')
  await world.kernel.request('POST', `${carl.at}/stop`)
  await eventually(async () => !existsSync(carl.socket.socketPath), 'the end of the socket')
  assert.is(await answer(tcp, `/api/sessions/${carl.id}`, { headers }), '401 identity_stale')
})

test('sockets are in the home, or below the runtime directory if its path is too long', async () => {
  const home = await temporaryFolder('run')
  const near = await makeFolder(path.join(home, 'run'), '/nonexistent')
  assert.is(near.path, path.join(home, 'run'))
  const runtime = await realpath(await mkdtemp(path.join(os.tmpdir(), 'r')))
  const far = await makeFolder(path.join(home, 'x'.repeat(90)), runtime)
  assert.is(path.dirname(far.path), runtime)
  assert.is((await stat(far.path)).mode & 0o777, 0o700)
  await near.remove()
  await far.remove()
  await rm(home, { recursive: true })
  await rm(runtime, { recursive: true })
})

test('a path belongs to an agent when every parameter names its session or workspace', () => {
  const own = { session: 'ses_1', workspace: 'ws_1' }
  const one = '/api/workspaces/{workspace_id}/sessions/{session_id}'
  assert.ok(isOwn(one, '/api/workspaces/ws_1/sessions/ses_1?x=1', own))
  assert.not(isOwn(one, '/api/workspaces/ws_2/sessions/ses_1', own))
  assert.not(isOwn(one, '/api/workspaces/ws_1/sessions/ses_2', own))
  assert.not(isOwn('/api/agents/{name}', '/api/agents/ses_1', own))
  assert.ok(isOwn('/api/workspaces/{id}', '/api/workspaces/ws_1', own))
})

test.run()
