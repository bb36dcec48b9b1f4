import { rm } from 'node:fs/promises'
import { toJsonSchema } from '@valibot/to-json-schema'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createKernel, type Plugin, VirtualClock } from '../../kernel/index.js'
import { type RegistryToken, within } from '../../kernel/plugin.js'
import { Checks } from '../../plugins/daemon/api.js'
import { critical, inTree } from '../../plugins/index.js'
import { boot, temporaryFolder, whileTimePasses } from '../harness/kernel.js'
import { everything, idle, probe, stubOf } from './contract-scene.js'

/** What every plugin of the package has to keep to; a new one is held to it by being in `plugins/index.ts`. */
const removable = inTree.filter(plugin => !(critical as readonly string[]).includes(plugin.name))
const registries = new Map<string, RegistryToken<unknown>>(
  inTree.flatMap(plugin => (plugin.surface.registries ?? []).map(({ to }) => [to.registry, to] as const)),
)
const hardNeeds = (plugin: Plugin) => Object.values(plugin.requires).flatMap(need => ('id' in need ? [need.id] : []))

for (const plugin of inTree) {
  test(`${plugin.name} loads alone, and unloaded leaves nothing: no tap, route, timer, handle or entry`, async () => {
    const clock = new VirtualClock()
    const { plugin: watcher, kernel } = probe()
    const svc = await boot({ plugins: [watcher, ...hardNeeds(plugin).map(stubOf)], clock })
    const { host } = svc.kernel
    const change = <T>(work: Promise<T>) => whileTimePasses(clock, work)
    // The first event of a daemon starts what the kernel itself does about events.
    await change(host.load(stubOf('first@1')))
    await change(host.unload('stub-first-1'))
    await idle()
    const look = () => everything(svc, kernel(), [...registries.values()])
    const empty = await look()
    const timers = clock.pending
    assert.equal(await change(host.load(plugin)), { status: 'active' })
    const full = await look()
    const owned = plugin.surface.routes ?? []
    assert.is(full.routes.length, owned.length)
    for (let round = 0; round < 3; round++) {
      await change(host.unload(plugin.name))
      await idle()
      assert.equal(await look(), empty)
      assert.is(clock.pending, timers)
      await change(host.load(plugin))
      assert.equal(await look(), full)
    }
    assert.equal(svc.kernel.host.faults(), [])
    await svc.close()
  })

  test(`${plugin.name}: what is on its surface can be told to others`, () => {
    const { kinds = [], events = [], settings = [], routes = [], registries = [], taps = [] } = plugin.surface
    // What a person writes, as far as a schema can say it.
    const written = { typeMode: 'input' as const, ignoreActions: ['check', 'trim'] }
    for (const { spec } of kinds) toJsonSchema(spec, written)
    for (const { payload } of events) toJsonSchema(payload)
    for (const { schema } of settings) toJsonSchema(schema, written)
    for (const { replies } of routes)
      for (const reply of Object.values(replies)) if (reply) toJsonSchema(reply, { typeMode: 'output' })
    assert.ok(registries.every(({ to }) => to.registry.includes('@')))
    const needs = hardNeeds(plugin)
    for (const { on } of taps) assert.ok(needs.includes(on.id), `${on.id} is tapped and not required`)
  })
}

test('a daemon without any one plugin boots, serves the others and says what waits for what', async () => {
  for (const absent of removable) {
    const svc = await boot({ plugins: inTree.filter(plugin => plugin !== absent), critical })
    const status = await svc.request('GET', '/api/status')
    assert.is(status.status, 200, absent.name)
    const { body } = await svc.request('GET', '/api/plugins')
    assert.not.ok(body.plugins.some((plugin: { name: string }) => plugin.name === absent.name))
    for (const { name, state } of svc.kernel.host.plugins()) {
      if (state.status === 'active') continue
      assert.is(state.status, 'waiting', `${name} without ${absent.name}`)
      assert.is(state.status === 'waiting' && state.missing.at(-1), absent.provides?.id)
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

test('all together: any one unloaded and loaded again leaves everything as it was, in its order', async () => {
  const { plugin: watcher, kernel } = probe()
  const svc = await boot({ plugins: [...inTree, watcher], critical })
  const look = () => everything(svc, kernel(), [...registries.values()])
  const before = await look()
  assert.ok(Object.values(before.contributions).every(owners => owners.length > 0))
  for (const plugin of removable) {
    await svc.kernel.host.unload(plugin.name)
    assert.not.ok(svc.kernel.host.plugins().some(info => info.name === plugin.name))
    assert.is((await svc.request('GET', '/api/status')).status, 200)
    assert.equal(await svc.kernel.host.load(plugin), { status: 'active' }, plugin.name)
    assert.equal(await look(), before, plugin.name)
  }
  for (const plugin of inTree) {
    assert.equal(await svc.kernel.host.reload(plugin), { status: 'active' }, plugin.name)
    assert.equal(await look(), before, plugin.name)
  }
  await svc.close()
})

test('every probe of the doctor answers in time', async () => {
  const { plugin: watcher, kernel } = probe()
  const svc = await boot({ plugins: [...inTree, watcher], critical })
  const checks = kernel().collect(Checks)
  assert.ok(checks.length >= inTree.length)
  for (const { owner, entry } of checks) {
    const items = await within(kernel().clock, 5000, entry.run(kernel().scope.signal))
    assert.ok(Array.isArray(items), `${owner} ${entry.id}`)
  }
  await svc.close()
})

test.run()
