// One real agent against the fake model, through the API of a daemon: `node --import tsx test/real/real-agents.ts <agent>`.
// Run by scripts/test-real.ts, which installs the agents and says in SVC_REAL_AGENTS where.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { processesWith } from '../e2e/installed.js'
import { openWorld, said, type World } from '../fixtures/session-world.js'
import { type Reply, temporaryFolder } from '../harness/kernel.js'
import { realAgents } from './agents.js'

const [name = ''] = process.argv.slice(2)
const real = realAgents[name]
const installed = process.env.SVC_REAL_AGENTS
if (!real || !installed) throw new Error('usage: npm run test:real')

/** How long a real agent on a busy machine may take for anything. */
const PATIENCE_MS = 60_000
const LIMITS = {
  session: {
    limits: { timeout: '10s' },
    supervision: { timeout_cancel_grace: '3s', frozen_after: '3s' },
  },
}
const WORDS = `[[drip:200]][[say:${'word '.repeat(300)}]]`

let model: ChildProcess
let world: World
let user: string

test.before(async () => {
  const script = fileURLToPath(new URL('fake-model.mjs', import.meta.url))
  model = spawn(process.execPath, [script, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(model.stdout!, 'data')
  const base = /http:\/\/\S+/.exec(String(line))?.[0] ?? ''
  user = await temporaryFolder('real-user')
  const { cmd, env } = real.start({ root: installed, home: user, base })
  const own = Object.entries({ ...env, HOME: user }).map(([key, value]) => `${key}=${value}`)
  const command = ['/usr/bin/env', ...own, ...cmd].join(' ')
  world = await openWorld({ config: LIMITS })
  await world.agent('asking', { command, permissions: 'approve-reads' })
  await world.agent('free', { command })
})

test.after(async () => {
  await world?.close()
  model?.kill()
  await rm(user, { recursive: true, force: true })
})

/** Asks until there is an answer. */
async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
): Promise<T> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; ) {
    const answer = await ask()
    if (answer) return answer
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error(`waited in vain for ${what}`)
}

const until = (at: string, what: string, wanted: (event: Reply) => boolean) =>
  eventually(what, async () => (await world.events(at)).find(wanted))

/** Sends a prompt; returns the id of its turn. Right behind the end of another one it may wait for a moment (202). */
async function send(at: string, text: string): Promise<string> {
  const { status, body } = await world.kernel.request('POST', `${at}/prompt`, { text })
  assert.ok(status === 200 || status === 202, JSON.stringify(body))
  return body.prompt.new_turn_id
}

/** Waits for the end of a turn; returns its events and, of those, the end. */
async function ended(at: string, turn: string): Promise<{ events: readonly Reply[]; end: Reply }> {
  const isEnd = (event: Reply) => event.turn_id === turn && ['done', 'error'].includes(event.type)
  const end = await until(at, `the end of turn ${turn}`, isEnd)
  return { events: await world.events(at, `?turn_id=${turn}&limit=1000`), end }
}

/** A prompt from its beginning to its end; what an earlier turn scripted does not count any more. */
const turn = async (at: string, text: string) => ended(at, await send(at, `[[forget]]${text}`))
/** Waits for the first words of the agent; the prompt is in the journal before the agent has it. */
const wordsOf = (at: string, id: string) =>
  until(
    at,
    'the first words',
    event => event.turn_id === id && event.type !== 'user_message' && /word/.test(event.content.text ?? ''),
  )
const processes = (id: string) => processesWith(`SVC_SESSION_ID=${id}`)
const noneLeft = (id: string) => eventually('the end of every process', () => processes(id).length === 0)
const stopped = (id: string) =>
  eventually('the stop', async () => {
    const row = await world.row(id)
    return row.state === 'stopped' && row
  })

/** Members of the conversation as a person sees it. */
async function transcript(at: string): Promise<{ role: string; parts: Reply[]; metadata?: Reply }[]> {
  const { body } = await world.kernel.request('GET', `${at}/transcript`)
  return body.entries.map((entry: Reply) => entry.message)
}

/** The session is as good as new: it takes a prompt, and its agent answers. */
async function answers(at: string): Promise<void> {
  const { events, end } = await turn(at, '[[say:still here]]')
  assert.is(end.type, 'done', JSON.stringify(end))
  assert.match(said(events), /still here/)
}

async function stop(id: string, at: string): Promise<void> {
  assert.is((await world.kernel.request('POST', `${at}/stop`)).status, 204)
  assert.is((await world.row(id)).stop_reason, 'user_canceled')
  assert.equal(processes(id), [])
}

