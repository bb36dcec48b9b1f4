import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { StartedDaemon } from '../../../../testing/daemon.js'

const CONFIG = '{\n  // mine\n  "http": { "port": 0 }\n}\n'
const test = suite<{ daemon: StartedDaemon }>('svc config commands')

test.before(async context => {
  context.daemon = await StartedDaemon.start({ config: CONFIG })
})
test.after(({ daemon }) => daemon.stop())

const RESTART = 'takes effect with a restart (svc daemon restart)'

test('a live key applies at once, a restart-required key reports that it waits', async ({ daemon }) => {
  const said = async (...args: string[]) => {
    const { code, stdout, stderr } = await daemon.cli('config', ...args)
    assert.is(code, 0, `${args.join(' ')}: ${stderr}`)
    return stdout.trimEnd()
  }
  assert.is(await said('set', 'log.level', 'debug'), 'log.level: in effect now')
  assert.is(await said('get', 'log.level'), 'debug')
  assert.is(await said('set', 'log.level', 'debug'), 'no changes')
  assert.is(
    await said('set', 'limits.max_concurrent_agents', '3', '--dry-run'),
    `limits.max_concurrent_agents would be changed: written; ${RESTART}`,
  )
  assert.is(await said('get', 'limits.max_concurrent_agents'), '20')
  const set = await said('set', 'limits.max_concurrent_agents', '3')
  assert.is(set, `limits.max_concurrent_agents: written; ${RESTART}`)
  const { stdout, stderr } = await daemon.cli('config', 'get', 'limits.max_concurrent_agents')
  assert.equal([stdout, stderr], ['20\n', `note: 3 ${RESTART}\n`])
  assert.match(await said('validate'), /config\.json is valid\n/)
  assert.match(await said('show', 'limits.max_concurrent_agents'), /Value +20\n.*Pending +3\n/s)
  assert.match(await said('check'), /is valid\nWaiting for a restart .*: limits\.max_concurrent_agents$/)
  await daemon.restart()
  assert.is(await said('get', 'limits.max_concurrent_agents'), '3')
  assert.match(await said('apply-history'), /applied +limits\.max_concurrent_agents +restart-required/)
  await said('unset', 'log.level')
  await said('unset', 'limits.max_concurrent_agents')
  assert.match(await said('path'), /config\.json$/)
  const text = await readFile(path.join(daemon.home, 'config.json'), 'utf8')
  assert.ok(text.startsWith(CONFIG.slice(0, -3)), text)
})

test('an empty key is a usage error of the command', async ({ daemon }) => {
  const { code, stderr } = await daemon.cli('config', 'set', '', '1')
  assert.is(code, 2)
  assert.match(stderr, /the name of the key must not be empty/)
})

test('a part of a value is set, map entries have names, and --json is the reply of the daemon', async ({ daemon }) => {
  const json = async (...args: string[]) => JSON.parse((await daemon.cli('config', ...args, '--json')).stdout)
  assert.is((await json('set', 'automation.default_fire_limit.max', '7')).lifecycle, 'restart-required')
  assert.equal((await json('show', 'automation.default_fire_limit')).pending, { max: 7, window: '1h' })
  assert.is((await json('set', 'agents.heartbeat.min_interval', '6m')).lifecycle, 'live')
  assert.is(await json('get', 'agents.heartbeat.min_interval'), '6m')
  assert.is((await json('set', 'providers.mine', '{"command":"cat"}')).lifecycle, 'live-add')
  assert.is((await json('set', 'providers.mine.display_name', 'Mine')).lifecycle, 'session-rebind')
  assert.equal(await json('get', 'providers.mine'), { command: 'cat', display_name: 'Mine' })
  assert.is((await json('unset', 'providers.mine')).lifecycle, 'live-remove-if-unused')
  const { keys } = await json('list', '--prefix', 'automation.')
  assert.equal(
    keys.filter(({ source }: { source: string }) => source !== 'default').map(({ key }: { key: string }) => key),
    ['automation.default_fire_limit'],
  )
})

test('an editor opens config.json, and the saved file is applied', async ({ daemon }) => {
  const file = path.join(daemon.home, 'config.json')
  const svc = path.join(import.meta.dirname, '../../../../dist/bin/svc')
  const edit = async (script: string) => {
    const editor = path.join(daemon.home, 'editor.sh')
    await writeFile(editor, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    const env = { PATH: process.env.PATH, SVC_HOME: daemon.home, EDITOR: editor }
    return promisify(execFile)(process.execPath, [svc, 'config', 'edit'], { env }).catch(error => error)
  }
  assert.match((await edit('true')).stdout, /^no changes$/m)
  const saved = await edit(`sed -i 's#// mine#// ours\\n  "log": { "level": "warn" },#' "$1"`)
  assert.match(saved.stdout, /^saved; /m, saved.stderr)
  assert.match(await readFile(file, 'utf8'), /ours/)
  assert.match((await daemon.cli('config', 'get', 'log.level')).stdout, /^warn$/m)
  const broken = await edit(`cp "$1" "$1.good" && echo '{ "log": 7 }' > "$1"`)
  assert.match(broken.stderr, /config\.json:1: log: .*\n {2}code: config_reload_invalid/)
  await edit('mv "$1.good" "$1"')
  assert.is((await edit('exit 3')).code, 1)
})

test('an invalid value is named and changes nothing', async ({ daemon }) => {
  const file = path.join(daemon.home, 'config.json')
  const before = await readFile(file, 'utf8')
  for (const [args, status, text] of [
    [
      ['set', 'htpp.port', '1'],
      4,
      /there is no setting "htpp\.port"\n {2}code: setting_not_found\n {2}next: svc config list/,
    ],
    [['set', 'http', '{}'], 4, /"http" is a group of settings, like http\.\w+/],
    [['set', 'http.port', 'many'], 7, /http\.port: .*\n {2}code: setting_invalid/],
    [['get', 'providers.nobody'], 4, /providers\.nobody is not set/],
    [['validate', 'no-such-file'], 2, /no-such-file/],
  ] as const) {
    const { code, stderr } = await daemon.cli('config', ...args)
    assert.is(code, status, `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, text)
  }
  await writeFile(path.join(daemon.home, 'next.json'), '{ "log": { "level": "loud" } }')
  const judged = await daemon.cli('config', 'validate', path.join(daemon.home, 'next.json'))
  assert.is(judged.code, 7)
  assert.match(judged.stdout, /next\.json is not valid:\s+config\.json:1: log\.level/)
  assert.is(await readFile(file, 'utf8'), before)
})

test.run()
