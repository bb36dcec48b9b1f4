// timeout: 120s
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agents, audit, mcp, providers, sessions, vault, workspaces } from '../../../../plugins/index.js'
import { AGENT, eventually } from '../../../fixtures/session-world.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'
import { type Made, type Scene, scene } from './scene.js'

const METHODS = [
  ...['sessions/create', 'sessions/prompt', 'sessions/cancel', 'sessions/steer', 'sessions/inbox', 'sessions/events'],
  ...['sessions/subscribe', 'sessions/unsubscribe', 'sessions/permissions/list', 'sessions/permissions/answer'],
  ...['state/get', 'state/put', 'state/delete', 'state/list', 'secrets/get'],
]

const option = (optionId: string, kind: string) => ({ optionId, name: optionId, kind })
const ASK = `ask ${JSON.stringify({
  toolCall: { toolCallId: 'c', title: 'rm', kind: 'delete' },
  options: [option('yes', 'allow_once'), option('no', 'reject_once')],
})}`

let world: Scene
let made: Made
let root = ''
let workspace_id = ''

test.before(async () => {
  world = await scene({ plugins: [workspaces, vault, providers, agents, sessions, mcp, audit] })
  root = await realpath(await temporaryFolder('extension-root'))
  for (const [name, mode] of [
    ['ada', 'approve-all'],
    ['eve', 'approve-reads'],
  ]) {
    const folder = path.join(root, `.svc/agents/${name}`)
    mkdirSync(folder, { recursive: true })
    const head = `name: ${name}\npermissions: ${mode}\ncommand: '${process.execPath} ${AGENT}'`
    writeFileSync(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nDo.\n`)
  }
  workspace_id = (await request('POST', '/api/workspaces/resolve', { path: root })).workspace.id
  made = await world.make({
    permissions: METHODS,
    subprocess: { secret_env: { TOKEN: 'vault:extensions/probe/token' } },
  })
  await request('PUT', '/api/vault/secrets', { ref: 'vault:extensions/probe/token', secret_value: 'first-secret' })
  await made.runtime.start()
})
test.after(async () => {
  await world.close()
  await rm(root, { recursive: true, force: true })
})

async function request(method: string, url: string, body?: unknown): Promise<Reply> {
  const reply = await world.host.request(method as 'GET', url, body)
  if (reply.status >= 300) throw new Error(`${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body
}

/** Calls the host API, after a pause where it is called too often. */
async function ask(method: string, params: object = {}): Promise<Reply> {
  for (;;) {
    const answer = await made.ask(method, params)
    if (answer.error?.data?.code !== 'rate_limited') return answer
    await new Promise(resolve => setTimeout(resolve, answer.error.data.retry_after_ms))
  }
}
async function done(method: string, params: object = {}): Promise<Reply> {
  const { result, error } = await ask(method, params)
  assert.is(error, undefined, JSON.stringify(error))
  return result
}
const code = async (method: string, params: object = {}) => (await ask(method, params)).error?.data?.code

async function session(agent_name = 'ada'): Promise<{ workspace_id: string; session_id: string }> {
  const { session } = await done('sessions/create', { workspace: workspace_id, agent_name })
  return { workspace_id, session_id: session.id }
}
const notified = async (subscription_id: string): Promise<Reply[]> =>
  (await made.tell('notified'))
    .map(({ params }: Reply) => params)
    .filter((one: Reply) => one.subscription_id === subscription_id)
async function until(subscription_id: string, wanted: (all: Reply[]) => boolean): Promise<Reply[]> {
  let all: Reply[] = []
  await eventually(async () => {
    all = await notified(subscription_id)
    return wanted(all)
  }, 'the notifications')
  return all
}

test('session events are notifications: all, after a sequence, or by type, until the session ends', async () => {
  const at = await session()
  const { subscription_id, last_sequence } = await done('sessions/subscribe', at)
  await done('sessions/prompt', { ...at, text: 'say hello', on_behalf_of: { id: 'U1', name: 'Ada L.', via: 'irc' } })
  const isDone = (all: Reply[]) => all.some(({ event }) => event?.type === 'done')
  const all = await until(subscription_id, isDone)
  const { events } = await request('GET', `/api/workspaces/${workspace_id}/sessions/${at.session_id}/events?limit=1000`)
  assert.equal(
    all.map(({ event }) => event),
    events.filter(({ sequence }: Reply) => sequence > last_sequence),
  )
  // The person stands in the journal, in the event log and in the audit.
  const person = { id: 'U1', name: 'Ada L.', via: 'irc' }
  const [prompt] = events.filter(({ type }: Reply) => type === 'user_message')
  assert.equal(prompt.content.on_behalf_of, person)
  const { entries } = await request('GET', '/api/audit?limit=50')
  const entry = entries.find(({ action }: Reply) => action === 'session.prompted_for')
  assert.ok(entry, JSON.stringify(entries.map(({ action }: Reply) => action)))

  const replayed = await done('sessions/subscribe', { ...at, after_sequence: 0, types: ['user_message', 'done'] })
  const some = await until(replayed.subscription_id, isDone)
  assert.equal(
    some.map(({ event }) => event.type),
    ['user_message', 'done'],
  )
  await done('sessions/unsubscribe', { subscription_id: replayed.subscription_id })
  await request('POST', `/api/workspaces/${workspace_id}/sessions/${at.session_id}/stop`)
  const over = await until(subscription_id, found => found.some(({ ended }) => ended))
  assert.equal(over.at(-1).ended, { reason: 'stopped' })
  assert.is(over.at(-2).event.type, 'session_stopped')
  assert.is((await notified(replayed.subscription_id)).length, 2)

  assert.is(await code('sessions/subscribe', { ...at, session_id: 'ses_0000000000000000' }), 'session_not_found')
  assert.is(await code('sessions/subscribe', { ...at, types: [] }), 'invalid_params')
})

test('a slow process is waited for, then gets a gap notice, and continues', async () => {
  const at = await session()
  const { subscription_id } = await done('sessions/subscribe', at)
  const file = path.join(root, 'go')
  await made.tell('read-nothing-until', { file })
  // Tool calls are events of their own, unlike pieces of a text.
  const filler = 'x'.repeat(100)
  const lines = Array.from(
    { length: 1500 },
    (_, n) =>
      `update ${JSON.stringify({ sessionUpdate: 'tool_call', toolCallId: `c${n}`, title: filler, status: 'completed', kind: 'read' })}`,
  )
  await request('POST', `/api/workspaces/${workspace_id}/sessions/${at.session_id}/prompt`, { text: lines.join('\n') })
  await eventually(async () => {
    const { events } = await request(
      'GET',
      `/api/workspaces/${workspace_id}/sessions/${at.session_id}/events?limit=1&type=done`,
    )
    return events.length > 0
  }, 'the end of the turn')
  writeFileSync(file, '')
  const all = await until(subscription_id, found => found.some(({ event }) => event?.type === 'done'))
  const gaps = all.flatMap(({ gap }) => gap ?? [])
  assert.is(gaps.length, 1)
  const sequences = all.flatMap(({ event }) => event?.sequence ?? [])
  assert.ok(!sequences.some(one => one >= gaps[0].from_sequence && one <= gaps[0].to_sequence))
  assert.ok(sequences.includes(gaps[0].from_sequence - 1) && sequences.includes(gaps[0].to_sequence + 1))
  assert.ok(sequences.length < 1500, String(sequences.length))
  // It is the same process, and it is well.
  assert.is(made.runtime.health().consecutiveFailures, 0)
})

test('permission questions are listed and answered; a turn is canceled', async () => {
  const at = await session('eve')
  await done('sessions/prompt', { ...at, text: ASK })
  const pending = async () => (await done('sessions/permissions/list', { ...at, status: 'pending' })).interactions
  await eventually(async () => (await pending()).length > 0, 'the question')
  const [question] = await pending()
  assert.ok((await done('sessions/inbox')).items.some(({ session_id }: Reply) => session_id === at.session_id))
  const answer = { request_id: question.interaction_id, turn_id: question.turn_id, decision: 'reject-once' }
  assert.is((await done('sessions/permissions/answer', { ...at, ...answer })).status, 'rejected')
  assert.is((await pending()).length, 0)

  const other = await session()
  await done('sessions/prompt', { ...other, text: 'say here\nhang' })
  await eventually(async () => {
    const { events } = await done('sessions/events', { ...other, type: 'agent_message' })
    return events.length > 0
  }, 'the words of the agent')
  assert.is((await done('sessions/cancel', other)).outcome, 'canceled')
  assert.is(await code('sessions/steer', { ...other, text: 'x' }), 'no_active_prompt')
})

test('a file is attached to a prompt as bytes, and deleted with a refused prompt', async () => {
  const at = await session()
  const data = Buffer.from('count to three').toString('base64')
  const file = { name: 'to "do".txt', mime_type: 'text/plain', data }
  const { prompt } = await done('sessions/prompt', { ...at, text: 'texts', attachments: [file] })
  await eventually(async () => {
    const { events } = await done('sessions/events', { ...at, turn_id: prompt.new_turn_id, type: 'done' })
    return events.length > 0
  }, 'the end of the turn')
  const { events } = await done('sessions/events', { ...at, turn_id: prompt.new_turn_id })
  assert.match(JSON.stringify(events), /count to three/)
  const [asked] = events.filter(({ type }: Reply) => type === 'user_message')
  assert.is(asked.content.attachments[0].bytes, 14)

  const { count: before } = countFiles(at.session_id)
  const refused = { ...at, text: 'hello', runtime: { model: 'no-such' }, attachments: [file, 'att_none'] }
  assert.ok(await code('sessions/prompt', refused))
  assert.is(countFiles(at.session_id).count, before)
  const bad = { ...at, text: 'hello', attachments: [{ ...file, data: 'not base64!' }] }
  assert.is(await code('sessions/prompt', bad), 'invalid_params')
})

function countFiles(session: string): { count: number } {
  const row = world.kernel.db.get<{ count: number }>(
    'SELECT count(*) AS count FROM sessions_attachment WHERE session_id = ?',
    [session],
  )
  return row ?? { count: 0 }
}

test('values are stored under keys within limits, invisible to other extensions', async () => {
  await done('state/put', { key: 'cursor', value: { at: 7 } })
  await done('state/put', { key: 'room/1', value: 'a' })
  await done('state/put', { key: 'room/2', value: null })
  assert.equal(await done('state/get', { key: 'cursor' }), { key: 'cursor', found: true, value: { at: 7 } })
  assert.equal(await done('state/get', { key: 'none' }), { key: 'none', found: false, value: null })
  const rooms = await done('state/list', { prefix: 'room/', limit: 1 })
  assert.equal([rooms.entries.map(({ key }: Reply) => key), rooms.has_more], [['room/1'], true])
  assert.equal(
    (await done('state/list', { prefix: 'room/', after: 'room/1' })).entries.map(({ key }: Reply) => key),
    ['room/2'],
  )
  assert.equal(await done('state/delete', { key: 'room/1' }), { deleted: true })
  assert.equal(await done('state/delete', { key: 'room/1' }), { deleted: false })
  assert.is(await code('state/put', { key: 'big', value: 'x'.repeat(64 * 1024) }), 'extension_state_too_large')
  assert.is(await code('state/put', { key: '', value: 1 }), 'invalid_params')
  assert.is(await code('state/put', { key: 'k' }), 'invalid_params')
  // All values together: 16 MiB.
  await world.kernel.db.tx(t =>
    t.run('INSERT INTO extensions_state (extension, key, value, bytes, updated_at) VALUES (?, ?, ?, ?, 0)', [
      ...['probe', 'much', '0'],
      16 * 1024 * 1024 - 1000,
    ]),
  )
  assert.is(await code('state/put', { key: 'one more', value: 'x'.repeat(2000) }), 'extension_state_too_large')
  assert.equal(await done('state/get', { key: 'one more' }), { key: 'one more', found: false, value: null })

  const other = await world.make({ name: 'other', permissions: ['state/get'] })
  await other.runtime.start()
  assert.is((await other.ask('state/get', { key: 'cursor' })).result.found, false)
  await other.runtime.stop({ deadlineMs: 0 })
})

test('a secret is reread; the file folder belongs to the extension', async () => {
  const secret = async (name: string) => done('secrets/get', { name })
  assert.equal(await secret('TOKEN'), { name: 'TOKEN', value: 'first-secret' })
  await request('PUT', '/api/vault/secrets', { ref: 'vault:extensions/probe/token', secret_value: 'second-secret' })
  assert.equal(await secret('TOKEN'), { name: 'TOKEN', value: 'second-secret' })
  assert.is(await code('secrets/get', { name: 'PATH' }), 'extension_launch_invalid')
  await made.tell('say', { text: 'second-secret is new\n' })
  await eventually(async () => made.said().includes('is new'), 'the line')
  assert.not.match(made.said(), /second-secret/)

  const { runtime } = await made.tell('greeting')
  assert.is(runtime.data_dir, path.join(world.host.home, 'extension-data', 'probe'))
  assert.ok(existsSync(runtime.data_dir))
  assert.is(statSync(runtime.data_dir).mode & 0o777, 0o700)
})

test.run()