test('a tool that needs permission: asked, allowed, done; rejected, not done', async () => {
  const { id, at } = await world.session('asking')
  const ask = async (file: string, decision: string) => {
    const id = await send(at, `[[forget]]${real.tool(`touch ${file}`)}[[say:all done]]`)
    const waits = (event: Reply) =>
      event.turn_id === id && (event.type === 'done' || event.content.status === 'pending' || event.type === 'error')
    const asked = await until(at, 'a request for permission', event => waits(event) && event.type !== 'tool_call')
    assert.is(asked.type, 'permission', JSON.stringify(asked.content))
    assert.is(existsSync(path.join(world.root, file)), false, 'nothing happens before the answer')
    const answer = { request_id: asked.content.request_id, turn_id: id, decision }
    const reply = await world.kernel.request('POST', `${at}/approve`, answer)
    assert.equal([reply.status, reply.body.status], [200, decision === 'allow-once' ? 'allowed' : 'rejected'])
    assert.is((await world.kernel.request('POST', `${at}/approve`, answer)).status, 404, 'answered once')
    return ended(at, id)
  }
  const { events, end } = await ask('allowed', 'allow-once')
  assert.equal([end.type, end.content.status], ['done', 'completed'])
  assert.ok(existsSync(path.join(world.root, 'allowed')))
  const results = events.filter(event => event.type === 'tool_result')
  assert.equal(
    results.map(event => event.content.status),
    ['completed'],
  )
  assert.match(said(events), /all done/)
  const tool = (await transcript(at)).flatMap(({ parts }) => parts).find(({ type }) => type === 'dynamic-tool')
  assert.is(tool.state, 'output-available')

  await ask('rejected', 'reject-once')
  assert.is(existsSync(path.join(world.root, 'rejected')), false)
  await stop(id, at)
})

test('a cancel in the middle ends the turn and not the session', async () => {
  const { id, at } = await world.session('free')
  const running = await send(at, WORDS)
  await wordsOf(at, running)
  assert.is((await world.row(id)).badge, 'running')
  const { body } = await world.kernel.request('POST', `${at}/prompt/cancel`)
  assert.equal([body.outcome, body.turn_id], ['canceled', running])
  const { end } = await ended(at, running)
  assert.equal([end.type, end.content.status], ['done', 'canceled'])
  assert.equal([(await world.row(id)).state, (await world.row(id)).badge], ['active', 'idle'])
  await answers(at)
  await stop(id, at)
})

for (const [what, script] of [
  ['a model that answers 500', '[[http:500]]'],
  ['a stream that is dropped', '[[drop]][[say:one two three four]]'],
] as const) {
  test(`${what}: the turn ends within its limit and says how, the session goes on`, async () => {
    const { id, at } = await world.session('free')
    const { end } = await turn(at, script)
    // Agents retry in silence, give up with an error, or take the error for an answer.
    if (end.type === 'error') {
      assert.ok(['timeout', 'prompt_failure'].includes(end.failure.kind), JSON.stringify(end))
      assert.is((await transcript(at)).at(-1)?.metadata?.status, 'failed')
    } else assert.is(end.content.status, 'completed', JSON.stringify(end))
    assert.ok(end.content.duration_ms < 20_000)
    assert.is((await world.row(id)).state, 'active')
    await answers(at)
    await stop(id, at)
  })
}

test('an agent that is killed: the session says so, nothing is left of it, a prompt brings it back', async () => {
  const { id, at } = await world.session('free')
  const running = await send(at, WORDS)
  await wordsOf(at, running)
  // The one that the daemon started; what it started in turn is the daemon's business now.
  const [leader] = processes(id)
  process.kill(leader!, 'SIGKILL')
  const { end } = await ended(at, running)
  assert.equal([end.type, end.failure.kind], ['error', 'process_exit'])
  assert.match(end.failure.summary, /SIGKILL/)
  const row = await stopped(id)
  assert.equal([row.stop_reason, row.failure.kind, row.badge], ['agent_crashed', 'process_exit', 'failed'])
  assert.is(JSON.parse(readFileSync(row.failure.crash_bundle_path, 'utf8')).session_id, id)
  await noneLeft(id)
  await answers(at)
  assert.equal([(await world.row(id)).state, (await world.row(id)).stop_reason], ['active', undefined])
  await stop(id, at)
})

test('an agent that is frozen is found out and ended; a prompt brings it back', async () => {
  const { id, at } = await world.session('free')
  const running = await send(at, WORDS)
  await wordsOf(at, running)
  for (const pid of processes(id)) process.kill(pid, 'SIGSTOP')
  await eventually('the badge', async () => (await world.row(id)).badge === 'hung')
  const { end } = await ended(at, running)
  assert.equal([end.type, end.failure.kind], ['error', 'timeout'])
  assert.match(end.failure.summary, /frozen/)
  const row = await stopped(id)
  assert.equal([row.stop_reason, row.stop_detail, row.failure.kind], ['agent_crashed', 'frozen', 'timeout'])
  await noneLeft(id)
  await answers(at)
  await stop(id, at)
})

test('a restart of the daemon in the middle of a turn: stopped, restored by a prompt, the agent knows what was said', async () => {
  const { id, at } = await world.session('free')
  await answers(at)
  const running = await send(at, WORDS)
  await wordsOf(at, running)
  const before = await world.events(at)
  await world.restart()
  const row = await world.row(id)
  assert.equal([row.state, row.stop_reason], ['stopped', 'shutdown'])
  assert.equal(processes(id), [])
  const after = await world.events(at)
  assert.equal(after.slice(0, before.length), before, 'what was told stays as it was')
  assert.equal(
    after.slice(-2).map(event => event.type),
    ['done', 'session_stopped'],
  )
  await answers(at)
  const marker = await until(at, 'the marker', event => event.type === 'transcript_marker.created')
  assert.is(marker.content.loaded, true, JSON.stringify(marker.content))
  await stop(id, at)
})

test('nothing is left behind', async () => {
  await world.restart()
  const { body } = await world.kernel.request('GET', '/api/status')
  assert.equal([body.sessions.active, body.subprocess_health.monitored], [0, 0])
})

test.run()
