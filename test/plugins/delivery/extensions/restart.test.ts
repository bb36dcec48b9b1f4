// alone: its extensions tell it by global variables how far they are
import { readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agents, bundles, daemon, extensions, providers, resources, workspaces } from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { REQUEST } from '../bundles/bundles-scene.js'
import { profile, writeKit } from '../bundles/kit.js'
import { hasFailed, isActive, scene, textExtension } from './scene.js'

/** Code of extensions waits for it before it is imported to its end. */
const gates = globalThis as { gate?: Promise<void>; reached?: () => void }

function close(): () => void {
  let open = () => {}
  gates.gate = new Promise(resolve => {
    open = resolve
  })
  return open
}

/** A home whose extension `acme.say` was loaded once. */
async function loadedHome(): Promise<string> {
  const home = await temporaryFolder('restart')
  gates.gate = Promise.resolve()
  const files = textExtension('acme.say', 'hello')
  const { 'main.js': main = '' } = files
  const svc = await scene({ 'acme.say': { ...files, 'main.js': `await globalThis.gate\n${main}` } }, { home })
  await svc.until('acme.say', isActive)
  await svc.close()
  // Other code, for Node imports a file once.
  await writeFile(path.join(home, 'extensions/acme.say/text.js'), "export const text = 'hello again'\n")
  return home
}

const items = async (svc: Awaited<ReturnType<typeof scene>>) =>
  (await svc.request('GET', '/api/doctor?exclude=daemon.node')).body.items as {
    code: string
    severity: string
    message: string
  }[]

/** What the doctor finds wrong. */
const wrong = async (svc: Awaited<ReturnType<typeof scene>>) =>
  (await items(svc)).flatMap(({ code, severity, message }) => (severity === 'info' ? [] : [`${code}: ${message}`]))

test('a request to a route of an installed extension waits until it is loaded after a restart', async () => {
  const home = await loadedHome()
  const open = close()
  const svc = await scene({}, { home })
  let replied = false
  const request = svc.request('GET', '/api/ext/acme.say/say').finally(() => {
    replied = true
  })
  const posted = svc.request('POST', '/api/ext/acme.say/say', { any: 'body' })
  const unknown = await svc.request('GET', '/api/ext/acme.nobody/say')
  assert.equal([unknown.status, unknown.body.code], [404, 'route_not_found'])
  assert.equal(await wrong(svc), [])
  assert.not(replied)
  open()
  assert.equal([(await request).status, (await request).body.text], [200, 'hello again'])
  assert.is((await posted).status, 404, 'a loaded extension answers 404 for what it has no route')
  await svc.close()
  await rm(home, { recursive: true, maxRetries: 5 })
})

test('a request that waits over 5 s for an extension gets a retry time', async () => {
  const home = await loadedHome()
  const open = close()
  const svc = await scene({}, { home })
  const late = await svc.request('GET', '/api/ext/acme.say/say')
  assert.equal([late.status, late.body.code, late.headers['retry-after']], [503, 'extension_loading', '1'])
  assert.match(late.body.error, 'acme.say')
  open()
  await svc.until('acme.say', isActive)
  await svc.close()
  await rm(home, { recursive: true, maxRetries: 5 })
})

test('a route of a failed extension names it and the reason, that of a disabled one how to enable it', async () => {
  const home = await temporaryFolder('restart')
  const svc = await scene({ 'acme.bad': textExtension('acme.bad', '', "throw new Error('no luck')") }, { home })
  await svc.until('acme.bad', hasFailed)
  const refused = await svc.request('GET', '/api/ext/acme.bad/say')
  assert.equal([refused.status, refused.body.code], [503, 'extension_not_loaded'])
  assert.match(refused.body.error, /acme\.bad .*no luck/)
  assert.match(refused.body.details.next, 'svc extension info acme.bad')
  await svc.request('POST', '/api/extensions/acme.bad/disable')
  const off = await svc.request('GET', '/api/ext/acme.bad/say')
  assert.equal(
    [off.status, off.body.code, off.body.details.next],
    [404, 'route_not_found', 'svc extension enable acme.bad'],
  )
  await svc.close()
  await rm(home, { recursive: true, maxRetries: 5 })
})

test('a list of extensions right after a restart is complete', async () => {
  const home = await loadedHome()
  gates.gate = Promise.resolve()
  const svc = await scene({}, { home })
  const { body } = await svc.request('GET', '/api/extensions')
  assert.equal(
    body.extensions.map(({ name, state }: { name: string; state: string }) => [name, state]),
    [['acme.say', 'active']],
  )
  await svc.close()
  await rm(home, { recursive: true, maxRetries: 5 })
})

