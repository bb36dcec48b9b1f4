import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, eventually, isAlive, openWorld, type World } from '../../../fixtures/session-world.js'

let world: World

test.before(async () => {
  world = await openWorld({
    config: { limits: { max_concurrent_agents: 4 }, session: { busy_input: { queue_cap: 2 } } },
  })
  await world.agent('plain')
  await world.agent('general')
})
test.after(() => world.close())

const request: World['kernel']['request'] = (method, url, body) => world.kernel.request(method, url, body)
const stop = (at: string) => request('POST', `${at}/stop`)

test('a session is created without a process, runs turns and is stopped', async () => {
  const { id, at } = await world.session('plain', { name: 'first' })
  const made = await world.row(id)
  assert.equal([made.state, made.badge, made.name, made.type], ['active', 'idle', 'first', 'user'])
  const meta = JSON.parse(await readFile(path.join(world.home, 'sessions', id, 'meta.json'), 'utf8'))
  assert.equal([meta.id, meta.agent_name], [id, 'plain'])
  const events = await world.prompt(at, 'say hello\nsay world\npid')
  assert.is(events[0].type, 'user_message')
  assert.match(agentText(events), /^hello\nworld\npid \d+ prompt 1\n$/)
  assert.is(events.at(-1).type, 'done')
  assert.is(events.at(-1).content.stop_reason, 'end_turn')
  assert.equal(
    events.map(event => event.sequence),
    events.map((_, index) => events[0].sequence + index),
  )
  const pid = Number(/pid (\d+)/.exec(agentText(events))![1])
  assert.ok(isAlive(pid))
  assert.match(agentText(await world.prompt(at, 'pid')), new RegExp(`^pid ${pid} prompt 2`), 'the process stays')
  assert.is((await stop(at)).status, 204)
  assert.not(isAlive(pid))
  const stopped = await world.row(id)
  assert.equal([stopped.state, stopped.stop_reason, stopped.badge], ['stopped', 'user_canceled', 'stopped'])
  assert.is((await world.events(at)).at(-1).type, 'session_stopped')
  assert.is((await stop(at)).status, 204, 'stopping is idempotent')
  const late = await request('POST', `${at}/prompt`, { text: 'say late' })
  assert.equal([late.status, late.body.code], [409, 'session_stopped'])
  const resume = await request('POST', `${at}/prompt`, {})
  assert.equal([resume.status, resume.body.code], [409, 'session_stopped'])
})

test('an invalid new session is refused', async () => {
  const before = (await request('GET', '/api/sessions')).body.page.total
  const refused = async (status: number, body: object) => {
    const reply = await request('POST', '/api/sessions', body)
    assert.is(reply.status, status, JSON.stringify(reply.body))
    return reply.body.code
  }
  assert.is(await refused(400, {}), 'workspace_choice')
  assert.is(await refused(400, { workspace: world.workspaceId, workspace_path: world.root }), 'workspace_choice')
  await refused(400, { workspace_path: 'relative/path' })
  await refused(404, { workspace: 'ws_00000000000000ff' })
  await refused(404, { workspace: world.workspaceId, agent_name: 'nobody' })
  await refused(400, { workspace: world.workspaceId, agent_name: 'plain', shell: 'rm' })
  assert.is(
    await refused(400, { workspace: world.workspaceId, agent_name: 'plain', name: 'a\u0000b' }),
    'session_name_invalid',
  )
  assert.is(
    await refused(400, { workspace: world.workspaceId, agent_name: 'plain', provider: 'codex' }),
    'provider_fixed',
  )
  assert.is(
    await refused(400, { workspace: world.workspaceId, agent_name: 'plain', prompt: '  ' }),
    'prompt_text_missing',
  )
  const live = { mode: 'live', channel_strategy: 'named', channel_id: 'a' }
  await refused(503, { workspace: world.workspaceId, agent_name: 'plain', network_participation: live })
  assert.is((await request('GET', '/api/sessions')).body.page.total, before)
})

test('a session is created by workspace path, with the default agent and a first prompt', async () => {
  const made = await request('POST', '/api/sessions', {
    workspace_path: path.join(world.root, '.svc'),
    prompt: 'say hi',
  })
  assert.is(made.status, 201)
  assert.is(made.body.session.agent_name, 'general')
  const at = `/api/workspaces/${world.workspaceId}/sessions/${made.body.session.id}`
  await world.until(at, event => event.type === 'done')
  assert.is(agentText(await world.events(at)), 'hi\n')
  const { name } = await eventually(async () => {
    const row = await world.row(made.body.session.id)
    return row.name !== undefined && row
  }, 'a name')
  assert.is(name, 'say hi', 'named after what it was asked')
  await stop(at)
})

