import { spawnSync } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { redaction, vault } from '../../../../plugins/index.js'
import { agentText, eventually, isAlive } from '../../../fixtures/session-world.js'
import { openScene, type Scene, warmPython } from './scene.js'

/** One hook each that misbehaves in its own way; all may look at every command that an agent has the daemon run. */
const PROGRAMS: Readonly<Record<string, string>> = {
  hangs: '#!/bin/sh\nsleep 1000\n',
  floods: '#!/bin/sh\nyes 1234567 | head -c 200000\n',
  garbage: '#!/bin/sh\necho "no json"\n',
  list: '#!/bin/sh\necho "[1]"\n',
  dies: '#!/bin/sh\necho "it broke" >&2\nexit 3\n',
  escalates: '#!/bin/sh\necho \'{"decision":"deny","deny":false,"message":"x"}\'\n',
  'warm-dies': warmPython('os._exit(4)'),
  'warm-hangs': warmPython('time.sleep(1000)'),
  'warm-junk': '#!/bin/sh\nyes junk\n',
}
const OUTCOME: Readonly<Record<string, [string, RegExp]>> = {
  hangs: ['failed', /1000|in time|took|late|longer/],
  floods: ['failed', /longer than 65536 bytes/],
  garbage: ['failed', /invalid JSON/],
  list: ['failed', /JSON object/],
  dies: ['failed', /exit code 3: it broke/],
  escalates: ['rejected', /"decision"|"message"/],
  'warm-dies': ['failed', /exit code 4/],
  'warm-hangs': ['failed', /1000|in time|took|late|longer/],
  'warm-junk': ['failed', /invalid answer lines|flood/],
}

let scene: Scene
const create = `call terminal/create ${JSON.stringify({ command: 'echo', args: ['done'] })}`
const turn = [create, 'terminal terminal/wait_for_exit', 'terminal terminal/output'].join('\n')

test.before(async () => {
  scene = await openScene()
  await scene.agent('free')
})
test.after(() => scene.close())

const declaration = async (name: string, more: object = {}) => ({
  event: 'tool.pre_call',
  command: await scene.program(name, PROGRAMS[name] ?? '#!/bin/sh\n'),
  warm: name.startsWith('warm'),
  mode: 'sync',
  // The others end by themselves, however long the machine takes for that.
  timeout: name.endsWith('hangs') ? '1000ms' : '60s',
  ...more,
})
const drop = (name: string) => scene.kernel.request('DELETE', `/api/settings/hooks/${name}`)

for (const name of Object.keys(PROGRAMS)) {
  test(`a hook that ${name}: its run fails and the call proceeds; a required hook denies it`, async () => {
    await scene.configure({ [name]: await declaration(name) })
    const free = await scene.session('free')
    assert.match(agentText(await scene.prompt(free.at, turn)), /"output":"done/)
    const [run] = await scene.runs(free.id, '&event=tool.pre_call')
    const [outcome, words] = OUTCOME[name]!
    assert.is(run.outcome, outcome)
    assert.is(run.hook_name, name)
    assert.match(run.error, words)
    await scene.configure({ [name]: await declaration(name, { required: true }) })
    const held = await scene.session('free')
    assert.match(
      agentText(await scene.prompt(held.at, create)),
      new RegExp(`error permission denied: required hook ${name}`),
    )
    await drop(name)
  })
}

test('a program that times out before it has started is stopped', async () => {
  const command = await scene.program('early', '#!/bin/sh\nsleep 600\n')
  await scene.configure({ early: { event: 'input.pre_submit', command, mode: 'sync', timeout: '1ms' } })
  const { id, at } = await scene.session('free')
  await scene.prompt(at, 'say hello')
  assert.is((await scene.ran(id, run => run.hook_name === 'early')).outcome, 'failed')
  const runs = () => spawnSync('pgrep', ['-f', command], { encoding: 'utf8' }).stdout.trim()
  await eventually(async () => runs() === '', 'the end of the program')
  await drop('early')
  await scene.kernel.request('POST', `${at}/stop`)
})

test('a program that leaves a background process answers when it ends, and both are killed', async () => {
  const command = await scene.program('leaves', '#!/bin/sh\nsleep 600 &\necho \'{"message": "say left"}\'\n')
  await scene.configure({ leaves: { event: 'input.pre_submit', command, mode: 'sync', timeout: '5m' } })
  const { id, at } = await scene.session('free')
  assert.is(agentText(await scene.prompt(at, 'say hello')), 'left\n')
  assert.is((await scene.ran(id, run => run.hook_name === 'leaves')).outcome, 'applied')
  await drop('leaves')
  await scene.kernel.request('POST', `${at}/stop`)
})

test('a hook with a missing program fails, and the next hook runs', async () => {
  const gone = await declaration('gone')
  await scene.configure({
    gone,
    after: { ...(await declaration('after')), command: await scene.program('after', '#!/bin/sh\necho {}\n') },
  })
  await rm(gone.command)
  const { id, at } = await scene.session('free')
  await scene.prompt(at, turn)
  const runs = await scene.runs(id, '&event=tool.pre_call')
  assert.equal(runs.map(({ hook_name, outcome }) => [hook_name, outcome]).sort(), [
    ['after', 'applied'],
    ['gone', 'failed'],
  ])
  await Promise.all(['gone', 'after'].map(drop))
})

test('a warm program is restarted after a crash, and stopped when its declaration is removed', async () => {
  const command = await scene.program(
    'once.py',
    warmPython(`if p.get("title", "").endswith("die"): os._exit(1)
return {"input": {"command": "echo", "args": [str(os.getpid())]}}`),
  )
  await scene.configure({ once: { event: 'tool.pre_call', command, warm: true, mode: 'sync', timeout: '30s' } })
  const { at } = await scene.session('free')
  const pid = async () => Number(/"output":"(\d+)/.exec(agentText(await scene.prompt(at, turn)))?.[1])
  const first = await pid()
  assert.is(await pid(), first)
  await scene.prompt(at, `call terminal/create ${JSON.stringify({ command: 'echo', args: ['die'] })}`)
  const second = await pid()
  assert.ok(second > 0 && second !== first)
  assert.ok(isAlive(second))
  await drop('once')
  for (let looks = 0; looks < 2400 && isAlive(second); looks++) await new Promise(resolve => setTimeout(resolve, 25))
  assert.not.ok(isAlive(second))
})

test('a secret at the cut of a hook output is not kept in part', async () => {
  const hidden = await openScene({}, { plugins: [redaction, vault] })
  try {
    await hidden.agent('free')
    const token = 'a-secret-that-is-longer-than-what-is-left-of-the-words'
    const kept = { ref: 'vault:mcp/words', secret_value: token }
    assert.is((await hidden.kernel.request('PUT', '/api/vault/secrets', kept)).status, 200)
    const command = await hidden.program('leaks', `#!/bin/sh\nprintf '%0985d %s\\n' 0 ${token} >&2\nexit 3\n`)
    await hidden.configure({ leaks: { event: 'tool.pre_call', command, mode: 'sync', timeout: '60s' } })
    const { id, at } = await hidden.session('free')
    await hidden.prompt(at, turn)
    const [run] = await hidden.runs(id, '&event=tool.pre_call')
    assert.match(run.error, /exit code 3: 0000/)
    assert.not.match(run.error, token.slice(0, 8))
  } finally {
    await hidden.close()
  }
})

test.run()
