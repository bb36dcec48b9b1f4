// alone: its extensions tell it by global variables how far they are
import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { temporaryFolder } from '../../../harness/kernel.js'
import { isActive, scene, textExtension } from './scene.js'

const manifest = (name: string) => `name = "${name}"\nversion = "1.0.0"\napiVersion = 2\nmain = "main.js"\n`
const code = (name: string, head: string) => ({
  'extension.toml': manifest(name),
  'main.js': `import { token } from 'svc/plugin'
export default { name: '${name}', version: '1.0.0', surface: {}, ${head}, apply: () => ({}) }\n`,
})

test('disabling a required extension names its dependent, which waits until it is enabled again', async () => {
  const svc = await scene({
    'acme.lower': code('acme.lower', "requires: {}, provides: token('acme.lower@1')"),
    'acme.upper': code('acme.upper', "requires: { lower: token('acme.lower@1') }"),
  })
  await svc.until('acme.upper', isActive)
  await svc.until('acme.lower', isActive)
  const { status, body } = await svc.request('POST', '/api/extensions/acme.lower/disable')
  assert.is(status, 200)
  const [warning] = body.extension.diagnostics
  assert.equal([warning.code, warning.severity], ['extension_required', 'warning'])
  assert.match(warning.message, 'acme.upper')
  const upper = await svc.until('acme.upper', extension => extension?.state === 'registered')
  assert.is.not(upper?.health, 'healthy')
  assert.match(upper?.health_message, /acme\.lower@1/)
  const { items } = (await svc.request('GET', '/api/doctor?only=extensions')).body
  assert.equal(
    items.map(({ code }: { code: string }) => code),
    ['extension_waiting'],
  )
  await svc.request('POST', '/api/extensions/acme.lower/enable')
  const again = await svc.until('acme.upper', isActive)
  assert.is(again?.health, 'healthy')
  await svc.close()
})

test('purging an extension removes the records of its kinds by any author, and no others', async () => {
  const files = textExtension('acme.keep', 'hello')
  const svc = await scene({
    'acme.keep': {
      ...files,
      'main.js': String(files['main.js'])
        .replace('definePlugin, ok', 'definePlugin, kind, ok')
        .replace('.surface({', ".surface({ kinds: [kind({ name: 'acme.thing', spec: v.object({}) })],"),
    },
  })
  await svc.until('acme.keep', isActive)
  for (const kind of ['acme.thing', 'acme.other']) {
    const record = { scope: { kind: 'global' }, spec: {}, expected_version: 0 }
    assert.is((await svc.request('PUT', `/api/resources/${kind}/a`, record)).status, 201)
  }
  assert.is((await svc.request('DELETE', '/api/extensions/acme.keep?purge=true')).status, 200)
  assert.is((await svc.request('GET', '/api/resources/acme.thing/a')).status, 404)
  assert.is((await svc.request('GET', '/api/resources/acme.other/a')).status, 200)
  await svc.close()
})

test('a kernel stopped while an extension loads logs no error of it', async () => {
  const gates = globalThis as { loading?: () => void; until?: Promise<void> }
  const start = new Promise<void>(resolve => {
    gates.loading = resolve
  })
  let open = () => {}
  gates.until = new Promise(resolve => {
    open = resolve
  })
  const home = await temporaryFolder('stopping')
  const files = textExtension('acme.slow', 'hello')
  const main = `globalThis.loading()\nawait globalThis.until\n${files['main.js']}`
  const svc = await scene({ 'acme.slow': { ...files, 'main.js': main } }, { home })
  await start
  await svc.close()
  open()
  await new Promise(resolve => setTimeout(resolve, 500))
  assert.equal(
    svc.log.filter(({ level }) => level === 'error').map(({ msg }) => msg),
    [],
  )
  await rm(home, { recursive: true, maxRetries: 5 })
})

test.run()
