import { rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import type { Ports } from '../../../kernel/platform.js'
import {
  type Clock,
  definePlugin,
  type Plugin,
  type PluginKernel,
  type Setting,
  Settings,
  surfaceOf,
  systemClock,
} from '../../../kernel/plugin.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import { filePorts } from '../../../plugins/index.js'
import { Values } from '../../../plugins/platform/configuration/api.js'
import resources from '../../../plugins/platform/resources/index.js'
import { boot, bootBare, type TestKernel, temporaryFolder } from '../../harness/kernel.js'

const size: Setting<number> = {
  path: 'plugins.acme.sizes.size',
  section: 'general',
  schema: v.number(),
  default: 1,
  apply: 'live',
}
const depth: Setting<number> = { ...size, path: 'plugins.acme.sizes.depth', apply: 'restart-required' }

/** A drop-in that remembers what it was told, and fails when told 13. */
function sizes(settings: readonly Setting<number>[] = [size, depth]) {
  const notices: number[] = []
  const seen: { kernel?: PluginKernel } = {}
  const plugin: Plugin = definePlugin({
    name: 'acme.sizes',
    version: '1.0.0',
    service: async () =>
      class {
        constructor(kernel: PluginKernel) {
          seen.kernel = kernel
          kernel.config.get(depth)
          kernel.config.onChange(size, value => {
            if (value === 13) throw new Error('not 13')
            notices.push(value)
          })
        }
      },
  }).surface({ settings })
  return { plugin, told: notices, value: (entry: Setting<number>) => seen.kernel?.config.get(entry) }
}

const own = (values: unknown) => JSON.stringify({ plugins: { 'acme.sizes': values } })

async function until(look: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let tries = 0; tries < 2400; tries++) {
    if (await look()) return
    await new Promise(resolve => setTimeout(resolve, 25))
  }
  throw new Error(`waited in vain until ${what}`)
}

/** How long the follower of config.json waits for the end of a burst, and before it believes that the file is empty. */
const [SETTLE_MS, EMPTY_MS] = [100, 1000]