test('a session belongs to one workspace', async () => {
  const { id, at } = await world.session('plain')
  const other = `/api/workspaces/ws_ffffffffffffffff/sessions/${id}`
  for (const [method, rest, body] of [
    ['GET', ''],
    ['GET', '/events'],
    ['GET', '/stream'],
    ['POST', '/stop'],
    ['POST', '/prompt', { text: 'say x' }],
    ['DELETE', ''],
  ] as const) {
    assert.is((await request(method, `${other}${rest}`, body)).status, 404, `${method} ${rest}`)
  }
  assert.is((await request('GET', at)).body.session.id, id)
  const owner = await request('GET', `/api/sessions/${id}/owner`)
  assert.is(owner.body.workspace_id, world.workspaceId)
  assert.is((await request('GET', '/api/sessions/ses_0/owner')).status, 404)
  assert.is((await request('GET', '/api/sessions/ses_0')).status, 404)
})

test('sessions are listed with filters and pages, with a cursor bound to its filter', async () => {
  const ids = []
  for (const name of ['alpha', 'beta', 'gamma 100%']) ids.push((await world.session('plain', { name })).id)
  const list = async (query: string) => (await request('GET', `/api/sessions?${query}`)).body
  assert.equal(
    (await list('q=gamma')).sessions.map((one: { id: string }) => one.id),
    [ids[2]],
  )
  assert.equal((await list('q=0%25')).sessions.length, 1, 'a percent sign is no wildcard')
  const first = await list('agent=plain&limit=2&state=active')
  assert.is(first.sessions.length, 2)
  assert.ok(first.page.has_more)
  const second = await list(`agent=plain&limit=2&state=active&cursor=${first.page.next_cursor}`)
  assert.is(
    second.sessions.some((one: { id: string }) => one.id === first.sessions[0].id),
    false,
  )
  const wrong = await request('GET', `/api/sessions?agent=other&cursor=${first.page.next_cursor}`)
  assert.equal([wrong.status, wrong.body.code], [400, 'session_cursor_invalid'])
  assert.is((await request('GET', '/api/sessions?cursor=rubbish')).status, 400)
  assert.is((await list('resumable=true')).sessions.length, 0)
  assert.is((await request('GET', '/api/sessions?workspace=nowhere')).status, 404)
})

test('a session is renamed and deleted, with status and health', async () => {
  const { id, at } = await world.session('plain')
  const renamed = await request('PATCH', at, { name: ' Better ' })
  assert.is(renamed.body.session.name, 'Better')
  assert.is(renamed.body.session.runtime.status, 'unbound')
  assert.is((await request('PATCH', at, { name: '' })).status, 400)
  assert.is((await request('PATCH', at, {})).status, 400)
  await world.prompt(at, 'say x')
  assert.is((await request('PATCH', at, { name: 'Best' })).body.session.runtime.status, 'running')
  const status = (await request('GET', `${at}/status`)).body
  assert.equal([status.state, status.health, status.eligible_for_wake], ['idle', 'healthy', true])
  assert.is((await request('GET', `${at}/health`)).body.health.active_prompt, false)
  assert.is((await request('DELETE', at)).status, 204)
  assert.is((await request('GET', at)).status, 404)
  assert.not(existsSync(path.join(world.home, 'sessions', id)))
})

test('prompts during a turn are queued up to the limit', async () => {
  const { at } = await world.session('plain')
  const send = (text: string, more = {}) => request('POST', `${at}/prompt`, { text, ...more })
  const gate = world.gate()
  const first = await send(`say 1\n${gate.line}`)
  assert.equal([first.status, first.body.prompt.status], [200, 'started'])
  const second = await send('say 2')
  assert.equal([second.status, second.body.prompt.status, second.body.prompt.queue_position], [202, 'queued', 1])
  assert.match(second.body.prompt.queue_entry_id, /^prq_/)
  const third = await send('say 3', { mode: 'steer' })
  assert.equal([third.status, third.body.prompt.queue_position], [202, 2])
  assert.is(third.body.prompt.fallback_mode_if_no_tool_result, 'queue')
  const full = await send('say 4')
  assert.equal([full.status, full.body.code], [409, 'queue_full'])
  await gate.open()
  await world.until(at, event => event.turn_id === third.body.prompt.new_turn_id && event.type === 'done')
  const events = await world.events(at)
  assert.is(agentText(events), '1\n2\n3\n')
  assert.equal(
    events.filter(event => event.type === 'user_message').map(event => event.turn_id),
    [first, second, third].map(reply => reply.body.prompt.new_turn_id),
  )
  await stop(at)
})

