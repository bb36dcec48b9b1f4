// One real agent against the fake model, through the API of a daemon:
// `node --import tsx test/real/real-agents.ts <agent> [capability …]`; without capabilities all of them.
// Run by scripts/test-real.ts, which installs the agents and says in SVC_REAL_AGENTS where.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { automation, hooks, models, sandboxes, settings } from '../../plugins/index.js'
import { processesWith } from '../e2e/installed.js'
import { agentText, openWorld, type World } from '../fixtures/session-world.js'
import { type Reply, temporaryFolder } from '../harness/kernel.js'
import { commandOf, type RealAgent, realAgents } from './agents.js'
import { type Capability, type Cell, RESULT } from './results.js'

const [name = '', ...only] = process.argv.slice(2)
const real = realAgents[name]
const installed = process.env.SVC_REAL_AGENTS
if (!real || !installed) throw new Error('usage: npm run test:real')

/** How long a real agent on a busy machine may take for anything. */
const PATIENCE_MS = 60_000
/** Everything else is as every daemon has it: what is promised of unresponsive processes and silent models is promised by default. */
const LIMITS = { session: { supervision: { timeout_cancel_grace: '3s' } } }
/** What is promised, in milliseconds: a stopped process is noticed, its turn ended, a failing model said in words. */
const NOTICED_MS = 15_000
const ENDED_MS = 30_000
const SAID_MS = 30_000
/** What a busy machine may add to that. */
const SLACK_MS = 5000
/** Questions that were answered. */
const answered = new Set<string>()
/** A hook that stays: it refuses what removes whole folders. */
const GUARD = `#!/usr/bin/env python3
import json, re, sys
for line in sys.stdin:
    asked = json.loads(line)
    told = json.dumps([asked["payload"].get("command"), asked["payload"].get("title")])
    patch = {"deny": True, "reason": "rm -rf is not for agents"} if re.search(r"rm -rf", told) else None
    print(json.dumps({"id": asked["id"], "patch": patch}), flush=True)
`
const MCP = fileURLToPath(new URL('mcp-server.mjs', import.meta.url))
const WORDS = `[[drip:200]][[say:${'word '.repeat(300)}]]`

/** What was tried, and how it went: told to scripts/test-real.ts at the end. */
const tried = new Map<Capability, Cell>()

/** A test of a capability: it passed, failed, or says in a few words what this agent does instead. */
function holds(what: Capability, name: string, run: () => Promise<string | undefined>): void {
  if (only.length > 0 && !only.includes(what)) return
  test(name, async () => {
    const before = tried.get(what) ?? true
    tried.set(what, false)
    const remark = await run()
    tried.set(what, before === true ? (remark ?? true) : before)
  })
}

let model: ChildProcess
/** An MCP server over HTTP. */
let far: ChildProcess
let world: World
let user: string
/** URL of the fake model. */
let base: string
/** The guard of permissions as a hook of the daemon. */
let guard: string

const GUARDED = '/api/settings/hooks/guard'
/** Has every permission asked of the guard, without which nothing is allowed. */
async function putGuard(): Promise<void> {
  const more = { matcher: {}, warm: true, required: true, timeout: '30s' }
  const declaration = { name: 'guard', event: 'permission.request', command: guard, ...more }
  const { status, body } = await world.kernel.request('PUT', GUARDED, { declaration })
  assert.ok(status < 300, JSON.stringify(body))
}

async function dropGuard(): Promise<void> {
  const { status, body } = await world.kernel.request('DELETE', GUARDED)
  assert.ok(status < 300, JSON.stringify(body))
}

