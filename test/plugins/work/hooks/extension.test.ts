// timeout: 120s: an extension in Python beside the daemon
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import extensions from '../../../../plugins/delivery/extensions/index.js'
import { eventually } from '../../../fixtures/session-world.js'
import { openScene, type Scene } from './scene.js'

const guard = path.join(import.meta.dirname, '../../../../examples/extensions/guard-python')

let scene: Scene
test.before(async () => {
  scene = await openScene({}, { plugins: [extensions] })
  await scene.agent('free', { permissions: 'approve-all' })
})
test.after(() => scene.close())

const request: Scene['kernel']['request'] = (...args) => scene.kernel.request(...args)
const active = (name: string) =>
  eventually(async () => {
    const { body } = await request('GET', `/api/extensions/${name}`)
    return body.extension?.state === 'active' && body.extension
  }, `the process of ${name}`)
const folder = (name: string) => path.join(scene.home, 'extensions', name)

test('an extension process denies and patches like a warm program', async () => {
  await cp(guard, folder('guard-python'), { recursive: true })
  await active('guard-python')
  const { hooks } = (await request('GET', '/api/hooks/catalog?source=extension')).body
  const shown = ({ name, owner, executor_kind, warm, extension, priority, command }: Record<string, unknown>) => [
    name,
    owner,
    executor_kind,
    warm,
    extension,
    priority,
    command,
  ]
  assert.equal(hooks.map(shown), [
    ['guard', 'guard-python', 'subprocess', true, 'guard-python', 300, undefined],
    ['preview', 'guard-python', 'subprocess', true, 'guard-python', 300, undefined],
  ])
  const { id, at } = await scene.session('free', { sandbox: 'none' })
  const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, kind, name: kind }))
  const ask = (command: string) => {
    const toolCall = { toolCallId: command, kind: 'execute', title: command, rawInput: { command } }
    return scene.prompt(at, `ask ${JSON.stringify({ toolCall, options })}`)
  }
  await ask('sudo rm -r -f /')
  const denied = await scene.ran(id, run => run.hook_name === 'guard' && run.outcome === 'denied')
  assert.equal([denied.source, denied.patch_applied.reason], ['extension', 'rm -rf is not for agents'])
  await ask('ls -la')
  await scene.ran(id, run => run.hook_name === 'guard' && run.outcome === 'applied')
  await writeFile(path.join(scene.root, 'kept'), 'x')
  const create = { command: 'rm', args: ['-rf', 'kept'] }
  await scene.prompt(at, `call terminal/create ${JSON.stringify(create)}`)
  const run = await scene.ran(id, one => one.hook_name === 'preview' && one.patch_applied !== undefined)
  assert.equal(run.patch_applied, { input: { command: 'ls', args: ['-d', '--', 'kept'] } })
  assert.is(await readFile(path.join(scene.root, 'kept'), 'utf8'), 'x')
})

const NODE = `require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  const say = result => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
  if (method === 'initialize') say({
    protocol_version: '1',
    extension_info: { name: 'odd', version: '1.0.0' },
    accepted_capabilities: { provides: [], permissions: [] },
    implemented_methods: ['health_check', 'shutdown'],
    supported_hook_events: ['input.pre_submit'],
  })
  else if (method === 'hooks/execute') { if (!params.payload.message.includes('hang')) say(params.payload.message.includes('text') ? 'text' : { patch: { decision: 'allow' } }) }
  else { say({ healthy: true, acknowledged: true }); if (method === 'shutdown') process.exit(0) }
})
`

test('a run fails when the extension process is unresponsive, invalid, forbidden or lacks the event', async () => {
  const hook = (name: string, event: string, more = '') =>
    `[[resources.hooks]]\nname = "${name}"\nevent = "${event}"\nmode = "sync"\n${more}`
  await mkdir(folder('odd'), { recursive: true })
  await writeFile(path.join(folder('odd'), 'main.cjs'), NODE)
  await writeFile(
    path.join(folder('odd'), 'extension.toml'),
    `name = "odd"\nversion = "1.0.0"\n[subprocess]\ncommand = "node"\nargs = ["main.cjs"]\n${hook('odd', 'input.pre_submit', 'timeout = "1s"\n')}${hook('unnamed', 'prompt.post_assemble')}`,
  )
  await active('odd')
  const { id, at } = await scene.session('free', { sandbox: 'none' })
  for (const [text, outcome, error] of [
    ['say hang', 'failed', /within 1 s|no end within/],
    ['say text', 'failed', /must answer with/],
    ['say patch', 'rejected', /cannot set "?decision"?/],
  ] as const) {
    await scene.prompt(at, text)
    const run = await scene.ran(id, one => one.hook_name === 'odd' && error.test(one.error ?? ''))
    assert.is(run.outcome, outcome)
  }
  const unnamed = await scene.ran(id, one => one.hook_name === 'unnamed')
  assert.match(unnamed.error, /does not name prompt.post_assemble in supported_hook_events/)
})

test('a required hook denies while its extension process is not running', async () => {
  const { id, at } = await scene.session('free', { sandbox: 'none' })
  const off = await request('POST', '/api/extensions/guard-python/disable')
  assert.is(off.status, 200, JSON.stringify(off.body))
  const { hooks } = (await request('GET', '/api/hooks/catalog?source=extension')).body
  assert.equal(
    hooks.map(({ owner }: { owner: string }) => owner),
    ['odd', 'odd'],
  )
  await writeFile(
    path.join(folder('odd'), 'extension.toml'),
    'name = "odd"\nversion = "1.0.1"\n[subprocess]\ncommand = "node"\nargs = ["main.cjs"]\n[[resources.hooks]]\nname = "strict"\nevent = "prompt.post_assemble"\nmode = "sync"\nrequired = true\n',
  )
  await eventually(async () => {
    const { hooks: now } = (await request('GET', '/api/hooks/catalog?event=prompt.post_assemble')).body
    return now.length === 1 && now[0].name === 'strict' && (await active('odd'))
  }, 'the strict hook')
  await scene.prompt(at, 'say nothing')
  const run = await scene.ran(id, one => one.hook_name === 'strict')
  assert.is(run.outcome, 'failed')
})

test('a hook with neither a command nor a process is skipped in its extension and named', async () => {
  await mkdir(folder('none'), { recursive: true })
  await writeFile(
    path.join(folder('none'), 'extension.toml'),
    'name = "none"\nversion = "1.0.0"\n[[resources.hooks]]\nname = "a"\nevent = "turn.end"\n',
  )
  const found = await eventually(async () => {
    const { body } = await request('GET', '/api/extensions/none')
    return body.extension?.state === 'active' && body.extension
  }, 'the extension')
  assert.match(JSON.stringify(found.diagnostics), /a hook has a command/)
  const { hooks } = (await request('GET', '/api/hooks/catalog?source=extension')).body
  assert.not.ok(hooks.some(({ owner }: { owner: string }) => owner === 'none'))
})

test.run()
