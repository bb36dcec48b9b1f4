// proof, timeout: 120s: extensions that misbehave, one by one
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { daemon, extensions, resources } from '../../../../plugins/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { until } from '../../../harness/until.js'
import { isActive, isGone, scene, textExtension, type Wire } from './scene.js'

const staticOne = (name: string, more = '') => ({ 'extension.toml': `name = "${name}"\nversion = "1.0.0"\n${more}` })

test('an extension that cannot be loaded is an error named by the doctor and blocks no other', async () => {
  const taken = textExtension('acme.taken', 'x')
  const svc = await scene({
    'acme.good': textExtension('acme.good', 'well'),
    plain: staticOne('plain'),
    'acme.throws': textExtension('acme.throws', 'x', "throw new Error('boom at the start')"),
    'acme.never': textExtension('acme.never', 'x', 'await new Promise(() => {})'),
    'acme.import': {
      ...textExtension('acme.import', 'x'),
      'text.js': "throw new Error('boom at the import')\nexport const text = ''\n",
    },
    'acme.other': textExtension('acme.another', 'x'),
    'acme.taken': { ...taken, 'main.js': String(taken['main.js']).replace('/api/ext/acme.taken/say', '/api/status') },
    'acme.missing': staticOne('acme.missing', 'apiVersion = 1\nmain = "gone.js"\n'),
    broken: { 'extension.toml': 'name = "broken"\nversion = "1.0.0"\ncolour = "red"\n' },
    later: staticOne('later', 'min_svc_version = "99.0.0"\n'),
    empty: { 'README.md': 'nothing' },
  })
  // The boot did not wait for any of them.
  assert.is((await svc.request('GET', '/api/status/identity')).status, 200)
  const expected: Record<string, RegExp> = {
    'acme.throws': /boom at the start/,
    'acme.import': /boom at the import/,
    'acme.never': /no end within 5000 ms/,
    'acme.other': /contains an extension named acme\.another/,
    'acme.taken': /route \/api\/status is not below \/api\/ext\/acme\.taken/,
    'acme.missing': /^main: gone\.js .* does not exist/,
    broken: /extension\.toml:3: colour: unknown member/,
    later: /requires svc 99\.0\.0/,
    empty: /no extension\.toml and no extension\.json/,
  }
  for (const [name, says] of Object.entries(expected)) {
    const extension = await svc.until(name, found => says.test(found?.last_error))
    assert.is(extension.state, 'error')
    assert.match(extension.last_error, says)
  }
  await svc.until('acme.good', isActive)
  await svc.until('plain', isActive)
  assert.equal((await svc.request('GET', '/api/ext/acme.good/say')).body, { text: 'well' })

  const { body } = await svc.request('GET', '/api/doctor')
  const named = body.items.filter((item: Wire) => item.code === 'extension_failed')
  assert.equal(
    named.map((item: Wire) => item.id).sort(),
    Object.keys(expected)
      .map(name => `extension.${name}`)
      .sort(),
  )
  const helps = (name: string) => named.find((item: Wire) => item.id === `extension.${name}`).suggested_command
  assert.match(helps('broken'), /^edit .*broken\/extension\.toml, line 3$/)
  assert.is(helps('acme.throws'), 'svc extension logs acme.throws')

  // Nothing of those that failed is left behind, and mending one is enough.
  assert.equal(
    svc.kernel.host.plugins().flatMap(({ name }) => (name.includes('.') ? [name] : [])),
    ['acme.good'],
  )
  await svc.drop('acme.throws', textExtension('acme.throws', 'mended'))
  await svc.until('acme.throws', isActive)
  await svc.close()
})

test('enabling and disabling survive a restart; an unload leaves no tap, timer, handle or route', async () => {
  const home = await temporaryFolder('extensions')
  const body = `
    kernel.scope.defer('something', () => {})
    const timer = setInterval(() => { globalThis.acmeTicks = (globalThis.acmeTicks ?? 0) + 1 }, 10)
    kernel.scope.defer('timer', () => clearInterval(timer))`
  const one = await scene({ 'acme.hello': textExtension('acme.hello', 'hello', body) }, { home })
  await one.until('acme.hello', isActive)
  const holds = () => one.kernel.host.plugins().find(({ name }) => name === 'acme.hello')?.holds
  assert.equal(holds(), ['something', 'timer', 'tap routes@1'])
  // The number of timers of the process would not do: other plugins arm and end theirs meanwhile.
  const ticks = () => (globalThis as { acmeTicks?: number }).acmeTicks ?? 0
  const pause = () => new Promise(resolve => setTimeout(resolve, 200))
  const before = ticks()
  await until(() => ticks() !== before, 'a tick of the timer')
  const off = await one.request('POST', '/api/extensions/acme.hello/disable')
  assert.is(off.body.extension.state, 'disabled')
  assert.is(holds(), undefined)
  const last = ticks()
  await pause()
  assert.is(ticks(), last)
  assert.is((await one.request('GET', '/api/ext/acme.hello/say')).status, 404)
  await one.close()

  const two = await scene({}, { home })
  await two.until('acme.hello', extension => extension?.state === 'disabled')
  assert.is((await two.request('POST', '/api/extensions/acme.hello/reload')).status, 409)
  const on = await two.request('POST', '/api/extensions/acme.hello/enable')
  assert.is(on.body.extension.state, 'active')
  assert.equal((await two.request('GET', '/api/ext/acme.hello/say')).body, { text: 'hello' })
  const again = await two.request('POST', '/api/extensions/acme.hello/reload')
  assert.is(again.status, 200)
  assert.is((await two.request('GET', '/api/extensions/none')).status, 404)
  await two.remove('acme.hello')
  await two.until('acme.hello', isGone)
  await two.close()
})