test('a restart with an active bundle reports no fault; without its extension it reports one', async () => {
  const home = await temporaryFolder('restart')
  const kit = await writeKit(await temporaryFolder('restart-kit'), {
    profiles: [profile({ jobs: [], triggers: [], bridges: [], layouts: [] })],
  })
  const files = Object.fromEntries(
    await Promise.all(
      ['extension.json', 'bundles/kit.json', 'agents/planner/AGENT.md'].map(
        async file => [file, await readFile(path.join(kit, file), 'utf8')] as const,
      ),
    ),
  )
  const options = { home, plugins: [daemon, resources, workspaces, providers, agents, extensions, bundles] }
  const first = await scene({ 'demo-kit': files }, options)
  await first.until('demo-kit', isActive)
  const { activation } = (await first.request('POST', '/api/bundles/activations', REQUEST)).body
  const troubles = async (svc: typeof first) =>
    (await wrong(svc))
      .filter(text => /demo-kit|bundle/.test(text))
      .concat(svc.log.flatMap(({ level, msg }) => (level === 'warn' && /bundle/.test(msg) ? [msg] : [])))
  assert.equal(await troubles(first), [])
  await first.close()

  const again = await scene({}, options)
  assert.equal(await troubles(again), [], 'before the extension is loaded')
  const { body } = await again.request('GET', `/api/bundles/activations/${activation.id}`)
  assert.is(body.activation.channels.length, activation.channels.length, 'the profile is known')
  await again.until('demo-kit', isActive)
  assert.equal(await troubles(again), [], 'after it is loaded')
  await again.remove('demo-kit')
  await again.close()

  const without = await scene({}, options)
  const deadline = performance.now() + 60_000
  while ((await troubles(without)).length === 0) {
    assert.ok(performance.now() < deadline, 'waited in vain for the fault')
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  assert.match((await wrong(without)).join('\n'), /record_quarantined: there is no extension "demo-kit"/)
  await without.close()
  await rm(home, { recursive: true, maxRetries: 5 })
})

test('an extension setting applies after a restart, and the doctor reports nothing while it loads', async () => {
  const home = await loadedHome()
  const files = textExtension('acme.say', '', 'globalThis.volume = kernel.config.get(volume)')
  const main = (files['main.js'] ?? '')
    .replace(
      'const route',
      "const volume = { path: 'plugins.acme.say.volume', section: 'general', schema: v.number(), default: 1, apply: 'live' }\nawait globalThis.gate\nconst route",
    )
    .replace('.surface({', '.surface({ settings: [volume],')
  const config = (volume: unknown) => JSON.stringify({ plugins: { acme: { say: { volume } } } })
  const open = close()
  const svc = await scene({ 'acme.say': { ...files, 'main.js': main } }, { home, config: config(11) })
  assert.equal(await wrong(svc), [])
  open()
  await svc.until('acme.say', isActive)
  assert.is((globalThis as { volume?: number }).volume, 11)
  assert.equal(await wrong(svc), [])
  await svc.request('POST', '/api/extensions/acme.say/disable')
  const [item] = (await items(svc)).filter(({ code }) => code === 'config_unowned')
  assert.match(item?.message ?? '', 'acme.say')
  await svc.close()

  const again = await scene({ 'acme.ok': textExtension('acme.ok', 'fine') }, { home, config: config('loud') })
  await again.until('acme.ok', isActive)
  await again.request('POST', '/api/extensions/acme.say/enable')
  const { last_error } = await again.until('acme.say', hasFailed)
  assert.match(last_error, /config\.json:1: plugins\.acme\.say\.volume: /)
  assert.equal((await again.request('GET', '/api/ext/acme.ok/say')).body, { text: 'fine' })
  await again.close()
  await rm(home, { recursive: true, maxRetries: 5 })
})

test('a damaged manifest is no failure while the last good code is starting in its place', async () => {
  const home = await temporaryFolder('restart')
  gates.gate = Promise.resolve()
  const files = textExtension('acme.late', 'hello', 'globalThis.reached?.(); await globalThis.gate;')
  const before = await scene({ 'acme.late': files }, { home })
  await before.until('acme.late', isActive)
  await before.close()
  await writeFile(path.join(home, 'extensions/acme.late/extension.toml'), 'name = "acme.late\n')
  const open = close()
  const reached = new Promise<void>(resolve => {
    gates.reached = resolve
  })
  const svc = await scene({}, { home })
  try {
    await reached
    assert.equal(await wrong(svc), ['plugin_waiting: acme.late is still being started'])
    open()
    await svc.until('acme.late', isActive)
    assert.match((await wrong(svc)).join(), /^extension_outdated: .*extension\.toml:1: not valid TOML/)
  } finally {
    open()
    await svc.close()
    await rm(home, { recursive: true, maxRetries: 5 })
  }
})

test.run()
