// proof, timeout: 240s
import { execFileSync, spawn } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type ScriptedModel, scriptedModel } from '../fixtures/scripted-model.js'
import { Installed, processesWith } from './installed.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const terminal = join(root, 'test/fixtures/terminal.py')

const use = (name: string, input: unknown) => ({ calls: [{ name, input }] })
const repair = [
  use('run', { command: 'node --test' }),
  use('read', { path: 'sum.js' }),
  use('edit', { path: 'sum.js', old_text: 'a - b', new_text: 'a + b' }),
  use('run', { command: 'node --test' }),
  { text: 'The test passes now.' },
]

let model: ScriptedModel
let svc: Installed
let repository: string

test.before(async () => {
  model = await scriptedModel([{ id: 'tiny' }])
  svc = new Installed()
  repository = svc.makeRepository('repository')
  writeFileSync(join(repository, 'sum.js'), 'exports.sum = (a, b) => a - b\n')
  const check = "require('node:test')('adds', () => require('node:assert').equal(require('./sum').sum(1, 2), 3))\n"
  writeFileSync(join(repository, 'sum.test.js'), check)
})
test.after(async () => {
  await svc.remove()
  await model.close()
})

test('nothing runs before an endpoint is configured, and the message names the command', async () => {
  await svc.svc('daemon', 'start')
  const providers = await svc.json<{ providers: { name: string; auth_status: { state: string; message?: string } }[] }>(
    'provider',
    'list',
  )
  const own = providers.providers.find(({ name }) => name === 'svc')
  assert.is(own?.auth_status.state, 'missing')
  assert.match(own?.auth_status.message ?? '', 'no endpoint is configured for svc-agent; set one: svc init')
  await svc.svc('daemon', 'stop')
})

test('svc init stores the endpoint and refuses an invalid one', async () => {
  const refused = await svc.run(['init', '--yes', '--endpoint', 'ftp://somewhere'])
  assert.is(refused.code, 2)
  assert.match(refused.stderr, 'endpoint_invalid')
  const { code, stdout } = await svc.run(['init', '--yes', '--endpoint', model.url])
  assert.is(code, 0)
  assert.match(stdout, `svc-agent: ${model.url} (--endpoint; 1 model)`)
  const { providers, defaults } = JSON.parse(readFileSync(join(svc.home, 'config.json'), 'utf8'))
  assert.equal(providers, { svc: { base_url: model.url } })
  assert.equal(defaults, { provider: 'svc' })
})

let session: string

test('svc run repairs a repository: questions are answered, the test passes, and a diff is shown', async () => {
  model.script(repair)
  const argv = [terminal, process.execPath, join(root, 'dist/bin/svc'), 'run', 'Fix the failing test']
  const child = spawn('python3', argv, { cwd: repository, env: svc.env, stdio: ['pipe', 'pipe', 'inherit'] })
  let stdout = ''
  let answered = 0
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
    // A person answers when the question is there.
    const questionCount = stdout.match(/\? (?:run|edit): [\s\S]*?instead: /g)?.length ?? 0
    for (; answered < questionCount; answered++) setTimeout(() => child.stdin.write('y'), 500)
  })
  const code = await new Promise(resolve => child.once('close', resolve))
  const shown = stripVTControlCharacters(stdout)
  session = /ses_[0-9a-f]+/.exec(shown)?.[0] ?? ''
  assert.is(code, 0, shown)
  assert.is(answered, 3)
  assert.match(shown, 'passes')
  assert.match(shown, /1 file changed:\s+~ sum.js/)
  execFileSync('node', ['--test'], { cwd: repository, env: svc.env })
  const [transcript = ''] = readdirSync(join(svc.home, 'providers/svc/sessions'))
  assert.match(transcript, /^svc-.*\.json$/)
})

/** Texts of the messages that the newest request had. */
const conversation = () => JSON.stringify(model.asked.at(-1)?.messages)

test('the conversation continues after a cancel, a restart of the daemon, and the death of the agent', async () => {
  const slow = { text: 'word '.repeat(600), dripMs: 50 }
  model.script([slow, { text: 'after the cancel' }, { text: 'after the restart' }, slow, { text: 'after the death' }])
  const cancelled = svc.start(['session', 'prompt', session, 'slowly'])
  await cancelled.shows(/word word/)
  await svc.svc('session', 'cancel', session)
  await cancelled.ended
  assert.match(await svc.svc('session', 'prompt', session, 'two'), 'after the cancel')
  await svc.svc('daemon', 'restart')
  assert.match(await svc.svc('session', 'prompt', session, 'three'), 'after the restart')
  assert.match(conversation(), 'Fix the failing test')
  assert.match(conversation(), 'after the cancel')
  const killed = svc.start(['session', 'prompt', session, 'slowly again'])
  await killed.shows(/word word/)
  const agents = processesWith(`SVC_SESSION_ID=${session}`)
  assert.is(agents.length, 1)
  process.kill(agents[0] ?? 0, 'SIGKILL')
  await killed.ended
  assert.match(await svc.svc('session', 'prompt', session, 'four'), 'after the death')
  assert.match(conversation(), 'after the restart')
})

test('the conversation in a sandbox continues after a restart of the daemon', async () => {
  model.script([{ text: 'inside' }, { text: 'inside again' }])
  const began = await svc.run(['run', '--sandbox', 'default', 'Remember the sandbox'], repository)
  assert.is(began.code, 0, began.stdout + began.stderr)
  const id = /ses_[0-9a-f]+/.exec(began.stdout)?.[0] ?? ''
  await svc.svc('daemon', 'restart')
  assert.match(await svc.svc('session', 'prompt', id, 'and now'), 'inside again')
  const last = (model.asked.at(-1)?.messages ?? []) as { role: string }[]
  const roles = last.map(({ role }) => role)
  assert.equal(roles.slice(-3), ['user', 'assistant', 'user'], conversation())
  assert.equal(readdirSync(join(svc.home, 'providers/svc/sessions')).length, 2)
})

test('a key of the vault reaches the endpoint and no command of the model', async () => {
  model.script([use('run', { command: 'env | grep -c of-the-vault' }), { text: 'done' }])
  const put = execFileSync('dist/bin/svc', ['vault', 'put', 'vault:providers/svc/OPENAI_API_KEY', '--value-stdin'], {
    env: svc.env,
    input: 'sk-of-the-vault-of-the-test',
  })
  assert.ok(put.length > 0)
  const { code, stdout, stderr } = await svc.run(
    ['run', '--permissions', 'approve-all', '--sandbox', 'none', 'Look'],
    repository,
  )
  assert.is(code, 0, stdout + stderr)
  assert.is(model.asked.at(-1)?.authorization, 'Bearer sk-of-the-vault-of-the-test')
  assert.match(model.results().at(-1) ?? '', /^0\n\[exit code 1\]/)
})

test.run()