test('a prompt sent at the visible end of a turn starts at once', async () => {
  const { at } = await world.session('plain')
  let queued = 0
  for (let turn = 1; turn <= 20; turn++) {
    const sent = await request('POST', `${at}/prompt`, { text: `say ${turn}` })
    const { queued: waits, new_turn_id: id } = sent.body.prompt
    if (waits) queued++
    for (let seen = false; !seen; ) {
      await new Promise(setImmediate)
      const events = await world.events(at, '?limit=3')
      seen = events.some(event => event.turn_id === id && event.type === 'done')
    }
  }
  // A disk may stand still now and then for longer than anybody waits for it.
  assert.ok(queued < 3, `${queued} of 20 queued`)
  await stop(at)
})

test('of concurrent prompts one starts and the other waits', async () => {
  const { at } = await world.session('plain')
  const replies = await Promise.all(['say 1', 'say 2'].map(text => request('POST', `${at}/prompt`, { text })))
  assert.equal(replies.map(reply => reply.status).sort(), [200, 202])
  await eventually(
    async () => (await world.events(at)).filter(event => event.type === 'done').length === 2,
    'both turns',
  )
  assert.is(agentText(await world.events(at)), '1\n2\n')
  await stop(at)
})

test('interrupt cancels the turn, drops the queue and runs', async () => {
  const { at } = await world.session('plain')
  await request('POST', `${at}/prompt`, { text: 'say 1\nhang' })
  await world.until(at, event => event.type === 'agent_message')
  const stale = await request('POST', `${at}/prompt`, { text: 'say stale' })
  const reply = await request('POST', `${at}/prompt`, { text: 'say now', mode: 'interrupt' })
  const { prompt } = reply.body
  assert.equal([prompt.interrupted, prompt.canceled_queued_entries], [true, 1])
  assert.ok(prompt.queue_generation > stale.body.prompt.queue_generation)
  await world.until(at, event => event.turn_id === prompt.new_turn_id && event.type === 'done')
  assert.is(agentText(await world.events(at)), '1\nnow\n')
  await stop(at)
})

test('a repeated key replays its result', async () => {
  const { at } = await world.session('plain')
  const send = (body: object) => request('POST', `${at}/prompt`, body)
  const once = { text: 'say once', idempotency_key: 'k1', message_id: 'm1' }
  const first = await send(once)
  assert.is(first.status, 200)
  await world.until(at, event => event.type === 'done')
  const again = await send(once)
  assert.equal([again.status, again.body.prompt.replayed], [202, true])
  assert.is(again.body.prompt.new_turn_id, first.body.prompt.new_turn_id)
  const conflict = async (body: object) => {
    const reply = await send(body)
    assert.equal([reply.status, reply.body.code], [409, 'prompt_idempotency_conflict'])
  }
  await conflict({ ...once, text: 'say other' })
  await conflict({ ...once, message_id: 'm2' })
  await conflict({ ...once, idempotency_key: 'k2' })
  await conflict({ text: 'say once', message_id: 'm1' })
  assert.is(agentText(await world.events(at)), 'once\n')
  for (const body of [{ text: '' }, { messages: [] }, { messages: [{ role: 'user', content: ' ' }] }, {}]) {
    const reply = await send(body)
    assert.equal([reply.status, reply.body.code], [400, 'prompt_text_missing'])
  }
  const chat = {
    messages: [
      { role: 'system', content: 'x' },
      { role: 'user', parts: [{ type: 'text', text: 'say parts' }] },
    ],
  }
  const { prompt } = (await send(chat)).body
  await world.until(at, event => event.turn_id === prompt.new_turn_id && event.type === 'done')
  assert.match(agentText(await world.events(at)), /parts/)
  await stop(at)
})

