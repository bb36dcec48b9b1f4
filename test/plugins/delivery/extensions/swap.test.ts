import { cp, readdir, realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Plugin, PluginKernel } from '../../../../kernel/plugin.js'
import * as plugins from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { isActive, isGone, scene } from './scene.js'

const name = 'acme.workspaces'
const folder = fileURLToPath(new URL(`../../../../examples/extensions/${name}`, import.meta.url))

test('an extension replaces a built-in plugin in a running kernel, with its data, and gives it back', async () => {
  const home = await temporaryFolder('swap')
  const root = await realpath(await temporaryFolder('root'))
  const inTree = [plugins.daemon, plugins.resources, plugins.workspaces, plugins.extensions]
  const svc = await scene({}, { home, plugins: inTree, replace: [name] })
  const holder = () => svc.kernel.host.plugins().find(plugin => plugin.name === 'workspaces')?.replacedBy
  assert.is((await svc.request('POST', '/api/workspaces', { root_dir: root })).status, 201)
  assert.is(holder(), undefined)

  await cp(folder, path.join(home, 'extensions', name), { recursive: true })
  await svc.until(name, isActive)
  assert.is(holder(), name)
  const roots = `/api/ext/${name}/roots`
  assert.equal((await svc.request('GET', roots)).body, { roots: [{ root_dir: root }] })
  assert.is((await svc.request('GET', '/api/workspaces/none')).body.code, 'workspace_not_found')

  await svc.remove(name)
  await svc.until(name, isGone)
  assert.is(holder(), undefined)
  assert.is((await svc.request('GET', roots)).status, 404)
  assert.is((await svc.request('GET', '/api/workspaces')).body.workspaces[0].root_dir, root)
  await svc.close()
  for (const at of [home, root]) await rm(at, { recursive: true, force: true })
})

test('a replacement present before the start runs with the stored data, and the original never runs', async () => {
  const home = await temporaryFolder('swap')
  const root = await realpath(await temporaryFolder('root'))
  let applied = 0
  const counted: Plugin = Object.create(plugins.workspaces, {
    apply: {
      value: (kernel: PluginKernel) => {
        applied++
        return plugins.workspaces.apply(kernel)
      },
    },
  })
  const options = { home, plugins: [plugins.daemon, plugins.resources, counted, plugins.extensions] }
  const before = await scene({}, options)
  await before.request('POST', '/api/workspaces', { root_dir: root })
  await before.close()
  assert.is(applied, 1)

  await cp(folder, path.join(home, 'extensions', name), { recursive: true })
  const config = JSON.stringify({ plugins: { replace: [name] } })
  const svc = await scene({}, { ...options, config, replacements: plugins.replacements })
  const { workspaces } = (await svc.request('GET', '/api/workspaces')).body
  assert.equal([workspaces.length, workspaces[0].root_dir], [1, root])
  assert.is((await svc.request('GET', `/api/ext/${name}/roots`)).status, 200)
  await svc.until(name, isActive)
  assert.is(applied, 1)
  await svc.close()
  for (const at of [home, root]) await rm(at, { recursive: true, force: true })
})

test('a replacement without the setting of the operator is an error and replaces nothing', async () => {
  const home = await temporaryFolder('swap')
  await cp(folder, path.join(home, 'extensions', name), { recursive: true })
  const inTree = [plugins.daemon, plugins.resources, plugins.workspaces, plugins.extensions]
  const svc = await scene({}, { home, plugins: inTree })
  const extension = await svc.until(name, found => found?.last_error !== undefined)
  assert.match(extension.last_error, /plugins\.replace in config\.json names acme\.workspaces/)
  assert.is((await svc.request('GET', '/api/workspaces')).status, 200)
  await svc.close()
  await rm(home, { recursive: true, force: true })
})

test('shutdown waits for a loading extension: nothing is written below the home afterwards', async () => {
  for (let round = 0; round < 6; round++) {
    const home = await temporaryFolder('ended')
    const svc = await scene(
      {},
      { home, plugins: [plugins.daemon, plugins.resources, plugins.workspaces, plugins.extensions] },
    )
    await cp(folder, path.join(home, 'extensions', name), { recursive: true })
    const staged = async () =>
      (await readdir(path.join(home, 'cache/extensions')).catch(() => [])).filter(entry => /^\.\w{8}/.test(entry))
    const startedAt = performance.now()
    while ((await staged()).length === 0 && performance.now() - startedAt < 5000)
      await new Promise(resolve => setTimeout(resolve, 1))
    await svc.close()
    assert.equal(await staged(), [])
    await rm(home, { recursive: true })
  }
})

test.run()
