import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { type Making, type Scene, scene, until } from './scene.js'

let world: Scene
let clock: VirtualClock
test.before(async () => {
  clock = new VirtualClock()
  const env = {
    PATH: process.env.PATH,
    HOME: '/somewhere',
    LANG: 'C',
    LC_ALL: 'C',
    SVC_HOME: '/svc',
    A_TOKEN: 'abcd',
    B: 'b',
  }
  world = await scene({ clock, env })
})
test.after(() => world.close())

/** Why the start of a process is refused. */
async function refusal(making: Making): Promise<string> {
  const { runtime } = await world.make(making)
  const outcome = await runtime.start().then(
    () => 'it started',
    error => String(error.message),
  )
  await runtime.stop({ deadlineMs: 0 })
  return outcome
}

test('a process gets its grants in the handshake and names itself', async () => {
  const { runtime, tell, extension } = await world.make({
    permissions: ['resources/list', 'resources/snapshot'],
    publish: { families: ['window_layouts'], max_scope: 'workspace' },
    subprocess: { health_check_interval: '7s' },
  })
  assert.is(runtime.health().health, 'unknown')
  await runtime.start()
  const { session_nonce: nonce, svc_version: version, ...greeting } = await tell('greeting')
  assert.match(nonce, /^[0-9a-f]{32}$/)
  assert.is(version, world.kernel.needs.host.version)
  assert.equal(greeting, {
    protocol_version: '1',
    supported_protocol_versions: ['1'],
    extension: { name: extension.name, version: '1.2.3', source_tier: 'user' },
    capabilities: {
      provides: ['tool.provider'],
      granted_permissions: ['resources/list', 'resources/snapshot'],
      granted_resource_kinds: ['window_layout'],
      granted_resource_scopes: ['workspace'],
    },
    methods: { daemon_requests: ['health_check', 'shutdown'], extension_services: ['provide_tools', 'tools/call'] },
    runtime: {
      data_dir: path.join(world.host.home, 'extension-data', extension.key),
      health_check_interval_ms: 7000,
      health_check_timeout_ms: 5000,
      shutdown_timeout_ms: 10_000,
      default_hook_timeout_ms: 5000,
    },
  })
  assert.ok((runtime.health().pid ?? 0) > 1)
  await runtime.stop()
  assert.equal(runtime.state, { status: 'stopped' })
  assert.is(runtime.health().pid, undefined)
})

test('a process gets the standard variables and those of its manifest', async () => {
  const { runtime, tell, extension } = await world.make({
    subprocess: {
      env: { DATA: '{{config_dir}}/data', BOTH: '{{env:B}}-{{env:B}}', PLAIN: '{{other}}' },
      secret_env: { KEY: 'env:A_TOKEN' },
    },
  })
  await runtime.start()
  const { PATH, SVC_HOME_ID, SVC_PROCESS_ID, ...rest } = await tell('environment')
  assert.ok(PATH && SVC_HOME_ID && SVC_PROCESS_ID)
  assert.equal(rest, {
    HOME: '/somewhere',
    LANG: 'C',
    LC_ALL: 'C',
    DATA: `${extension.root}/data`,
    BOTH: 'b-b',
    PLAIN: '{{other}}',
    KEY: 'abcd',
  })
  await runtime.stop()
})

const capabilities = (provides: string[], permissions: string[]) => ({
  reply: { accepted_capabilities: { provides, permissions } },
})
const refusals: readonly (readonly [string, Making, RegExp])[] = [
  ['another protocol', { ways: { reply: { protocol_version: '2' } } }, /speaks protocol 2; supported: 1/],
  ['no name', { ways: { reply: { extension_info: {} } } }, /extension_info\.name/],
  ['an undeclared provision', { ways: capabilities(['model.source'], []) }, /not offered: model\.source/],
  ['an undeclared permission', { ways: capabilities([], ['tasks/list']) }, /not offered: tasks\/list/],
  ['no health check', { ways: { reply: { implemented_methods: ['shutdown'] } } }, /not implement: health_check/],
  [
    'an unimplemented service',
    { ways: { reply: { implemented_methods: ['shutdown', 'health_check', 'provide_tools'] } } },
    /not implement: tools\/call/,
  ],
  ['an immediate exit', { ways: { at: 'exit' } }, /the process ended with code 3/],
  ['a missing program', { subprocess: { command: 'no-such-program' } }, /command not found: no-such-program/],
  ['a missing path', { subprocess: { command: './no-such' } }, /no-such of .* does not exist/],
  ['a command outside the extension', { subprocess: { command: '/bin/sh' } }, /leads out of/],
  ['an unset variable', { subprocess: { env: { A: '{{env:NO_SUCH}}' } } }, /\[subprocess.env\] A needs NO_SUCH/],
  ['an unset secret', { subprocess: { secret_env: { A: 'env:NO_SUCH' } } }, /secret_env\] A needs NO_SUCH/],
  [
    'a secret of the vault',
    { subprocess: { secret_env: { A: 'vault:x/y' } } },
    /A is vault:x\/y, but nothing resolves vault references yet/,
  ],
]
for (const [what, making, expected] of refusals) {
  test(`a start is refused: ${what}`, async () => {
    assert.match(await refusal(making), expected)
  })
}

test('a process without a handshake reply is killed after five seconds', async () => {
  const { runtime } = await world.make({ ways: { at: 'silent' } })
  const started = runtime.start().catch(error => String(error.message))
  await until(() => runtime.health().pid !== undefined)
  const pid = runtime.health().pid ?? 0
  await clock.advance(4000)
  assert.is(runtime.state.status, 'starting')
  await clock.advance(1500)
  assert.match(String(await started), /no answer to initialize within 5 s/)
  assert.throws(() => process.kill(pid, 0), /ESRCH/)
  await runtime.stop()
})

test('a process may call nothing before its handshake reply', async () => {
  const { runtime, said } = await world.make({ ways: { at: 'initialize-host' }, permissions: ['resources/list'] })
  await runtime.start()
  // Its program may say something of its own before.
  await until(() => said().includes('not_initialized'))
  assert.match(said(), /not_initialized/)
  await runtime.stop()
})

test('an aborted start leaves nothing', async () => {
  const { runtime } = await world.make({ ways: { at: 'silent' } })
  const started = runtime.start().catch(error => error.code)
  await runtime.stop({ deadlineMs: 0 })
  assert.is(await started, 'extension_not_running')
  assert.equal(runtime.state, { status: 'stopped' })
})

test.run()