test('a guard that refuses keeps the extension loaded', async () => {
  const { Extensions } = await import('../../../../plugins/delivery/extensions/api.js')
  const { definePlugin, Fault, surfaceOf } = await import('../../../../kernel/plugin.js')
  const { tap } = surfaceOf<object>()
  const keeper = definePlugin({
    name: 'keeper',
    version: '1',
    requires: { extensions: Extensions },
    service: async () => class {},
  }).surface({
    taps: [
      tap(
        Extensions,
        api => api.disabling,
        () => async name => new Fault('in_use', 409, `act_1 uses ${name}`),
      ),
    ],
  })
  const svc = await scene({ plain: staticOne('plain') }, { plugins: [daemon, resources, extensions, keeper] })
  await svc.until('plain', isActive)
  const { status, body } = await svc.request('POST', '/api/extensions/plain/disable')
  assert.is(status, 409)
  assert.is(body.code, 'in_use')
  assert.is((await svc.request('GET', '/api/extensions/plain')).body.extension.enabled, true)
  await svc.close()
})

test('a record of an extension kind stays raw without the extension, and counts again with it', async () => {
  const files = textExtension('acme.hello', 'hello')
  const withKind = {
    ...files,
    'main.js': String(files['main.js'])
      .replace('definePlugin, ok', 'definePlugin, kind, ok')
      .replace('.surface({', ".surface({ kinds: [kind({ name: 'acme.thing', spec: v.object({ size: v.number() }) })],"),
  }
  const svc = await scene({ 'acme.hello': withKind })
  await svc.until('acme.hello', isActive)
  const put = (spec: unknown, id: string) =>
    svc.request('PUT', `/api/resources/acme.thing/${id}`, { scope: { kind: 'global' }, spec, expected_version: 0 })
  assert.is((await put({ size: 'large' }, 'a')).status, 422)
  assert.is((await put({ size: 3 }, 'a')).status, 201)
  await svc.remove('acme.hello')
  await svc.until('acme.hello', isGone)
  assert.equal((await svc.request('GET', '/api/resources/acme.thing/a')).body.record.spec, { size: 3 })
  assert.is((await put({ size: 'large' }, 'b')).status, 201)
  await svc.drop('acme.hello', withKind, true)
  await svc.until('acme.hello', isActive)
  assert.is((await put({ size: 'large' }, 'c')).status, 422)
  await svc.close()
})

test('a start reads manifests from its cache, except changed ones', async () => {
  const home = await temporaryFolder('extensions')
  const one = await scene({ plain: staticOne('plain', 'description = "old"\n') }, { home })
  await one.until('plain', isActive)
  await one.close()
  mkdirSync(path.join(home, 'extensions/plain'), { recursive: true })
  writeFileSync(path.join(home, 'extensions/plain/extension.toml'), 'name = "plain"\nversion = "2.0.0"\n')
  const two = await scene({}, { home })
  assert.is((await two.until('plain', isActive)).version, '2.0.0')
  await two.close()
})

/** The files of an extension with a kind and a command of these names. */
function owning(name: string, kind: string, command: string): Record<string, string> {
  const files = textExtension(name, name)
  const main = String(files['main.js'])
    .replace('import { definePlugin,', 'import { definePlugin, kind,')
    .replace('routes: [', `kinds: [kind({ name: '${kind}', spec: v.object({}), maxBytes: 1000 })],\n  routes: [`)
    .replace(/cli: \{ path: '[^']*'/, `cli: { path: '${command}'`)
  return { ...files, 'main.js': main }
}

test('a duplicate kind or command is an error of the later extension, and the rest continues', async () => {
  const seen: { kernel?: PluginKernel<{ events: typeof Events }> } = {}
  class Watcher {
    constructor(kernel: PluginKernel<{ events: typeof Events }>) {
      seen.kernel = kernel
    }
  }
  const watcher = definePlugin({
    name: 'watcher',
    version: '1',
    requires: { events: Events },
    service: async () => Watcher,
  }).surface({})
  const first = { 'acme.first': owning('acme.first', 'acme.thing', 'acme first') }
  const svc = await scene(first, { plugins: [daemon, resources, extensions, watcher] })
  await svc.until('acme.first', isActive)
  await svc.drop('acme.kind', owning('acme.kind', 'acme.thing', 'acme kind'), true)
  await svc.drop('acme.command', owning('acme.command', 'acme.other', 'acme first'), true)
  const expected: Record<string, RegExp> = { 'acme.kind': /kind acme\.thing/, 'acme.command': /command acme first/ }
  for (const [name, says] of Object.entries(expected)) {
    const extension = await svc.until(name, found => found?.last_error !== undefined)
    assert.is(extension.state, 'error')
    assert.match(extension.last_error, says)
    assert.match(extension.last_error, /acme\.first/)
    assert.is((await svc.request('GET', `/api/ext/${name}/say`)).status, 503)
  }
  assert.equal((await svc.request('GET', '/api/ext/acme.first/say')).body, { text: 'acme.first' })
  // A first load that fails is no reload that failed.
  assert.equal(await seen.kernel?.needs.events.list({ name: 'extension.reload.failed' }), [])
  await svc.close()
})

test.run()
