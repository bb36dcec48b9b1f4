// timeout: 120s
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agents, mcp, providers, sandboxes, sessions, workspaces } from '../../../../plugins/index.js'
import { AGENT, eventually } from '../../../fixtures/session-world.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'
import { type Made, type Scene, scene } from './scene.js'

const METHODS = ['sandbox/list', 'sandbox/info', 'sandbox/exec', 'clarify/ask', 'sessions/create', 'sessions/prompt']

let world: Scene
let made: Made
let root = ''
let workspace = ''

test.before(async () => {
  world = await scene({ plugins: [workspaces, providers, agents, sessions, mcp, sandboxes] })
  root = await realpath(await temporaryFolder('extension-root'))
  const folder = path.join(root, '.svc/agents/ada')
  mkdirSync(folder, { recursive: true })
  const head = `name: ada\npermissions: approve-all\ncommand: '${process.execPath} ${AGENT}'`
  writeFileSync(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nDo.\n`)
  workspace = (await request('POST', '/api/workspaces/resolve', { path: root })).workspace.id
  made = await world.make({ permissions: METHODS })
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

async function session(sandbox?: string): Promise<{ id: string; at: string }> {
  const { id } = (
    await request('POST', '/api/sessions', { workspace, agent_name: 'ada', ...(sandbox ? { sandbox } : {}) })
  ).session
  return { id, at: `/api/workspaces/${workspace}/sessions/${id}` }
}

/** Sends a prompt whose turn goes on until it is canceled, and waits until its agent runs it. */
async function hang(at: string): Promise<void> {
  const { prompt } = await request('POST', `${at}/prompt`, { text: 'say here\nhang' })
  await eventually(async () => {
    const { events } = await request('GET', `${at}/events?turn_id=${prompt.new_turn_id}&limit=1000`)
    return events.some((event: Reply) => event.type === 'agent_message')
  }, 'the words of the agent')
}

const stop = (at: string) => request('POST', `${at}/stop`)
const exec = (session_id: string, argv: readonly string[], more: object = {}) =>
  made.ask('sandbox/exec', { session_id, argv, ...more })

test('an extension runs commands in the sandbox of a session with a running agent', async () => {
  const { id, at } = await session()
  const info = async () => (await made.ask('sandbox/info', { session_id: id })).result.sandbox
  assert.equal([(await info()).state, (await info()).mounts], ['prepared', []])
  assert.is((await exec(id, ['true'])).error.data.code, 'sandbox_not_running')
  await hang(at)
  assert.is((await info()).state, 'running')
  assert.ok((await info()).mounts.some((mount: Reply) => mount.path === root && mount.access === 'write'))
  const { sandboxes } = (await made.ask('sandbox/list', { workspace_id: workspace })).result
  assert.equal(
    sandboxes.map((one: Reply) => [one.session_id, one.profile, one.network, one.state]),
    [[id, 'default', 'host', 'running']],
  )

  const { result } = await exec(id, ['sh', '-c', 'pwd; touch made; echo wrong >&2; exit 3'])
  assert.equal([result.stdout, result.stderr, result.exit_code, result.signal], [`${root}\n`, 'wrong\n', 3, null])
  assert.ok(existsSync(path.join(root, 'made')))
  // It sees what the agent sees, and neither who that is nor its keys.
  const inside = (await exec(id, ['sh', '-c', `ls -A ${world.host.home}; env`])).result
  assert.not.match(inside.stdout, /SVC_S|TOKEN|config\.json/)
  const refused = async (argv: readonly string[], more: object = {}) => (await exec(id, argv, more)).error.data.code
  assert.is(await refused(['true'], { cwd: '/etc' }), 'sandbox_folder_outside')
  assert.is(await refused(['true'], { cwd: '..' }), 'sandbox_folder_outside')
  assert.is(await refused([]), 'invalid_request')
  const long = (await exec(id, ['sleep', '1000'], { timeout_seconds: 1 })).result
  assert.equal([long.timed_out, long.exit_code], [true, null])
  const much = (await exec(id, ['sh', '-c', 'yes | head -c 1000000'])).result
  assert.equal([much.stdout.length, much.truncated, much.exit_code], [256 * 1024, true, 0])

  // What would run code outside is put aside also where a command that outlives the agent made it.
  const over = exec(id, ['sh', '-c', 'mkdir -p .git/hooks; echo x > .git/hooks/post-checkout; sleep 1000'])
  await eventually(async () => existsSync(path.join(root, '.git/hooks/post-checkout')), 'the planted hook')
  await stop(at)
  assert.is((await over).result.exit_code, null)
  assert.is(existsSync(path.join(root, '.git/hooks')), false)
  assert.ok(readdirSync(path.join(root, '.git')).includes(`hooks.discarded-${id}`))
  assert.is((await exec(id, ['true'])).error.data.code, 'sandbox_not_found')
})

test('a session without a sandbox offers none', async () => {
  const { id, at } = await session('none')
  await hang(at)
  assert.is((await made.ask('sandbox/info', { session_id: id })).error.data.code, 'sandbox_not_found')
  assert.is((await exec(id, ['true'])).error.data.code, 'sandbox_not_found')
  assert.is((await exec('../status', ['true'])).error.data.code, 'sandbox_not_found')
  await stop(at)
})

test('an extension asks the user of a session and gets the answer', async () => {
  const { id: session_id, at } = await session()
  const ask = (more: object) => {
    const answer = made.ask('clarify/ask', { workspace_id: workspace, session_id, ...more })
    // Where this test fails before it is awaited, the process ends with the question.
    answer.catch(() => {})
    return answer
  }
  const waiting = () =>
    eventually(async () => (await request('GET', `${at}/clarifications`)).clarifications[0], 'the question')
  assert.is((await ask({ question: 'Which?' })).error.data.code, 'clarification_idle')
  await hang(at)
  assert.is((await ask({ question: ' ' })).error.data.code, 'invalid_request')

  const chosen = ask({ question: 'Which color?', choices: ['red', 'blue'] })
  const { request_id, question, choices } = await waiting()
  assert.equal([question, choices], ['Which color?', ['red', 'blue']])
  const told = await eventually(async () => {
    const { events } = await request('GET', `${at}/events?limit=1000`)
    return events.find((event: Reply) => event.content.request_id === request_id)
  }, 'the question in the journal')
  assert.match(told.content.text, /the extension probe asks: Which color\? \(red \/ blue\)/)
  await request('POST', `${at}/clarifications/${request_id}/answer`, { choice_index: 1 })
  assert.equal((await chosen).result, { request_id, choice: 1, text: 'blue', fallback: false, resolved_by: 'person' })

  const worded = ask({ question: 'How?' })
  await request('POST', `${at}/clarifications/${(await waiting()).request_id}/answer`, { text: 'slowly' })
  assert.equal([(await worded).result.text, (await worded).result.choice], ['slowly', null])

  const unanswered = (await ask({ question: 'Nobody?', timeout_seconds: 1 })).result
  assert.equal([unanswered.fallback, unanswered.resolved_by, unanswered.text], [true, 'timeout', ''])

  // The end of the turn takes its questions away.
  const left = ask({ question: 'Still there?' })
  await waiting()
  await request('POST', `${at}/prompt/cancel`)
  assert.equal([(await left).result.fallback, (await left).result.resolved_by], [true, 'cancel'])
  await stop(at)
})

test('a question ends with the process that asked it', async () => {
  const { id: session_id, at } = await session()
  await hang(at)
  const mortal = await world.make({ name: 'mortal', permissions: ['clarify/ask'] })
  await mortal.runtime.start()
  const clarifications = async () => (await request('GET', `${at}/clarifications`)).clarifications
  const questionOf = async (of: Made, question: string) => {
    of.ask('clarify/ask', { workspace_id: workspace, session_id, question, timeout_seconds: 3600 }).catch(() => {})
    return eventually(
      async () => (await clarifications()).find((one: Reply) => one.question === question)?.request_id,
      'the question',
    )
  }
  const stays = await questionOf(made, 'Of one that lives?')
  const goes = await questionOf(mortal, 'Of one that dies?')
  mortal.tell('exit', { code: 3 }).catch(() => {})
  await eventually(async () => (await clarifications()).length === 1, 'the end of the question')
  assert.is((await clarifications())[0].request_id, stays)
  const { events } = await request('GET', `${at}/events?limit=1000`)
  const ends = events.filter((event: Reply) => event.content.status === 'resolved')
  assert.equal(
    ends.map(({ content }: Reply) => [content.request_id, content.resolved_by]),
    [[goes, 'cancel']],
  )
  const gone = await world.host.request('POST', `${at}/clarifications/${goes}/answer`, { text: 'late' })
  assert.is(gone.status, 409)
  await stop(at)
})

test('an agent that ends during the load runs in its sandbox again, and so do commands of others', async () => {
  const name = 'forgetful'
  const folder = path.join(root, `.svc/agents/${name}`)
  mkdirSync(folder, { recursive: true })
  const head = `name: ${name}\npermissions: approve-all\ncommand: '${process.execPath} ${AGENT} --exit-on-load'`
  writeFileSync(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nDo.\n`)
  const { id } = (await request('POST', '/api/sessions', { workspace, agent_name: name })).session
  const at = `/api/workspaces/${workspace}/sessions/${id}`
  await hang(at)
  await request('POST', `${at}/prompt/cancel`)
  await request('POST', `${at}/prompt`, { text: 'exit 3' })
  await eventually(async () => (await request('GET', at)).session.state === 'stopped', 'the end of the agent')
  await hang(at)
  assert.is((await made.ask('sandbox/info', { session_id: id })).result.sandbox.state, 'running')
  assert.is((await exec(id, ['echo', 'inside'])).result.stdout, 'inside\n')
  await exec(id, ['sh', '-c', 'mkdir -p .git/hooks && echo x > .git/hooks/pre-push'])
  await stop(at)
  assert.is(existsSync(path.join(root, '.git/hooks')), false)
})

test('an ungranted method is denied by name', async () => {
  const other = await world.make({ name: 'bare', permissions: ['sandbox/list'] })
  await other.runtime.start()
  assert.ok(Array.isArray((await other.ask('sandbox/list')).result.sandboxes))
  for (const [method, consent] of [
    ['sandbox/info', 'sandbox.read'],
    ['sandbox/exec', 'sandbox.write'],
    ['clarify/ask', 'clarify.write'],
  ])
    assert.equal((await other.ask(method!)).error.data.required, [consent])
})

test.run()
