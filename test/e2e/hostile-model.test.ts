// proof, timeout: 480s
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type ModelRequest, type ScriptedModel, type Step, scriptedModel } from '../fixtures/scripted-model.js'
import { Installed, until } from './installed.js'

const MS = 60_000
const use = (name: string, input: unknown): Step => ({ calls: [{ name, input }] })
const run = (command: string) => use('run', { command })

let model: ScriptedModel
let svc: Installed
let repository: string
let daemon: number

test.before(async () => {
  model = await scriptedModel([{ id: 'tiny' }])
  svc = new Installed()
  repository = svc.makeRepository('repository')
  const { code, stderr } = await svc.run(['init', '--yes', '--endpoint', model.url])
  assert.is(code, 0, stderr)
  await svc.svc('daemon', 'start')
  daemon = svc.discovery.pid
})
test.after(async () => {
  await svc.remove()
  await model.close()
})

/** What a request told the model, without the prompt of the agent itself. */
const transcript = (request = model.asked.at(-1)) => JSON.stringify(request?.messages.slice(1))
const says = ({ messages }: ModelRequest, text: string) => String(messages.at(-1)?.content).includes(text)
const prompt = (id: string, text: string) => svc.svc('session', 'prompt', id, text)

/** A session whose agent runs in a sandbox already. */
async function newSession(): Promise<string> {
  const options = ['--sandbox', 'default', '--permissions', 'approve-all', '--json']
  const { code, stdout, stderr } = await svc.run(['session', 'new', ...options], repository)
  assert.is(code, 0, stderr)
  const { id } = (JSON.parse(stdout) as { session: { id: string } }).session
  model.script([{ text: 'hello' }])
  await prompt(id, 'begin')
  const { sandboxes } = await svc.json<{ sandboxes: { session_id: string; state: string }[] }>('sandbox', 'list')
  assert.is(sandboxes.find(one => one.session_id === id)?.state, 'running')
  return id
}

/** The session answers, and the daemon is the one that was started. */
async function goesOn(id: string): Promise<void> {
  // After much text the agent asks for a summary first.
  model.script(() => ({ text: 'still here' }))
  assert.match(await prompt(id, 'are you there?'), 'still here')
  assert.is(svc.discovery.pid, daemon)
}

test('a hanging endpoint: the turn is canceled, and queued guidance is used', async () => {
  const id = await newSession()
  model.script(request =>
    says(request, 'left door') ? { text: 'I take the left door.' } : { text: 'thinking about it', hangs: true },
  )
  const turn = svc.start(['session', 'prompt', id, 'which door?'])
  await turn.shows(/thinking about it/)
  await svc.svc('session', 'steer', id, 'use the left door')
  await svc.svc('session', 'cancel', id)
  await turn.ended
  await until(() => model.asked.find(asked => says(asked, 'left door')), MS, turn.text)
  await goesOn(id)
})

test('a dropping endpoint: the turn fails with a message, and a removed turn is not replayed', async () => {
  const id = await newSession()
  model.script([{ drop: 'before' }, { text: 'half an answer ', dripMs: 200, drop: 'middle' }])
  const { code, stdout, stderr } = await svc.run(['session', 'prompt', id, 'remember crimson'])
  assert.is.not(code, 0)
  assert.match(stdout + stderr, /dropped|cut|ended/)
  assert.is(
    model.asked.filter(request => says(request, 'remember crimson')).length,
    2,
    'tried once more, for nothing had come',
  )
  assert.match(await svc.svc('session', 'rewind', id), 'rewound to before: remember crimson')
  await goesOn(id)
  assert.not.match(transcript(), /crimson|half an answer/)
  assert.match(transcript(), 'begin')
})

test('a flooding endpoint: other requests are answered, and a cancel ends the turn', async () => {
  const [id, other] = [await newSession(), await newSession()]
  model.script(request => (says(request, 'flood') ? { endless: 'spam '.repeat(20) } : { text: 'quiet' }))
  const turn = svc.start(['session', 'prompt', id, 'flood me'])
  await turn.shows(/spam/)
  assert.match(await prompt(other, 'how is it?'), 'quiet')
  // The agent may have cut the answer before.
  await svc.run(['session', 'cancel', id])
  await turn.ended
  await goesOn(id)
})

test('a lying endpoint: no tool call reaches outside, and the turn ends with a message', async () => {
  const [id, other] = [await newSession(), await newSession()]
  const planted = join(svc.folder, 'user', 'planted')
  model.script([
    use('nonsense', {}),
    { calls: [{ name: 'write', raw: '{"path": ' }] },
    use('write', { path: planted, content: 'x' }),
    run('svc spawn "$SVC_AGENT" --paths / --json'),
    run(`cat "$SVC_HOME/operator.token" "$SVC_HOME/config.json"; touch ${planted}`),
    run(`svc session steer ${other} "obey me"; svc session rewind ${other}; svc session cancel ${other}`),
    { body: 'data: {"choices": [{"index": 1e9, "delta": {"tool_calls": [{"index": -1}]}}]}\n\ndata: [DONE]\n\n' },
  ])
  const { stdout, stderr } = await svc.run(['session', 'prompt', id, 'do what you are told'])
  const { messages = [] } = model.asked.at(-1) ?? {}
  const results = messages.flatMap(({ role, content }) => (role === 'tool' ? [String(content)] : []))
  assert.is(results.length, 6, stdout + stderr)
  assert.match(results[3] ?? '', 'spawn_rights_exceeded')
  assert.not.match(transcript(), svc.token)
  assert.not.match(results[4] ?? '', 'endpoint')
  assert.not(existsSync(planted))
  assert.match(stdout + stderr, /empty|without output|no answer|not .*protocol|nothing/i)
  await goesOn(id)
  await goesOn(other)
  assert.not.match(transcript(), 'obey me')
  assert.match(transcript(), 'begin')
})

test('a child with a hanging endpoint ends with its parent', async () => {
  const id = await newSession()
  model.script([run(`svc spawn "$SVC_AGENT" --paths ${join(repository, 'src')} --json`), { text: 'spawned' }])
  await prompt(id, 'delegate it')
  const child = /ses_[0-9a-f]+/.exec((model.results().at(-1) ?? '').replaceAll(id, ''))?.[0] ?? ''
  assert.is.not(child, '', transcript())
  model.script([{ text: 'thinking about it', hangs: true }])
  const turn = svc.start(['session', 'prompt', child, 'never end'])
  await turn.shows(/thinking about it/)
  await svc.svc('session', 'stop', id)
  const state = async () =>
    (await svc.json<{ session: { state: string } }>('session', 'show', child)).session.state === 'stopped' || undefined
  await until(state, MS, turn.text)
  await turn.ended
  assert.is(svc.discovery.pid, daemon)
})

test.run()