test.before(async () => {
  const script = fileURLToPath(new URL('fake-model.mjs', import.meta.url))
  model = spawn(process.execPath, [script, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(model.stdout!, 'data')
  base = /http:\/\/\S+/.exec(String(line))?.[0] ?? ''
  user = await temporaryFolder('real-user')
  guard = path.join(user, 'guard.py')
  await writeFile(guard, GUARD, { mode: 0o755 })
  const command = commandOf(real, { root: installed, home: user, base })
  world = await openWorld({
    config: LIMITS,
    plugins: [automation, sandboxes, models, hooks, settings],
    // The program is found under the name that the catalog has for it.
    env: { PATH: `${path.join(user, 'bin')}:${process.env.PATH}`, HOME: user },
  })
  await world.agent('asking', { command, permissions: 'approve-reads' })
  await world.agent('free', { command })
  far = spawn(process.execPath, [MCP, path.join(world.root, 'noted-far'), '--http'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [url] = await once(far.stdout!, 'data')
  // Servers that an agent is handed with its session, beside its own tools.
  const serve = async (name: string, server: string) => {
    const folder = path.join(world.root, '.svc', 'agents', name)
    await mkdir(folder, { recursive: true })
    const head = `name: ${name}\npermissions: approve-all\ncommand: '${command}'\nmcp_servers:\n  - name: notebook\n${server}`
    await writeFile(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nYou do what you are told.\n`)
  }
  await serve('served', `    command: ${process.execPath}\n    args: ['${MCP}', '${path.join(world.root, 'noted')}']`)
  await serve('reaching', `    transport: http\n    url: ${String(url).trim()}`)
})

test.after(async () => {
  console.log(`${RESULT}${JSON.stringify(Object.fromEntries(tried))}`)
  await world?.close()
  model?.kill()
  far?.kill()
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
  const end = await until(at, `the end of turn ${turn}`, isEnd).catch(async error => {
    const waits = (await world.events(at)).filter(event => event.turn_id === turn).slice(-3)
    throw new Error(`${error.message}, behind ${JSON.stringify(waits.map(({ type, content }) => [type, content]))}`)
  })
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
  assert.match(agentText(events), /still here/)
}

async function stop(id: string, at: string): Promise<void> {
  assert.is((await world.kernel.request('POST', `${at}/stop`)).status, 204)
  assert.is((await world.row(id)).stop_reason, 'user_canceled')
  assert.equal(processes(id), [])
}

holds('questions', 'a tool that needs permission: asked, allowed, done; rejected, not done', async () => {
  const { id, at } = await world.session('asking')
  if (real.neverAsks) {
    const { events } = await turn(at, '[[say:hello]]')
    const warning = events.find(event => event.content.warning === 'permission_never_asked')
    assert.match(warning?.content.text ?? '', /never asks|without asking|no questions/i)
    await stop(id, at)
    return 'never asks; the session warns'
  }
  const ask = async (file: string, decision: string) => {
    const id = await send(at, `[[forget]]${real.tool(`touch ${file}`)}[[say:all done]]`)
    const waits = (event: Reply) =>
      event.turn_id === id && (event.type === 'done' || event.content.status === 'pending' || event.type === 'error')
    const question = await until(at, 'a request for permission', event => waits(event) && event.type !== 'tool_call')
    assert.is(question.type, 'permission', JSON.stringify(question.content))
    assert.is(existsSync(path.join(world.root, file)), false, 'nothing happens before the answer')
    const answer = { request_id: question.content.request_id, turn_id: id, decision }
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
  assert.match(agentText(events), /all done/)
  const tool = (await transcript(at)).flatMap(({ parts }) => parts).find(({ type }) => type === 'dynamic-tool')
  assert.is(tool.state, 'output-available')

  await ask('rejected', 'reject-once')
  assert.is(existsSync(path.join(world.root, 'rejected')), false)
  await stop(id, at)
  return undefined
})

holds(
  'hook',
  'a hook in Python that stays refuses rm -rf before a person is asked, and lets the rest pass',
  async () => {
    if (real.neverAsks) return 'never asks, so no hook runs'
    await putGuard()
    const { id, at } = await world.session('asking')
    const kept = path.join(world.root, 'kept')
    await mkdir(kept, { recursive: true })
    const begin = (command: string) => send(at, `[[forget]]${real.tool(command)}[[say:all done]]`)
    const allow = async (command: string) => {
      const id = await begin(command)
      const waits = (event: Reply) =>
        event.turn_id === id && (event.content.status === 'pending' || ['done', 'error'].includes(event.type))
      const question = await until(at, 'a request for permission', event => waits(event) && event.type !== 'tool_call')
      assert.is(question.type, 'permission', JSON.stringify(question.content))
      const answer = { request_id: question.content.request_id, turn_id: id, decision: 'allow-once' }
      await world.kernel.request('POST', `${at}/approve`, answer)
      return ended(at, id)
    }
    const { events } = await ended(at, await begin(`rm -rf ${kept}`))
    assert.ok(existsSync(kept), 'it was not removed')
    const resolved = events.find(event => event.type === 'permission' && event.content.status === 'resolved')
    const output = JSON.stringify(events.map(({ type, content }) => [type, content]))
    assert.equal([resolved?.content.resolved_by, resolved?.content.decision], ['hook', 'reject-once'], output)
    assert.match(resolved?.content.note, /rm -rf is not for agents \(hook guard\)/)
    await allow(`touch ${kept}/more`)
    assert.ok(existsSync(path.join(kept, 'more')))
    const url = `/api/workspaces/${world.workspaceId}/hooks/runs?session=${id}&event=permission.request`
    const { runs } = (await world.kernel.request('GET', url)).body
    assert.equal(
      runs.map(({ hook_name, outcome }: Reply) => [hook_name, outcome]),
      [
        ['guard', 'denied'],
        ['guard', 'applied'],
      ],
    )
    assert.ok(runs.every(({ duration_us }: Reply) => duration_us > 0))
    await stop(id, at)
    await dropGuard()
    return undefined
  },
)

holds(
  'hookAll',
  'under approve-all the same hook refuses rm -rf, and what it allows is done without a person',
  async () => {
    await putGuard()
    try {
      const { id, at } = await world.session('free')
      if (real.neverAsks) {
        const { end } = await ended(at, await send(at, '[[say:hello]]'))
        assert.is(end.type, 'error', JSON.stringify(end))
        assert.match(end.failure.summary, /never asks/)
        return 'never asks; is not started'
      }
      const spared = path.join(world.root, 'spared')
      await mkdir(spared, { recursive: true })
      const touched = await turn(
        at,
        `${real.tool(`touch ${spared}/more`, real.asksInSandbox === true)}[[say:all done]]`,
      )
      assert.ok(
        existsSync(path.join(spared, 'more')),
        JSON.stringify(touched.events.map(({ type, content }) => [type, content])),
      )
      const { events } = await turn(at, `${real.tool(`rm -rf ${spared}`, real.asksInSandbox === true)}[[say:all done]]`)
      assert.ok(existsSync(spared), 'it was not removed')
      const resolved = events.find(event => event.type === 'permission' && event.content.status === 'resolved')
      assert.is(resolved?.content.resolved_by, 'hook', JSON.stringify(events.map(({ content }) => content)))
      await stop(id, at)
      return undefined
    } finally {
      await dropGuard()
    }
  },
)

/** A prompt from its beginning to its end whose questions for permission are all allowed. */
async function allowing(at: string, text: string) {
  const id = await send(at, `[[forget]]${text}`)
  const answered = new Set<string>()
  const end = await eventually('the end of a turn', async () => {
    const events = (await world.events(at)).filter(event => event.turn_id === id)
    for (const { type, content } of events) {
      if (type !== 'permission' || content.status !== 'pending' || answered.has(content.request_id)) continue
      answered.add(content.request_id)
      const answer = { request_id: content.request_id, turn_id: id, decision: 'allow-once' }
      await world.kernel.request('POST', `${at}/approve`, answer)
    }
    return events.find(event => ['done', 'error'].includes(event.type))
  })
  return { events: await world.events(at, `?turn_id=${id}&limit=1000`), end, asked: answered.size }
}

/** Has the agent create a file and change it with its own tools; returns what it did not do. */
async function editsIn(real: RealAgent, agent: string): Promise<string | undefined> {
  const { id, at } = await world.session(agent)
  const file = path.join(world.root, `${agent}.txt`)
  const text = () => (existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined)
  const written = await allowing(at, `${real.files.write(file, 'first line')}[[say:written]]`)
  const creates = text() === 'first line'
  if (!creates) console.log(agent, 'write', JSON.stringify(written.events.map(({ content }) => content)))
  if (creates && agent === 'asking' && !real.neverAsks) assert.ok(written.asked > 0, 'it asked before it wrote')
  await writeFile(file, 'first line\n')
  const edited = await allowing(at, `${real.files.edit(file, 'first line', 'second line')}[[say:edited]]`)
  const edits = text() === 'second line'
  if (!edits) console.log(agent, 'edit', JSON.stringify(edited.events.map(({ content }) => content)))
  await stop(id, at)
  if (creates && edits) return undefined
  return creates ? 'creates, but does not edit' : edits ? 'edits, but does not create' : 'neither creates nor edits'
}

holds('files', 'its own file tools create a file and change one: asking, and under approve-all', async () => {
  const asking = await editsIn(real, 'asking')
  const free = await editsIn(real, 'free')
  if (asking === free) return asking
  return `${asking ?? 'both'} where it asks; ${free ?? 'both'} under approve-all`
})

holds('ownQuestions', 'a question of the agent reaches the person, and the answer the agent', async () => {
  const { question } = real
  const { id, at } = await world.session('asking')
  const prompt = `[[forget]][[do:^(${question.tool})$ ${JSON.stringify(question.args)}]][[say:all done]]`
  const turn = await send(at, prompt)
  const first = await until(at, 'a question or the end', ({ turn_id, type, content }) => {
    if (turn_id !== turn) return false
    return ['done', 'error'].includes(type) || (content.status === 'pending' && type !== 'tool_call')
  })
  const log = async () => (await (await fetch(`${base}/__log`)).json()) as { tools?: string[]; result?: string }[]
  const isOffered = (await log()).some(({ tools = [] }) =>
    tools.some(name => new RegExp(`^(${question.tool})$`).test(name)),
  )
  if (!isOffered) {
    await stop(id, at)
    return 'offers its model no question'
  }
  if (first.content.note !== 'clarification') {
    const why = (await log()).flatMap(({ result }) => result ?? []).at(-1)
    if (/in Default mode/.test(why ?? '')) {
      await stop(id, at)
      return 'only in its plan mode'
    }
    if (first.type === 'permission') {
      await world.kernel.request('POST', `${at}/prompt/cancel`)
      await ended(at, turn)
    }
    console.log('question', JSON.stringify((await world.events(at)).map(({ content }) => content)))
    await stop(id, at)
    return first.type === 'permission' ? 'as permission, without the choices' : 'does not ask the person'
  }
  // A form may have a second field, for words of one's own.
  for (let asked = first; asked; ) {
    const { request_id } = asked.content
    const answer = asked.content.choices ? { choice_index: 1 } : { skip: true }
    const reply = await world.kernel.request('POST', `${at}/clarifications/${request_id}/answer`, answer)
    assert.ok(reply.status < 300, JSON.stringify(reply.body))
    const next = await until(at, 'the next question or the end', ({ turn_id, type, content }) => {
      if (turn_id !== turn) return false
      const isNext = content.note === 'clarification' && content.status === 'pending'
      return (
        ['done', 'error'].includes(type) ||
        (isNext && !answered.has(content.request_id) && content.request_id !== request_id)
      )
    })
    answered.add(request_id)
    asked = next.content.note === 'clarification' ? next : undefined
  }
  await ended(at, turn)
  const results = (await log()).flatMap(({ result }) => result ?? [])
  assert.match(results.at(-1) ?? '', /Blue/)
  await stop(id, at)
  return undefined
})

holds('cancel', 'a cancel in the middle ends the turn and not the session', async () => {
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
  return undefined
})

holds('errors', 'a model that answers 500: within 30 s the stream says so, the session goes on', async () => {
  const { id, at } = await world.session('free')
  await answers(at)
  const sent = Date.now()
  const failing = await send(at, '[[forget]][[http:500]]')
  const silent = (event: Reply) => event.content.warning === 'silent'
  const word = await until(
    at,
    'a word of the failure',
    event => event.turn_id === failing && (['done', 'error'].includes(event.type) || silent(event)),
  )
  assert.ok(Date.now() - sent < SAID_MS + SLACK_MS, `${Date.now() - sent} ms`)
  if (silent(word)) {
    await world.kernel.request('POST', `${at}/prompt/cancel`)
    await ended(at, failing)
  }
  const { events } = await ended(at, failing)
  // Some take the error for an answer, and some end as if nothing had been wrong.
  const inWords = word.type === 'error' ? (word.failure.summary as string) : agentText(events)
  await answers(at)
  await stop(id, at)
  if (silent(word)) return 'retries silently; the session shows it'
  if (inWords.trim() === '') {
    assert.ok(events.some(event => event.content.warning === 'empty_turn'))
    return 'ends silently; the session shows it'
  }
  return /500|fail|error/i.test(inWords) ? undefined : 'says something else'
})

holds('dropped', 'a model whose stream breaks off: the turn ends or can be canceled, the session goes on', async () => {
  const { id, at } = await world.session('free')
  await answers(at)
  const dropped = await send(at, '[[forget]][[drop]][[say:one two three four]]')
  const ends = (event: Reply) => event.turn_id === dropped && ['done', 'error'].includes(event.type)
  const patience = Date.now() + SAID_MS
  const end = await eventually('the end', async () => {
    const found = (await world.events(at)).find(ends)
    if (!found && Date.now() > patience) await world.kernel.request('POST', `${at}/prompt/cancel`)
    return found
  })
  assert.is((await world.row(id)).state, 'active')
  await answers(at)
  await stop(id, at)
  return end.content.status === 'canceled' ? 'retries; canceled after 30 s' : undefined
})

holds(
  'killed',
  'an agent that is killed: the session says so, nothing is left of it, a prompt brings it back',
  async () => {
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
    return undefined
  },
)

holds(
  'frozen',
  'an agent stopped by SIGSTOP is noticed within 15 s and ended within 30; a prompt brings it back',
  async () => {
    const { id, at } = await world.session('free')
    const running = await send(at, WORDS)
    await wordsOf(at, running)
    const since = Date.now()
    for (const pid of processes(id)) process.kill(pid, 'SIGSTOP')
    await eventually('the badge', async () => (await world.row(id)).badge === 'hung')
    assert.ok(Date.now() - since < NOTICED_MS + SLACK_MS, `noticed after ${Date.now() - since} ms`)
    const { end } = await ended(at, running)
    assert.ok(Date.now() - since < ENDED_MS + SLACK_MS, `ended after ${Date.now() - since} ms`)
    assert.equal([end.type, end.failure.kind], ['error', 'timeout'])
    const row = await stopped(id)
    assert.equal([row.stop_reason, row.stop_detail, row.failure.kind], ['agent_crashed', 'frozen', 'timeout'])
    await noneLeft(id)
    await answers(at)
    await stop(id, at)
    return undefined
  },
)

holds(
  'restart',
  'a restart of the daemon in the middle of a turn: stopped, restored by a prompt, the agent knows what was said',
  async () => {
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
    // Some count what they used after the end of the turn.
    const events = after.filter(event => event.type !== 'usage')
    assert.equal(
      events.slice(-2).map(event => event.type),
      ['done', 'session_stopped'],
    )
    await answers(at)
    await stop(id, at)
    return undefined
  },
)

holds('load', 'session/load gives a new process the conversation; without it a summary does', async () => {
  const { id, at } = await world.session('free')
  await answers(at)
  await world.restart()
  await answers(at)
  const marker = await until(at, 'the marker', event => event.type === 'transcript_marker.created')
  await stop(id, at)
  return marker.content.loaded ? undefined : 'fails; it receives a summary'
})

/** Has the tool of an MCP server called; returns what of the session said that it is left out, or 'ignores them'. */
async function callTool(agent: string, file: string): Promise<string | undefined> {
  const { id, at } = await world.session(agent)
  if (real?.lookUp) await turn(at, real.lookUp)
  const args = { text: 'from the model' }
  const script = real?.callNoteIt?.(args) ?? `[[tool:note_it ${JSON.stringify(args)}]]`
  const { end } = await turn(at, `${script}[[say:noted]]`)
  const called = existsSync(path.join(world.root, file))
  if (called) assert.is(readFileSync(path.join(world.root, file), 'utf8'), 'from the model')
  assert.is(end.type, 'done', JSON.stringify(end))
  const leftOut = (await world.events(at)).some(({ content }) => content.warning === 'mcp_server_left_out')
  assert.not(called && leftOut)
  if (!called) {
    const log = (await (await fetch(`${base}/__log`)).json()) as { tools?: string[]; call?: string; result?: string }[]
    console.log(agent, JSON.stringify(log.slice(-4).map(({ tools, call, result }) => ({ tools, call, result }))))
  }
  await stop(id, at)
  if (leftOut) return 'reaches none; the session warns'
  return called ? undefined : 'ignores them'
}

holds('mcp', 'a tool of an MCP server that the session hands over is called', () => callTool('served', 'noted'))
holds('mcpHttp', 'so is one of a server over HTTP', () => callTool('reaching', 'noted-far'))

/** Names of the models that the fake model was asked for so far, the newest last. */
async function modelsAsked(): Promise<string[]> {
  type Asked = { model?: string; path: string; kind?: string; tools?: string[] }
  const log = (await (await fetch(`${base}/__log`)).json()) as Asked[]
  // Some have the model in the path; names of sessions and the like are asked for without tools, of other models.
  return log.flatMap(({ model, path, kind, tools = [] }) =>
    kind && tools.length > 0 ? [model ?? /models\/([^:]+):/.exec(path)?.[1] ?? ''] : [],
  )
}

/** The model of a turn as the fake model saw it: of the newest request that a prompt made. */
async function modelOf(at: string): Promise<string> {
  await answers(at)
  return (await modelsAsked()).at(-1) ?? ''
}

holds(
  'model',
  'another model is the one that the next request goes to: of a session, chosen later, and dropped again',
  async () => {
    const { id, at } = await world.session('free')
    const first = await modelOf(at)
    const { otherModel: model } = real
    const put = (runtime: Reply) => world.kernel.request('PUT', `${at}/runtime`, { expected_revision: null, runtime })
    const { provider } = await world.row(id)
    if (model === undefined) {
      const { status, body } = await put({ provider, model: 'no-such-model' })
      assert.equal([status, body.code], [400, 'runtime_invalid'], JSON.stringify(body))
      await stop(id, at)
      return 'one model only; others are refused'
    }
    const chosen = await put({ provider, model })
    assert.is(chosen.status, 200, JSON.stringify(chosen.body))
    assert.is(chosen.body.session.runtime.effective.model, model)
    const second = await modelOf(at)
    assert.is.not(second, first)
    assert.is((await world.kernel.request('DELETE', `${at}/runtime?expected_revision=1`)).status, 200)
    const back = await modelOf(at)
    // One that its own list does not have may be refused; the session says so.
    const isRefused = (await world.events(at)).some(({ content }) => content.warning === 'runtime_not_taken')
    if (!isRefused) assert.is(back, first, 'as it began')
    await stop(id, at)
    const other = await world.session('free', { model })
    assert.is(await modelOf(other.at), second, 'from the beginning')
    await stop(other.id, other.at)
    return isRefused ? 'to models of its list alone; the session warns' : undefined
  },
)

holds('models', 'the models that it offers are those of its provider', async () => {
  const source = `acp:${real.provider}`
  const refreshed = await world.kernel.request('POST', '/api/model-catalog/models/refresh', { source_id: source })
  assert.is(refreshed.status, 200, JSON.stringify(refreshed.body))
  const { body } = await world.kernel.request('GET', `/api/model-catalog/providers/${real.provider}/models`)
  const found = body.models.filter((model: Reply) => model.sources.some((one: Reply) => one.source_id === source))
  const { otherModel } = real
  if (found.length === 0 && otherModel === undefined) return 'lists none'
  assert.ok(found.length > 0, JSON.stringify(body))
  if (otherModel)
    assert.ok(
      found.some((model: Reply) => model.model_id === otherModel),
      JSON.stringify(found),
    )
  return undefined
})

holds('job', 'an automation job runs it and says how that ended', async () => {
  const request = world.kernel.request
  const job = {
    name: 'once',
    agent_name: 'free',
    prompt: `[[forget]]${real.tool('touch by-job', false)}[[say:job done]]`,
  }
  const scope = { scope: 'workspace', workspace_id: world.workspaceId }
  const created = await request('POST', '/api/automation/jobs', {
    ...job,
    ...scope,
    schedule: { mode: 'every', interval: '24h' },
  })
  assert.is(created.status, 201, JSON.stringify(created.body))
  const { id } = created.body.job
  const triggered = await request('POST', `/api/automation/jobs/${id}/trigger`, {})
  assert.ok(triggered.status < 300, JSON.stringify(triggered.body))
  const run = await eventually('the end of the run', async () => {
    const { body } = await request('GET', `/api/automation/jobs/${id}/runs`)
    return body.runs.find(({ status }: Reply) => ['completed', 'failed', 'canceled'].includes(status))
  })
  assert.equal([run.status, run.error], ['completed', undefined])
  assert.ok(existsSync(path.join(world.root, 'by-job')))
  assert.is((await world.row(run.session_id)).sandbox?.backend, 'bubblewrap')
  return undefined
})

holds('sandbox', 'in a sandbox, a session that asks: its shell runs what was allowed, and nothing before', async () => {
  const { id, at } = await world.session('asking', { sandbox: 'default' })
  const turn = await send(at, `[[forget]]${real.tool('touch in-sandbox', real.asksInSandbox === true)}[[say:tried]]`)
  const over = (event: Reply) =>
    event.turn_id === turn && (['done', 'error'].includes(event.type) || event.content.status === 'pending')
  const first = await until(at, 'a question or the end', event => over(event) && event.type !== 'tool_call')
  if (first.type === 'permission') {
    assert.is(existsSync(path.join(world.root, 'in-sandbox')), false)
    const answer = { request_id: first.content.request_id, turn_id: turn, decision: 'allow-once' }
    assert.is((await world.kernel.request('POST', `${at}/approve`, answer)).status, 200)
  }
  const { end } = await ended(at, turn)
  assert.is(end.type, 'done', JSON.stringify(end))
  assert.is((await world.row(id)).sandbox?.backend, 'bubblewrap')
  const made = existsSync(path.join(world.root, 'in-sandbox'))
  await stop(id, at)
  assert.ok(made)
  assert.ok(first.type === 'permission' || real.neverAsks, 'it asked')
  return first.type === 'permission' ? undefined : 'runs without asking'
})

test('no process remains', async () => {
  await world.restart()
  const { body } = await world.kernel.request('GET', '/api/status')
  assert.equal([body.sessions.active, body.subprocess_health.monitored], [0, 0])
})

test.run()