test('the limit counts sessions with a process', async () => {
  const made = []
  for (let i = 0; i < 5; i++) made.push(await world.session('plain'))
  // A process of an idle session would give way.
  for (const { at } of made.slice(0, 4)) {
    await request('POST', `${at}/prompt`, { text: 'say up\nhang' })
    await world.until(at, event => event.content?.text === 'up\n')
  }
  const refused = await request('POST', `${made[4]!.at}/prompt`, { text: 'say more' })
  assert.equal([refused.status, refused.body.code], [409, 'session_limit'])
  const create = await request('POST', '/api/sessions', { workspace: world.workspaceId, agent_name: 'plain' })
  assert.equal([create.status, create.body.code], [409, 'session_limit'])
  const { health, daemon, sessions, subprocess_health: processes } = (await request('GET', '/api/status')).body
  assert.equal([health.active_agents, processes.monitored], [4, 4])
  assert.is(daemon.total_sessions, sessions.total)
  await stop(made[0]!.at)
  assert.is(agentText(await world.prompt(made[4]!.at, 'say more')), 'more\n')
  for (const { at } of made) await stop(at)
})

test('a draining daemon starts nothing new, and stops work', async () => {
  const { at } = await world.session('plain')
  await request('POST', '/api/drain')
  assert.is((await request('POST', '/api/sessions', { workspace: world.workspaceId, agent_name: 'plain' })).status, 503)
  assert.is((await request('POST', `${at}/prompt`, { text: 'say x' })).status, 503)
  assert.is((await stop(at)).status, 204)
  await request('POST', '/api/undrain')
})

test('event queries filter by type, turn, sequence, time and limit', async () => {
  const { at } = await world.session('plain')
  const first = await world.prompt(at, 'say a\nthink b\nsay c')
  const second = await world.prompt(at, 'say d')
  const types = async (query: string) => (await world.events(at, query)).map(event => event.type)
  assert.equal(await types('?type=thought'), ['thought'])
  assert.equal(await types('?limit=2'), ['agent_message', 'done'])
  assert.equal(await types(`?after_sequence=${first.at(-1).sequence}`), ['user_message', 'agent_message', 'done'])
  assert.equal(await types(`?turn_id=${second[0].turn_id}&type=done`), ['done'])
  assert.equal(await types(`?since=${second[0].timestamp}`), ['user_message', 'agent_message', 'done'])
  assert.equal(await types('?agent_name=nobody'), [])
  assert.is((await request('GET', `${at}/events?since=yesterday`)).status, 400)
  assert.is((await request('GET', `${at}/events?limit=-1`)).status, 400)
  const { history } = (await request('GET', `${at}/history`)).body
  assert.equal(
    history.map((turn: { turn_id: string; events: unknown[] }) => [turn.turn_id, turn.events.length]),
    [
      [first[0].turn_id, 5],
      [second[0].turn_id, 3],
    ],
  )
  const transcript = (await request('GET', `${at}/transcript?limit=1`)).body
  assert.equal(
    transcript.entries.map((entry: { message: { role: string } }) => entry.message.role),
    ['assistant'],
  )
  assert.ok(transcript.has_older)
  const older = (await request('GET', `${at}/transcript?before_sequence=${transcript.next_before_sequence}`)).body
  assert.equal(
    older.entries.map((entry: { message: { role: string; parts: { type: string; text: string }[] } }) => [
      entry.message.role,
      ...entry.message.parts.map(part => `${part.type} ${part.text}`),
    ]),
    [
      ['user', 'text say a\nthink b\nsay c'],
      ['assistant', 'text a\n', 'reasoning b', 'text c\n'],
      ['user', 'text say d'],
    ],
  )
  await stop(at)
})

test('a workspace with an active session stays; stopped ones lose their history with it', async () => {
  const folder = path.join(world.root, 'sub')
  const { mkdir } = await import('node:fs/promises')
  await mkdir(folder)
  const added = await request('POST', '/api/workspaces', { root_dir: folder, add_dirs: [world.root] })
  const workspace = added.body.workspace.id
  const made = await request('POST', '/api/sessions', { workspace, agent_name: 'plain' })
  const { id } = made.body.session
  const refused = await request('DELETE', `/api/workspaces/${workspace}`)
  assert.equal([refused.status, refused.body.code], [409, 'workspace_in_use'])
  const detail = (await request('GET', `/api/workspaces/${workspace}`)).body
  assert.equal(
    detail.sessions.map((one: { id: string }) => one.id),
    [id],
  )
  await stop(`/api/workspaces/${workspace}/sessions/${id}`)
  assert.is((await request('DELETE', `/api/workspaces/${workspace}`)).status, 204)
  await eventually(async () => (await request('GET', `/api/sessions/${id}`)).status === 404, 'the session to go')
  assert.not(existsSync(path.join(world.home, 'sessions', id)))
})

test.run()