/** The system's clock, but sleeps of these lengths end when the test says so; `always`: and from then on by themselves. */
function sleeper(...held: number[]) {
  const system = systemClock()
  const waiting = new Map<number, (() => void)[]>(held.map(ms => [ms, []]))
  const sleep: Clock['sleep'] = (ms, signal) => {
    const sleepers = waiting.get(ms)
    if (!sleepers) return system.sleep(ms, signal)
    return new Promise((resolve, reject) => {
      sleepers.push(resolve)
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
  }
  return {
    clock: { ...system, sleep } as Clock,
    sleeping: (ms: number) => (waiting.get(ms)?.length ?? 0) > 0,
    wake(ms: number, always = false) {
      const sleepers = waiting.get(ms)
      for (const resolve of sleepers?.splice(0) ?? []) resolve()
      if (always) waiting.delete(ms)
    },
  }
}

const codes = async (host: TestKernel) =>
  (await host.request('GET', '/api/doctor?only=config')).body.items.map((item: { code: string }) => item.code)

test('a running kernel follows its file: live values apply at once, others are noted, an invalid file is ignored', async () => {
  const home = await temporaryFolder('config')
  const file = path.join(home, 'config.json')
  await writeFile(file, own({ size: 2, depth: 2 }))
  const { plugin, told, value } = sizes()
  const host = await boot({ home, plugins: [daemon, resources, plugin], listen: ['socket'] })
  assert.equal([value(size), value(depth)], [2, 2])

  await writeFile(file, own({ size: 3, depth: 3 }))
  await until(() => told.includes(3), 'the live value is told')
  assert.equal([value(size), value(depth)], [3, 2], 'the other keeps its value')
  assert.equal(await codes(host), ['config_restart_required'])
  const { items } = (await host.request('GET', '/api/doctor?only=config')).body
  assert.match(items[0].message, /plugins\.acme\.sizes\.depth/)

  // As an editor writes: another file takes the place.
  const temporary = path.join(home, 'config.json.tmp')
  await writeFile(temporary, own({ size: 4, depth: 2 }))
  await rename(temporary, file)
  await until(() => told.includes(4), 'a renamed file is followed')
  assert.equal(await codes(host), ['config_ok'], 'the old value is back, nothing waits')

  await writeFile(file, '{\n  "plugins": { "acme.sizes": { "size": 5, "dpth": 1 } }\n}')
  await until(async () => (await codes(host)).includes('config_invalid'), 'the invalid file is said')
  const report = (await host.request('GET', '/api/doctor?only=config')).body
  assert.match(report.items[0].message, /config\.json:2: unknown key plugins\.acme\.sizes\.dpth/)
  assert.equal([value(size), told.includes(5)], [4, false])
  assert.ok(host.log.some(({ level, msg }) => level === 'error' && /config\.json:2/.test(msg)))
  const { config } = (await host.request('GET', '/api/status')).body
  assert.equal([config.validated, config.apply_state], [false, 'failed'])

  await writeFile(file, own({ size: 6 }))
  await until(() => told.includes(6), 'a mended file is followed')
  assert.not((await codes(host)).includes('config_invalid'))

  await writeFile(file, own({ size: 13 }))
  await until(() => host.kernel.host.faults().length > 0, 'the owner fails')
  assert.is(host.kernel.host.faults()[0]?.owner, 'acme.sizes')
  await writeFile(file, own({ size: 7 }))
  await until(() => told.includes(7), 'one that failed is told of the next')
  await host.close()
  await rm(home, { recursive: true, force: true })
})

test('a briefly empty file is ignored, a burst is one change, and a missing file means defaults', async () => {
  const home = await temporaryFolder('config')
  const file = path.join(home, 'config.json')
  await writeFile(file, own({ size: 2 }))
  const { plugin, told, value } = sizes()
  const { clock, sleeping, wake } = sleeper(SETTLE_MS, EMPTY_MS)
  const host = await boot({ home, plugins: [daemon, resources, plugin], listen: ['socket'], clock })
  await writeFile(file, '')
  await until(() => sleeping(EMPTY_MS), 'the empty file is seen')
  assert.is(value(size), 2, 'an empty file is not believed at once')
  for (const n of [3, 4]) await writeFile(file, own({ size: n }))
  wake(EMPTY_MS)
  await until(() => told.includes(4), 'what follows the empty moment is told')
  await until(() => sleeping(SETTLE_MS), 'a change is seen')
  for (const n of [5, 6, 7]) await writeFile(file, own({ size: n }))
  wake(SETTLE_MS)
  await until(() => told.includes(7), 'the last of a burst is told')
  assert.equal(told, [4, 7])
  for (const ms of [SETTLE_MS, EMPTY_MS]) wake(ms, true)
  await rm(file)
  await until(() => told.includes(1), 'the default is told')
  await writeFile(file, own({ size: 8 }))
  await until(() => told.includes(8), 'a file that came back is followed')
  await host.close()
  await rm(home, { recursive: true, force: true })
})

test('the log level is a live setting', async () => {
  const home = await temporaryFolder('config')
  const file = path.join(home, 'config.json')
  const { plugin, value } = sizes()
  const host = await boot({ home, plugins: [daemon, resources, plugin], listen: ['socket'] })
  await writeFile(file, JSON.stringify({ log: { level: 'error' }, plugins: { 'acme.sizes': { size: 2 } } }))
  await until(() => value(size) === 2, 'a file that was not there is followed')
  const lines = host.log.length
  await host.kernel.host.load({ ...sizes().plugin, name: 'acme.more', surface: {}, apply: k => k.log.warn('unheard') })
  assert.not(host.log.slice(lines).some(({ msg }) => msg === 'unheard'))
  await host.close()
  await rm(home, { recursive: true, force: true })
})

test('drop-in settings below plugins.<name> wait for it; a misspelt one or another path fails it alone', async () => {
  const home = await temporaryFolder('config')
  const plugins = { 'acme.sizes': { size: 2 }, 'acme.odd': { sise: 2 } }
  await writeFile(path.join(home, 'config.json'), JSON.stringify({ plugins }))
  const host = await boot({ home, plugins: [daemon, resources] })
  assert.equal(await codes(host), ['config_unowned', 'config_unowned'])
  const good = sizes()
  assert.is((await host.kernel.host.load(good.plugin)).status, 'active')
  assert.is(good.value(size), 2)
  assert.equal(await codes(host), ['config_unowned'])
  await host.kernel.host.unload('acme.sizes')

  const misplaced = await host.kernel.host.load({
    ...sizes([{ ...size, path: 'http.size' }]).plugin,
    name: 'acme.wide',
  })
  assert.match(misplaced.status === 'failed' ? misplaced.error : '', /http\.size is not below plugins\.acme\.wide/)
  const odd = await host.kernel.host.load({
    ...sizes([{ ...size, path: 'plugins.acme.odd.size' }]).plugin,
    name: 'acme.odd',
  })
  assert.match(odd.status === 'failed' ? odd.error : '', /config\.json:1: unknown key plugins\.acme\.odd\.sise/)
  assert.is((await host.kernel.host.load(good.plugin)).status, 'active')
  const other = { ...sizes([depth]).plugin, version: '2.0.0' }
  const refused = await host.kernel.host.reload(other).then(
    () => '',
    error => error.message,
  )
  assert.match(refused, 'unknown key plugins.acme.sizes.size')
  assert.is(good.value(size), 2, 'the version whose settings the file has runs again')
  await host.close()
  await rm(home, { recursive: true, force: true })
})

test('settings below plugins.<vendor>.<name> are kept for their extension; a wrong value fails only it', async () => {
  const home = await temporaryFolder('config')
  const plugins = { acme: { sizes: { size: 2 }, odd: { size: 'wide' }, flat: 3 }, disabled: [] }
  await writeFile(path.join(home, 'config.json'), JSON.stringify({ plugins }, null, 1))
  const host = await boot({ home, plugins: [daemon, resources] })
  const unowned = async () => {
    const { items } = (await host.request('GET', '/api/doctor?only=config')).body
    const found = items.filter(({ code }: { code: string }) => code === 'config_unowned')
    return found.map(({ id }: { id: string }) => id.replace('config.settings.', '')).sort()
  }
  assert.equal(await unowned(), ['plugins.acme.flat', 'plugins.acme.odd', 'plugins.acme.sizes'])
  const good = sizes()
  assert.equal(await host.kernel.host.load(good.plugin), { status: 'active' })
  assert.is(good.value(size), 2)
  assert.equal(await unowned(), ['plugins.acme.flat', 'plugins.acme.odd'])
  const named = (name: string) => ({
    ...sizes([{ ...size, path: `plugins.${name}.size` }]).plugin,
    name,
  })
  const odd = await host.kernel.host.load(named('acme.odd'))
  assert.match(odd.status === 'failed' ? odd.error : '', /config\.json:8: plugins\.acme\.odd\.size: /)
  const flat = await host.kernel.host.load(named('acme.flat'))
  assert.match(flat.status === 'failed' ? flat.error : '', /config\.json:10: plugins\.acme\.flat: .*object/)
  assert.is(good.value(size), 2)

  await host.kernel.host.unload('acme.sizes')
  assert.equal(await unowned(), ['plugins.acme.flat', 'plugins.acme.odd', 'plugins.acme.sizes'])
  await writeFile(path.join(home, 'config.json'), '{ "plugins": { "disbled": [] } }')
  await host.close()
  const refused = await boot({ home, plugins: [daemon, resources] }).then(
    () => 'started',
    error => error.message,
  )
  assert.match(refused, 'unknown key plugins.disbled')
  await rm(home, { recursive: true, force: true })
})

test('a closed watch keeps no process alive and reads no later change', async () => {
  const home = await temporaryFolder('config')
  const file = path.join(home, 'config.json')
  await writeFile(file, own({ size: 2 }))
  const { plugin, told } = sizes()
  const watchers = () => process.getActiveResourcesInfo().filter(name => /FSEvent|StatWatcher/.test(name)).length
  const before = watchers()
  const host = await boot({ home, plugins: [daemon, resources, plugin], listen: ['socket'] })
  await until(() => watchers() > before, 'the file is watched')
  await host.close()
  await until(() => watchers() === before, 'the watch is over')
  await writeFile(file, own({ size: 3 }))
  // Longer than a burst would be waited for.
  await new Promise(resolve => setTimeout(resolve, 3 * SETTLE_MS))
  assert.equal(told, [])
  await rm(home, { recursive: true, force: true })
})

test('a tap on a setting gets each value, its failure is contained, and it ends with its plugin', async () => {
  const home = await temporaryFolder('config')
  const file = path.join(home, 'config.json')
  const notices: number[] = []
  const { tap } = surfaceOf<object>()
  const plugin = definePlugin({ name: 'acme.sizes', version: '1.0.0', requires: { settings: Settings } }).surface({
    settings: [size],
    taps: [
      tap(
        Settings,
        settings => settings.of(size),
        () => value => {
          notices.push(value)
          if (value === 13) throw new Error('not 13')
        },
      ),
    ],
  })
  const host = await boot({ home, plugins: [plugin], listen: ['socket'] })
  for (const value of [13, 4]) {
    await writeFile(file, own({ size: value }))
    await until(() => notices.includes(value), `${value} is told`)
  }
  assert.equal(
    host.kernel.host.faults().map(({ owner, where, error }) => [owner, where, error]),
    [['acme.sizes', 'setting plugins.acme.sizes.size', 'not 13']],
  )
  const holds = () => host.kernel.host.plugins().find(({ name }) => name === 'acme.sizes')?.holds ?? []
  assert.ok(holds().includes('setting plugins.acme.sizes.size'))
  await host.kernel.host.reload({ ...plugin, version: '2' })
  assert.is(holds().filter(label => label.startsWith('setting ')).length, 1)
  await host.close()
  await rm(home, { recursive: true, force: true })
})

test('a port supplies the configuration: an embedder may replace it, and without one defaults apply', async () => {
  const home = await temporaryFolder('config')
  await writeFile(path.join(home, 'config.json'), own({ size: 2 }))
  const values = new Map<string, unknown>([
    [size.path, 5],
    [depth.path, 6],
  ])
  const source: Ports = {
    settings: async ({ known, report }) =>
      new Values(
        { read: owned => new Map([...values].filter(([at]) => owned.some(one => one.path === at))) },
        known,
        report,
      ),
  }
  for (const [ports, expected] of [
    [{}, [1, 1]],
    [source, [5, 6]],
    [filePorts(), [2, 1]],
  ] as const) {
    const { plugin, value } = sizes()
    const host = await bootBare({ home, ports, plugins: [plugin] })
    assert.equal([value(size), value(depth)], expected)
    await host.close()
  }
  await rm(home, { recursive: true, force: true })
})

test.run()
