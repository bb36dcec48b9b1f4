import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '../../../kernel/plugin.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import { base } from '../../../plugins/index.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'
import { plain } from '../../kernel/host/scene.js'
import { codes, doctor, guest } from '../guest-plugin.js'

test('plugins are listed with their state and shown with their resources and faults', async () => {
  const refuse = new Fault('no', 409, 'no')
  const { plugin } = guest({ refuse })
  const svc = await boot({ plugins: [daemon, plugin, plain('late', { requires: ['none@1'] })] })
  const { plugins } = (await svc.request('GET', '/api/plugins')).body
  assert.equal(
    plugins
      .filter(({ name }: { name: string }) => !base.some(one => one.name === name))
      .map(({ name, state, reason }: Record<string, string>) => [name, state, reason]),
    [
      ['daemon', 'active', undefined],
      ['guest', 'active', undefined],
      ['late', 'waiting', 'it waits for late → none@1'],
    ],
  )
  const shown = async () => (await svc.request('GET', '/api/plugins/guest')).body.plugin
  assert.equal((await shown()).requires, ['daemon@1', 'events@1', 'reconcile@1'])
  assert.ok((await shown()).holds.includes('tap daemon.admission'))
  assert.equal((await shown()).faults, [])
  const { body } = await svc.request('GET', '/api/plugins/daemon')
  assert.is(body.plugin.provides, 'daemon@1')
  assert.ok(body.plugin.holds.includes('service announce'))
  const missing = await svc.request('GET', '/api/plugins/none')
  assert.is(missing.status, 404)
  assert.is(missing.body.code, 'plugin_not_found')
  await svc.close()
})

test('a plugin shows its services and their users', async () => {
  const { plugin } = guest({ checks: [] })
  const svc = await boot({ plugins: [daemon, plugin] })
  const shown = async (query: string) => (await svc.request('GET', `/api/plugins/daemon${query}`)).body.plugin
  assert.is((await shown('')).surface, undefined, 'only where it is asked for')
  const { surface } = await shown('?surface=true')
  const find = (what: string, name: string) =>
    surface.find((one: { what: string; name: string }) => one.what === what && one.name === name)
  assert.equal(find('service', 'daemon@1').used_by, ['guest'])
  assert.equal(find('route', 'POST /api/drain').about, 'Refuse new work and let running work finish')
  for (const [what, name] of [
    ['command', 'svc drain'],
    ['tool', 'observe_doctor'],
    ['event', 'daemon.draining'],
    ['error', 'draining'],
    ['entries', 'secrets.resolvers@1'],
  ])
    assert.ok(find(what as string, name as string), `${what} ${name}`)
  assert.match(find('hook', 'admission').about, /^gate: ./)
  assert.equal(find('tapped', 'admission').used_by, ['guest'])
  assert.equal(find('registry', 'daemon.checks@1').used_by, ['guest'])
  await svc.close()
})

test('a repeated fault is one entry with a count, and one doctor item', async () => {
  const { plugin } = guest({
    checks: [],
    members: [],
    refuse: 'no fault at all' as never,
  })
  const svc = await boot({ plugins: [daemon, plugin] })
  for (let n = 0; n < 10; n++) assert.is((await svc.request('POST', '/api/guest/guest')).status, 500)
  const { faults } = (await svc.request('GET', '/api/plugins/guest')).body.plugin
  const admission = faults.filter(({ where }: { where: string }) => where === 'daemon.admission')
  assert.equal(
    admission.map(({ count }: { count: number }) => count),
    [10],
  )
  assert.is(
    codes(await doctor(svc, '?only=daemon.faults')).filter(code => code === 'plugin_fault').length,
    faults.length,
  )
  await svc.close()
})

test('the doctor names plugins in the configuration that do not exist', async () => {
  const home = await temporaryFolder('unknown')
  await writeFile(path.join(home, 'config.json'), '{ "plugins": { "disabled": ["typo"], "replace": ["vendor.typo"] } }')
  const svc = await boot({ plugins: [daemon], home })
  const { items } = await doctor(svc, '?only=config')
  assert.equal(
    items.map(({ id, code }: Record<string, string>) => [id, code]),
    [
      ['config.plugins.typo', 'config_unknown_plugin'],
      ['config.plugins.vendor.typo', 'config_unknown_plugin'],
    ],
  )
  await svc.close()
  await rm(home, { recursive: true })
})

test('a setting with a former plugin name has no effect, and the doctor names it with the fix', async () => {
  const home = await temporaryFolder('former')
  const names = '"disabled": ["old", "inner", "guest"], "replace": ["old"]'
  await writeFile(path.join(home, 'config.json'), `{ "plugins": { ${names} } }`)
  const { plugin } = guest({})
  const formerNames = { inner: 'kernel', old: 'daemon' }
  const svc = await boot({ plugins: [daemon, plugin], home, formerNames, critical: ['old', 'inner'] })
  const state = (name: string) => svc.kernel.host.plugins().find(one => one.name === name)?.state.status
  assert.is(state('daemon'), 'active')
  assert.is(state('guest'), 'disabled')
  const { items } = await doctor(svc, '?only=config')
  assert.equal(
    items.map(({ id, code, message, suggested_command }: Record<string, string>) => [
      id,
      code,
      message,
      suggested_command,
    ]),
    [
      [
        'plugins.disabled.inner',
        'config_former_plugin',
        'plugins.disabled names inner, which is now a part of the kernel and can no longer be disabled; the entry has no effect',
        `svc config set plugins.disabled '["guest"]'`,
      ],
      [
        'plugins.disabled.old',
        'config_former_plugin',
        'plugins.disabled names old, which is now a part of the plugin daemon and can no longer be disabled; the entry has no effect',
        `svc config set plugins.disabled '["guest"]'`,
      ],
      [
        'plugins.replace.old',
        'config_former_plugin',
        'plugins.replace names old, which is now a part of the plugin daemon and can no longer be replaced; the entry has no effect',
        'svc config unset plugins.replace',
      ],
    ],
  )
  const shown = async (name: string) => (await svc.request('GET', `/api/plugins/${name}`)).body
  assert.is((await shown('old')).error, 'no plugin is named old: it is now a part of the plugin daemon')
  assert.is((await shown('old')).details.next, 'svc plugin show daemon')
  assert.is((await shown('inner')).error, 'no plugin is named inner: it is now a part of the kernel')
  assert.is((await shown('inner')).details.next, 'svc plugin list')
  assert.is((await shown('toString')).error, 'no plugin is named toString')
  await svc.close()
  await rm(home, { recursive: true })
})

test.run()
