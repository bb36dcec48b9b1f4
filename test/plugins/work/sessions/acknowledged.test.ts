// proof, timeout: 180s: kills daemons that have answered prompts
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed, processesWith, until } from '../../../e2e/installed.js'
import { killedDaemon } from '../../../fixtures/session-daemon.js'
import { openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

const AGENT = fileURLToPath(new URL('../../../fixtures/acp-agent.mjs', import.meta.url))
const PATIENCE_MS = 30_000

const at = new Installed()
const root = path.join(at.folder, 'work')
let workspace = ''
let daemon = at.start(['--version'])

test.before(async () => {
  agent('slow', '--slow-init=60000')
  agent('plain', '--load')
  await start()
  workspace = (await ask('POST', '/api/workspaces/resolve', { path: root })).workspace.id
})
test.after(() => at.remove())

function agent(name: string, flags: string): void {
  const folder = path.join(at.home, 'agents', name)
  for (const each of [root, folder]) mkdirSync(each, { recursive: true })
  const command = `${process.execPath} ${AGENT} ${flags}`
  writeFileSync(path.join(folder, 'AGENT.md'), `---\nname: ${name}\ncommand: '${command}'\n---\nDo as told.\n`)
}

async function start(): Promise<void> {
  daemon = at.start(['daemon', 'start', '--foreground'])
  await daemon.shows(/daemon is ready/)
}

async function killAndStart(): Promise<void> {
  daemon.child.kill('SIGKILL')
  await daemon.ended
  await start()
}

async function send(method: string, url: string, body?: unknown): Promise<{ status: number; body: Reply }> {
  const { status, text } = await at.request('socket', method, url, body)
  return { status, body: text === '' ? undefined : JSON.parse(text) }
}

async function ask(method: string, url: string, body?: unknown): Promise<Reply> {
  const reply = await send(method, url, body)
  if (reply.status >= 300) throw new Error(`${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body
}

async function session(name: string, more: object = {}): Promise<{ id: string; base: string }> {
  const { id } = (await ask('POST', '/api/sessions', { workspace, agent_name: name, ...more })).session
  return { id, base: `/api/workspaces/${workspace}/sessions/${id}` }
}

const typesOf = (events: readonly Reply[]) => events.map(({ type }) => type)
const eventsOf = async (base: string): Promise<Reply[]> => (await ask('GET', `${base}/events?limit=1000`)).events
const ended = (base: string, turn: string) =>
  until(
    async () => (await eventsOf(base)).find(({ turn_id, type }) => turn_id === turn && /^(?:done|error)$/.test(type)),
    PATIENCE_MS,
    () => `the end of turn ${turn}`,
  )

test('a prompt accepted during the agent start is in the history, and a restart reports it as not sent', async () => {
  const prompted = await session('slow')
  const body = { text: 'say hello', idempotency_key: 'key-1', message_id: 'msg-1' }
  const { prompt } = await ask('POST', `${prompted.base}/prompt`, body)
  const events = await eventsOf(prompted.base)
  assert.equal(
    events.map(({ type, turn_id, content }) => [type, turn_id, content.text]),
    [['user_message', prompt.new_turn_id, 'say hello']],
    'the history has it as soon as it is answered',
  )
  const created = await session('slow', { prompt: 'say first' })
  await killAndStart()

  for (const [{ id, base }, text] of [
    [prompted, 'say hello'],
    [created, 'say first'],
  ] as const) {
    const [message, error, stop] = await eventsOf(base)
    assert.equal([message?.type, message?.content.text], ['user_message', text])
    assert.equal([error?.type, error?.turn_id], ['error', message?.turn_id])
    assert.match(error?.content.error, /the agent was not given this prompt/)
    assert.is(stop?.type, 'session_stopped')
    const { entries } = await ask('GET', `${base}/transcript`)
    assert.match(JSON.stringify(entries), new RegExp(`${text}.*not given this prompt`))
    const { session: row } = await ask('GET', `/api/sessions/${id}`)
    assert.equal([row.state, row.stop_reason], ['stopped', 'agent_crashed'])
    assert.equal(processesWith(`SVC_SESSION_ID=${id}`), [])
  }
  for (let round = 0; round < 2; round++) {
    const again = await send('POST', `${prompted.base}/prompt`, body)
    assert.is(again.status, 202, JSON.stringify(again.body))
    const { status, replayed, message_id, new_turn_id } = again.body.prompt
    assert.equal([status, replayed, message_id, new_turn_id], ['interrupted', true, 'msg-1', prompt.new_turn_id])
    if (round === 0) await killAndStart()
  }
  const other = await send('POST', `${prompted.base}/prompt`, { ...body, text: 'say other' })
  assert.equal([other.status, other.body.code], [409, 'prompt_idempotency_conflict'])
  assert.is((await eventsOf(prompted.base)).filter(({ type }) => type === 'user_message').length, 1)
})

test('a prompt possibly sent is named by its turn; prompts queued behind it run once, in order', async () => {
  const { base } = await session('plain')
  const first = { text: 'say working\nsleep 60000', idempotency_key: 'key-1' }
  const running = (await ask('POST', `${base}/prompt`, first)).prompt
  await until(
    async () => (await eventsOf(base)).find(({ type }) => type === 'agent_message'),
    PATIENCE_MS,
    () => 'the agent at work',
  )
  const second = { text: 'say second', idempotency_key: 'key-2' }
  const queued = (await ask('POST', `${base}/prompt`, second)).prompt
  assert.is(queued.status, 'queued')
  await killAndStart()

  const unknown = await send('POST', `${base}/prompt`, first)
  assert.equal([unknown.status, unknown.body.code], [409, 'prompt_idempotency_conflict'])
  assert.match(JSON.stringify(unknown.body), new RegExp(running.new_turn_id))
  const end = await ended(base, running.new_turn_id)
  assert.is(end.type, 'error')
  assert.not.match(end.content.error, /not given this prompt/)
  const waiting = await send('POST', `${base}/prompt`, second)
  assert.equal([waiting.status, waiting.body.prompt.new_turn_id], [202, queued.new_turn_id])
  const last = (await ask('POST', `${base}/prompt`, { text: 'say third' })).prompt
  await ended(base, last.new_turn_id)
  const sent = (await eventsOf(base)).filter(({ type }) => type === 'user_message').map(({ content }) => content.text)
  assert.equal(sent, [first.text, 'say second', 'say third'])
})

test('a stopped session reports the result of its queued prompts', async () => {
  const { base } = await session('plain')
  await ask('POST', `${base}/prompt`, { text: 'sleep 60000' })
  const second = { text: 'say second', idempotency_key: 'key-2' }
  const queued = (await ask('POST', `${base}/prompt`, second)).prompt
  await ask('POST', `${base}/stop`)
  const dropped = (await eventsOf(base)).find(({ turn_id }) => turn_id === queued.new_turn_id)
  assert.equal([dropped?.type, dropped?.content.note], ['system', 'prompt_dropped'])
  const again = await send('POST', `${base}/prompt`, second)
  assert.equal([again.status, again.body.prompt.status], [202, 'canceled'])
})

test('a prompt only in the journal, only in the table, or with its end only in the journal is repaired', async () => {
  const killed = await killedDaemon(async (world, sabotage) => {
    await world.agent('slow', { flags: '--load --slow-init=60000' })
    await world.agent('plain', { flags: '--load' })
    const send = async (at: string, text: string) =>
      (await world.kernel.request('POST', `${at}/prompt`, { text, idempotency_key: 'key' })).body.prompt.new_turn_id
    const table = await world.session('slow')
    const ended = await world.session('plain')
    sabotage.loseEnds()
    const done: string = await send(ended.at, 'say done')
    await world.until(ended.at, event => event.type === 'done')
    sabotage.losePrompts()
    const turns = { table: (await send(table.at, 'say table')) as string, done }
    return { table, ended, turns }
  })
  const without = await killedDaemon(async (world, sabotage) => {
    await world.agent('slow', { flags: '--slow-init=60000' })
    const { at } = await world.session('slow')
    sabotage.loseRows()
    await world.kernel.request('POST', `${at}/prompt`, { text: 'say journal', idempotency_key: 'key' })
    return { at }
  })
  const { table, ended, turns } = killed.result
  const again = async (of: World, at: string, text: string) => {
    const { status, body } = await of.kernel.request('POST', `${at}/prompt`, { text, idempotency_key: 'key' })
    return [status, body.prompt?.status, body.prompt?.new_turn_id]
  }
  const next = await openWorld(killed)
  try {
    const events = await next.events(table.at)
    assert.equal(typesOf(events), ['user_message', 'error', 'session_stopped'])
    assert.equal([events[0].content.text, events[1].content.prompt_sent], ['say table', false])
    assert.equal(await again(next, table.at, 'say table'), [202, 'interrupted', turns.table])
    assert.equal(typesOf(await next.events(ended.at)).slice(-2), ['done', 'session_stopped'])
    assert.equal(await again(next, ended.at, 'say done'), [202, 'started', turns.done])
  } finally {
    await next.close()
    await killed.remove()
  }
  const last = await openWorld(without)
  try {
    const { at } = without.result
    assert.equal(typesOf(await last.events(at)), ['user_message', 'error', 'session_stopped'])
    await last.agent('slow')
    assert.is((await again(last, at, 'say journal'))[0], 200, 'it was never answered, and runs now')
    await last.until(at, event => event.type === 'done')
  } finally {
    await last.close()
    await without.remove()
  }
})

test.run()
