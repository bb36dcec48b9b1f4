import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createKernel } from '../../kernel/index.js'
import { critical, inTree } from '../../plugins/index.js'
import { boot, temporaryFolder } from '../harness/kernel.js'

const removable = inTree.filter(plugin => !(critical as readonly string[]).includes(plugin.name))

test('a daemon without any one plugin boots, serves the others and says what waits', async () => {
  for (const absent of removable) {
    const svc = await boot({ plugins: inTree.filter(plugin => plugin !== absent), critical })
    const status = await svc.request('GET', '/api/status')
    assert.is(status.status, 200, absent.name)
    for (const { name, state } of svc.kernel.host.plugins()) {
      if (state.status === 'active') continue
      assert.is(state.status, 'waiting', `${name} without ${absent.name}`)
      assert.ok(state.status === 'waiting' && state.missing.length > 0)
    }
    await svc.close()
  }
})

test('a daemon without a critical plugin does not start and names it', async () => {
  for (const name of critical) {
    const home = await temporaryFolder('critical')
    const plugins = inTree.filter(plugin => plugin.name !== name)
    const error = await createKernel({ home, plugins, critical }).then(
      () => undefined,
      failed => failed as Error,
    )
    assert.match(error?.message ?? 'it started', name)
    await rm(home, { recursive: true })
  }
})

test('every plugin can be unloaded and loaded again, and then holds what it held', async () => {
  const svc = await boot({ plugins: inTree, critical })
  const before = svc.kernel.host.plugins()
  for (const plugin of removable) {
    await svc.kernel.host.unload(plugin.name)
    assert.not.ok(svc.kernel.host.plugins().some(info => info.name === plugin.name))
    assert.is((await svc.request('GET', '/api/status')).status, 200)
    assert.equal(await svc.kernel.host.load(plugin), { status: 'active' }, plugin.name)
    assert.equal(svc.kernel.host.plugins(), before, plugin.name)
  }
  await svc.close()
})

test.run()
