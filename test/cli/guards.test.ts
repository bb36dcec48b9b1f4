import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { FakeDaemon, runCli } from './fake-daemon.js'
import { data, dist } from './tree.js'

const test = suite<{ daemon: FakeDaemon }>('confirmation of commands')
test.before.each(async context => {
  context.daemon = await FakeDaemon.start()
  context.daemon.version = data.version
})
test.after.each(({ daemon }) => daemon.remove())

const requestsOf = (daemon: FakeDaemon) => daemon.asked.splice(0).map(({ method, url }) => `${method} ${url}`)

test('a record of an unknown kind is stored only with --force', async ({ daemon }) => {
  const kinds = [
    { kind: 'automation.job', registered: true },
    { kind: 'left.over', registered: false },
  ]
  daemon.reply('GET /api/status', 200, { health: { reconcile: { kinds } } })
  for (const kind of ['nope', 'left.over', 'automation.job'])
    daemon.reply(`PUT /api/resources/${kind}/x`, 200, { record: { version: 1 } })
  const put = (...argv: string[]) =>
    runCli(daemon.home, ['resource', 'put', ...argv, '--spec', '{}'], { data, root: dist })
  for (const kind of ['nope', 'left.over']) {
    const { code, stderr } = await put(kind, 'x')
    assert.is(code, 1)
    assert.match(stderr, `no plugin has the kind "${kind}"`)
    assert.match(
      stderr,
      `known kinds: automation.job\n  code: kind_unknown\n  next: svc resource put ${kind} x --file spec.json --force`,
    )
  }
  assert.equal(requestsOf(daemon), ['GET /api/status', 'GET /api/status'])
  assert.is((await put('nope', 'x', '--force')).code, 0)
  assert.is((await put('automation.job', 'x')).code, 0)
  assert.equal(requestsOf(daemon).at(0), 'PUT /api/resources/nope/x')
})

test('an extension is installed after a yes on a terminal, and at once with --yes or without a terminal', async ({
  daemon,
}) => {
  const extension = { name: 'acme.hello', version: '1.0.0', state: 'active' }
  const none = {
    permissions: [],
    permissions_added: [],
    permissions_dropped: [],
    requires_env: [],
    brings: [],
    new_brings: [],
    decision: 'local source',
  }
  const preview = { name: 'acme.hello', version: '1.0.0', action: 'install', tree_digest: 'sha256:1', ...none }
  daemon.reply('POST /api/extensions/preview', 200, { preview })
  daemon.reply('POST /api/extensions', 201, { extension })
  const install = async (typed?: string[], ...more: string[]) => {
    const argv = ['extension', 'install', './acme.hello', ...more]
    const ran = await runCli(daemon.home, argv, { data, root: dist, ...(typed && { typed }) })
    assert.is(ran.code, 0, ran.stderr)
    return requestsOf(daemon).includes('POST /api/extensions')
  }
  assert.is(await install(), true, 'no terminal')
  assert.is(await install(['y']), true)
  assert.is(await install([], '--yes'), true)
  for (const answer of ['n', '', 'what']) assert.is(await install([answer]), false, answer)
})

test('a cancel without a running prompt says so in words', async ({ daemon }) => {
  daemon.reply('GET /api/sessions/ses_0000000000000001/owner', 200, { workspace_id: 'ws_1' })
  const url = '/api/workspaces/ws_1/sessions/ses_0000000000000001/prompt/cancel'
  daemon.reply(`POST ${url}`, 200, { outcome: 'no_active_prompt', session_id: 'ses_0000000000000001' })
  const { stdout, stderr } = await runCli(daemon.home, ['session', 'cancel', 'ses_0000000000000001'], {
    data,
    root: dist,
  })
  assert.is(stdout, 'Outcome  no prompt was running\n', stderr)
})

const URGENCY = ['error', 'warning', 'info']

test('the doctor checks what it can without a daemon', async ({ daemon }) => {
  await daemon.stop()
  const doctor = (...more: string[]) =>
    runCli(daemon.home, ['doctor', ...more], { data, root: dist, env: { PATH: '/nowhere' } })
  const { code, stdout, stderr } = await doctor()
  assert.equal([code, stderr], [3, ''])
  assert.match(stdout, /^SEVERITY +ITEM.*\nerror +daemon +no daemon is running.* svc daemon start\n/)
  assert.is(stdout.split('svc daemon start').length, 2, 'the next step is named once')
  assert.match(stdout, /\ninfo +config +config\.json can be read/)
  assert.match(stdout, /\nwarning +runtime\.providers +no agent program is on the PATH.*npm install -g/)
  writeFileSync(join(daemon.home, 'config.json'), '{')
  const { items } = JSON.parse((await doctor('--json')).stdout)
  const config = items.find(({ id }: { id: string }) => id === 'config')
  assert.equal([config.severity, config.code], ['error', 'config_invalid'])
  const order = items.map(({ severity }: { severity: string }) => severity)
  assert.equal(
    order,
    order.toSorted((a: string, b: string) => URGENCY.indexOf(a) - URGENCY.indexOf(b)),
  )
})

test.run()
