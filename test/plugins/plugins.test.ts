// proof, timeout: 180s: each plugin of the package alone, and all without each
import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createKernel } from '../../kernel/index.js'
import { Redactors } from '../../kernel/platform.js'
import type { Plugin, RegistryToken } from '../../kernel/plugin.js'
import { configuration, critical, filePorts, inTree } from '../../plugins/index.js'
import { answersInTime, commandsLoad, describesItself, leavesNothing } from '../../testing/contract.js'
import { WaitingTime } from '../../testing/time.js'
import { probe, tracesOf } from '../../testing/traces.js'
import { boot, temporaryFolder } from '../harness/kernel.js'
import { stubOf, stubTaps } from './platform/contract-scene.js'

/** What every plugin of the package has to keep to; a new one is held to it by being in `plugins/index.ts`. */
const removable = inTree.filter(plugin => !(critical as readonly string[]).includes(plugin.name))
const registries = new Map<string, RegistryToken<unknown>>(
  inTree.flatMap(plugin => (plugin.surface.registries ?? []).map(({ to }) => [to.registry, to] as const)),
)
const hardNeeds = (plugin: Plugin) => Object.values(plugin.requires).flatMap(need => ('id' in need ? [need.id] : []))
const standIn = (id: string): Plugin => (id === configuration.provides?.id ? configuration : stubOf(id))
/** How much faster than the real one time goes by here. */
const PACE = 10
/** Milliseconds after which the routes of a change are served, its events are counted by the overview, and memory was given back. */
const SETTLED_MS = 5000

/** A kernel whose time stands still while one looks, and the look. */
async function start(plugins: readonly Plugin[], more: { critical?: readonly string[]; bare?: boolean } = {}) {
  const time = new WaitingTime()
  const { plugin: watcher, kernel } = probe()
  const svc = await time.during(
    boot({ bare: true, ports: filePorts(), plugins: [...plugins, watcher], ...more, clock: time.clock }),
    PACE,
  )
  const change = <T>(work: Promise<T>) => time.during(work, PACE)
  const look = async () => {
    await time.clock.advance(SETTLED_MS)
    const traces = await tracesOf(svc.kernel, kernel(), [...registries.values()])
    // A view of an optional service is held from when that came: the order says nothing. Archives are asked for minutes after a start.
    const plugins = traces.plugins.map(plugin => ({
      ...plugin,
      holds: plugin.holds.filter(hold => !hold.startsWith('view of archives@1 for ')).sort(),
    }))
    return { ...traces, plugins, stubTaps: [...stubTaps], timers: time.clock.pending }
  }
  return { svc, host: svc.kernel.host, kernel, change, look }
}
type World = Awaited<ReturnType<typeof start>>

async function withKernel(
  plugins: readonly Plugin[],
  use: (world: World) => Promise<void>,
  more: { critical: readonly string[]; bare?: boolean } = { critical },
) {
  const world = await start(plugins, more)
  try {
    await use(world)
  } finally {
    await world.change(world.svc.close())
  }
}

test('each plugin loads alone, and leaves no tap, route, timer, handle or entry after its unload', () =>
  withKernel(
    [],
    async ({ host, change, look }) => {
      // The first event of a daemon starts what the kernel itself does about events.
      await change(host.load(stubOf('first@1')))
      await change(host.unload('stub-first-1'))
      for (const plugin of inTree) {
        const stubs = hardNeeds(plugin).map(standIn)
        for (const stub of stubs) await change(host.load(stub))
        const load = async () => assert.equal(await change(host.load(plugin)), { status: 'active' }, plugin.name)
        const unload = () => change(host.unload(plugin.name))
        const full = await leavesNothing({ load, unload, look })
        assert.is(full.routes.length, (plugin.surface.routes ?? []).length, plugin.name)
        for (const stub of stubs) await change(host.unload(stub.name))
      }
      assert.equal(host.faults(), [])
    },
    { critical: [], bare: true },
  ))

test('the surface of each plugin is serializable', () => {
  for (const plugin of inTree) assert.not.throws(() => describesItself(plugin), plugin.name)
})

test('command modules load, and a failing one is named', async () => {
  for (const plugin of inTree) await commandsLoad(plugin)
  const lost = { path: 'acme gone', summary: 'Gone', load: () => Promise.reject(new Error('Cannot find module')) }
  const failed = await commandsLoad({ surface: { commands: [lost] } }).catch(error => error.message)
  assert.match(failed, 'the module of the command acme gone does not load: Cannot find module')
  const idle = { ...lost, load: async () => ({ run: undefined }) }
  assert.match(await commandsLoad({ surface: { commands: [idle] } }).catch(error => error.message), 'no function run')
})

test('each registry with contributions is declared by one plugin', () => {
  const declared = inTree.flatMap(({ surface }) => (surface.declares ?? []).map(({ registry }) => registry))
  assert.equal(
    [...registries.keys()].filter(id => ![Redactors.registry, ...declared].includes(id)),
    [],
  )
  assert.is(new Set(declared).size, declared.length)
})

test('a daemon without any one plugin runs the others and reports waiting ones; its return restores all', () =>
  withKernel(inTree, async ({ svc, host, change, look }) => {
    // What is optional is held from when somebody first asks for it.
    assert.is((await change(svc.request('GET', '/api/status'))).status, 200)
    const before = await look()
    assert.equal(
      Object.keys(before.contributions).filter(id => before.contributions[id]?.length === 0),
      [],
    )
    for (const plugin of removable) {
      await change(host.unload(plugin.name))
      assert.not.ok(host.plugins().some(info => info.name === plugin.name))
      for (const { name, state } of host.plugins()) {
        if (state.status === 'active') continue
        assert.is(state.status, 'waiting', `${name} without ${plugin.name}`)
        assert.is(state.status === 'waiting' && state.missing.at(-1), plugin.provides?.id)
      }
      assert.is((await change(svc.request('GET', '/api/status'))).status, 200, plugin.name)
      assert.equal(await change(host.load(plugin)), { status: 'active' }, plugin.name)
      assert.is((await change(svc.request('GET', '/api/status'))).status, 200, plugin.name)
      assert.equal(await look(), before, plugin.name)
    }
    for (const plugin of inTree) {
      assert.equal(await change(host.reload(plugin)), { status: 'active' }, plugin.name)
    }
    assert.is((await change(svc.request('GET', '/api/status'))).status, 200)
    assert.equal(await look(), before)
  }))

test('a daemon that starts without one plugin starts the others', async () => {
  // Those that most require, and those that nobody does.
  for (const absent of [['workspaces'], removable.map(({ name }) => name)]) {
    const present = inTree.filter(({ name }) => !absent.includes(name))
    await withKernel(present, async ({ svc, host, change }) => {
      assert.is((await change(svc.request('GET', '/api/status'))).status, 200)
      const { body } = await change(svc.request('GET', '/api/plugins'))
      for (const name of absent) assert.not.ok(body.plugins.some((plugin: { name: string }) => plugin.name === name))
      const waiting = host.plugins().filter(({ state }) => state.status === 'waiting')
      assert.is(waiting.length > 0, absent.length === 1)
    })
  }
})

test('a daemon without a critical plugin does not start, with its name', async () => {
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

test('every doctor probe answers in time', () =>
  withKernel(inTree, async ({ kernel, change }) => {
    assert.ok((await change(answersInTime(kernel()))) > 0)
  }))

test.run()
