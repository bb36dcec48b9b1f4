// alone: its extensions tell it by global variables how far they are
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Plugin, token } from '../../../../kernel/plugin.js'
import * as plugins from '../../../../plugins/index.js'
import { hasFailed, isActive, scene } from './scene.js'

type Options = NonNullable<Parameters<typeof scene>[1]>

/** Who was applied, in order; code of extensions shares nothing else with its test. */
const began: string[] = []
Object.assign(globalThis, { began })

const base: Plugin = {
  name: 'base',
  version: '1.0.0',
  requires: {},
  provides: token('base@1'),
  surface: {},
  apply: () => void began.push('base'),
}

const user: Plugin = { ...base, name: 'user', requires: { base: token('base@1') }, provides: token('user@1') }
const name = 'acme.base'
const config = JSON.stringify({ plugins: { replace: [name] } })

/** An extension that replaces `base`; `apply` and `more` are what of it is odd. */
const files = (apply = '', more = '', head = "provides: token('base@1'), requires: {}", surface = '{}') => ({
  'extension.toml': `name = "${name}"\nversion = "1.0.0"\napiVersion = 1\nmain = "main.js"\nreplaces = "base"\n`,
  'main.js': `import { token } from 'svc/plugin'\n${more}
export default { name: '${name}', version: '1.0.0', replaces: 'base', surface: ${surface}, ${head},
  apply() { globalThis.began.push('${name}'); ${apply} } }\n`,
})

const start = (dropped = {}, options: Options = {}) => {
  began.length = 0
  const inTree = [plugins.daemon, plugins.resources, plugins.extensions, base, { ...user, apply: () => {} }]
  return scene(dropped, { config, plugins: inTree, replacements: plugins.replacements, ...options })
}

type Svc = Awaited<ReturnType<typeof scene>>
const stateOf = (svc: Svc, wanted: string) => {
  const found = svc.kernel.host.plugins().find(plugin => plugin.name === wanted)
  return found && [found.state.status, found.replacedBy ?? ''].join(' ').trim()
}
const post = (svc: Svc, verb: string) => svc.request('POST', `/api/extensions/${name}/${verb}`)

test('a replacement named by the operator boots in place of the plugin, which never starts', async () => {
  const svc = await start({ [name]: files() })
  assert.equal(began, [name])
  assert.is(stateOf(svc, 'base'), `active ${name}`)
  await svc.until(name, isActive)
  await post(svc, 'disable')
  assert.equal(began, [name, 'base'])
  const { home } = svc
  await svc.kernel.close()

  // What is switched off is not begun with, and is not an error.
  const again = await start({}, { home })
  assert.equal(began, ['base'])
  assert.is(stateOf(again, name), undefined)
  await again.until(name, extension => extension?.state === 'disabled')
  await post(again, 'enable')
  assert.equal(began, ['base', name])
  await again.drop(name, files("globalThis.began.push('new')"))
  await again.until(name, () => began.includes('new'))
  assert.is(stateOf(again, 'base'), `active ${name}`)
  await again.close()
  await svc.close().catch(() => {})
})

test('faults of a replacement during the boot are in its own log, like later ones', async () => {
  const says =
    "arguments[0].log.info('at the boot', { n: 1 }); arguments[0].scope.defer('bad', () => { throw new Error('at its end') })"
  const svc = await start({ [name]: files(says) })
  await svc.until(name, isActive)
  const messages = async () => {
    const { logs } = (await svc.request('GET', `/api/extensions/${name}/logs`)).body
    return logs.map(({ message }: { message: string }) => message)
  }
  assert.equal((await messages()).slice(0, 2), ['info: at the boot {"n":1}', '[svc] loaded, version 1.0.0, active'])
  assert.ok(svc.log.some(({ msg }) => msg === 'at the boot'))
  await svc.drop(name, files("arguments[0].log.info('later')"))
  await svc.until(name, async () => (await messages()).includes('info: later'))
  assert.is((await messages()).filter((text: string) => text.includes('failed in release')).length, 1)
  await svc.close()
})

