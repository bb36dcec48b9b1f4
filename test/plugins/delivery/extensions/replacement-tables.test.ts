import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createKernel } from '../../../../kernel/index.js'
import { type Plugin, type PluginKernel, token } from '../../../../kernel/plugin.js'
import { daemon, extensions, replacements, resources } from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { isActive, scene } from './scene.js'

const name = 'acme.base'
const count = (kernel: PluginKernel) => kernel.db.tx(t => void t.run('INSERT INTO base_count (n) VALUES (1)'))
const tables = [{ id: '001-count', sql: 'CREATE TABLE base_count (n INTEGER NOT NULL) STRICT' }]
const base: Plugin = {
  name: 'base',
  version: '1.0.0',
  requires: {},
  provides: token('base@1'),
  surface: { tables },
  apply: kernel => count(kernel),
}

/** A replacement that writes the table of `base` and one of its own. */
const files = (table = 'acme_base_extra') => ({
  'extension.toml': `name = "${name}"\nversion = "1.0.0"\napiVersion = 1\nmain = "main.js"\nreplaces = "base"\n`,
  'main.js': `import { token } from 'svc/plugin'
export default { name: '${name}', version: '1.0.0', replaces: 'base', provides: token('base@1'), requires: {},
  surface: { tables: [{ id: 'acme-001', sql: 'CREATE TABLE ${table} (n INTEGER NOT NULL) STRICT' }] },
  apply: ({ db }) => db.tx(t => {
    t.run('INSERT INTO base_count (n) VALUES (1)')
    t.run('INSERT INTO ${table} (n) VALUES (1)')
  }) }\n`,
})
const config = JSON.stringify({ plugins: { replace: [name] } })
const plugins = [daemon, resources, extensions, base]

type Svc = Awaited<ReturnType<typeof scene>>
const stateOf = (svc: Svc) => {
  const found = svc.kernel.host.plugins().find(plugin => plugin.name === 'base')
  return [found?.state.status, found?.replacedBy].filter(Boolean).join(' by ')
}

test('a replacement with its own migration is enabled, disabled, restarted, removed and purged, and the original runs', async () => {
  const home = await temporaryFolder('tables')
  const options = { home, plugins, replacements }
  const first = await scene({}, options)
  assert.is(stateOf(first), 'active')
  await first.close()

  const svc = await scene({ [name]: files() }, { ...options, config })
  await svc.until(name, isActive)
  assert.is(stateOf(svc), `active by ${name}`)
  await svc.request('POST', `/api/extensions/${name}/disable`)
  assert.is(stateOf(svc), 'active')
  await svc.request('POST', `/api/extensions/${name}/enable`)
  assert.is(stateOf(svc), `active by ${name}`)
  await svc.request('POST', `/api/extensions/${name}/disable`)
  await svc.close()

  const again = await scene({}, options)
  assert.is(stateOf(again), 'active')
  await again.request('POST', `/api/extensions/${name}/enable`)
  assert.is(stateOf(again), `active by ${name}`)
  assert.is((await again.request('DELETE', `/api/extensions/${name}?purge=true`)).status, 200)
  assert.is(stateOf(again), 'active')
  await again.close()

  const last = await scene({}, options)
  assert.is(stateOf(last), 'active')
  await last.close()
  await rm(home, { recursive: true, maxRetries: 5 })
})

test('a home with a replacement migration in the stream of the plugin, as in earlier versions, works', async () => {
  const home = await temporaryFolder('tables')
  const foreign = { id: 'acme-001', sql: 'CREATE TABLE base_extra (n INTEGER NOT NULL) STRICT' }
  const before = await createKernel({ home, plugins: [{ ...base, surface: { tables: [...tables, foreign] } }] })
  await before.close()

  const options = { home, plugins, replacements }
  const without = await scene({}, options)
  assert.is(stateOf(without), 'active')
  await without.close()
  const svc = await scene({ [name]: files('base_extra') }, { ...options, config })
  await svc.until(name, isActive)
  assert.is(stateOf(svc), `active by ${name}`)
  await svc.request('POST', `/api/extensions/${name}/disable`)
  assert.is(stateOf(svc), 'active')
  await svc.close()
  // The version before finds all of its migrations.
  const old = await createKernel({ home, plugins: [{ ...base, surface: { tables: [...tables, foreign] } }] })
  assert.equal(
    old.host.plugins().map(({ state }) => state.status),
    ['active'],
  )
  await old.close()
  await rm(home, { recursive: true, maxRetries: 5 })
})

test.run()