/** Why it cannot start, who was applied meanwhile, and what is told. */
const odd: readonly (readonly [string, Record<string, string>, readonly string[], RegExp])[] = [
  ['throws at apply', files("throw new Error('boom')"), [name, 'base'], /did not start: .*main\.js:\d+: boom/],
  ['has a syntax error', { ...files(), 'main.js': 'export default {' }, ['base'], /Unexpected/],
  ['throws at import', files('', "throw new Error('no')"), ['base'], /no/],
  ['provides something else', files('', '', "provides: token('base@2'), requires: {}"), ['base'], /provide base@1/],
  [
    'requires a missing service',
    files('', '', "provides: token('base@1'), requires: { x: token('x@1') }"),
    ['base'],
    /waits for .*x@1/,
  ],
  ['has no valid manifest', { ...files(), 'extension.toml': 'name = ' }, ['base'], /not valid TOML/],
]
for (const [what, dropped, applied, reason] of odd)
  test(`a replacement that ${what} leaves the plugin and its dependents running, and is reported`, async () => {
    const svc = await start({ [name]: dropped })
    assert.equal(began, applied)
    assert.is(stateOf(svc, 'base'), 'active')
    assert.is(stateOf(svc, 'user'), 'active')
    const extension = await svc.until(name, hasFailed)
    assert.match(extension.last_error, reason)
    const { items } = (await svc.request('GET', '/api/doctor')).body
    const codes = items.flatMap((item: { code: string; message: string }) =>
      reason.test(item.message) ? item.code : [],
    )
    assert.ok(codes.includes('extension_failed'), JSON.stringify(items))
    const unknown = items.filter(({ code }: { code: string }) => code === 'config_unknown_plugin')
    assert.equal(unknown, [], 'it is there, and does not load')
    assert.ok(svc.log.some(({ level, msg }) => level === 'error' && reason.test(msg)))
    // Its host comes to the same result, and takes nothing down to find out.
    assert.equal(began, applied)
    await svc.close()
  })

test('a replacement that takes foreign routes or settings fails instead of their owners', async () => {
  const setting =
    "{ path: 'extensions.trust.allow_unverified', section: 'general', schema: {}, default: 1, apply: 'live' }"
  const taking = files('', '', undefined, `{ settings: [${setting}] }`)
  const svc = await start({ [name]: taking })
  assert.is(stateOf(svc, 'extensions'), 'active')
  assert.is(stateOf(svc, 'base'), 'active')
  assert.match((await svc.until(name, hasFailed)).last_error, /is already registered by installer/)
  await svc.close()
})

test('a replacement that is skipped, disabled, missing or unnamed is not imported', async () => {
  const importing = { [name]: files('', 'globalThis.began.push("imported")') }
  const leftOut = [{ name, why: 'it blocked the event loop' }]
  for (const options of [{ leftOut }, { config: JSON.stringify({ plugins: { replace: [name], disabled: [name] } }) }]) {
    const svc = await start(importing, options)
    const extension = await svc.until(name, found => found?.state === 'registered')
    assert.match(extension.health_message, options.leftOut ? /it blocked the event loop/ : /plugins\.disabled/)
    assert.equal(began, ['base'])
    await svc.close()
  }
  const nobody = await start()
  assert.equal(began, ['base'])
  assert.equal(nobody.kernel.host.unknownPlugins(), [name])
  await nobody.close()
})

test('a reload retries a failed replacement, and removing its folder forgets it', async () => {
  const svc = await start({ [name]: files("if (globalThis.began.length < 3) throw new Error('boom')") })
  await svc.until(name, hasFailed)
  assert.equal(began, [name, 'base'])
  assert.is(stateOf(svc, name), 'failed')
  await post(svc, 'reload')
  await svc.until(name, isActive)
  assert.is(stateOf(svc, 'base'), `active ${name}`)
  await svc.remove(name)
  await svc.until(name, extension => extension === undefined)
  assert.is(stateOf(svc, 'base'), 'active')
  assert.is(stateOf(svc, name), undefined)
  await svc.close()
})

test.run()
