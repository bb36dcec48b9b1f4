import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { createKernel } from '../../kernel/index.js'
import { type DiskKeeper, noReserve, type Ports, type SettingSource, SettingValues } from '../../kernel/platform.js'
import { DiskSpace, definePlugin, Fault, type PluginKernel, type Setting } from '../../kernel/plugin.js'
import { filePorts } from '../../plugins/index.js'
import { temporaryFolder } from '../harness/kernel.js'

const size: Setting<number> = {
  path: 'acme.size',
  section: 'general',
  schema: v.number(),
  default: 1,
  apply: 'live',
}

const settings: SettingSource = {
  get: entry => (entry.path === size.path ? 7 : entry.default) as never,
  of: ({ path: name }) => ({ name, tap() {} }),
  adopt() {},
  disown() {},
}

/** A plugin that keeps what it was handed. */
function looking() {
  const needs = { disk: DiskSpace, values: SettingValues }
  const seen: PluginKernel<typeof needs>[] = []
  const plugin = definePlugin({
    name: 'looking',
    version: '1.0.0',
    requires: needs,
    service: async () =>
      class {
        constructor(kernel: PluginKernel<typeof needs>) {
          seen.push(kernel)
        }
      },
  }).surface({ settings: [size], ofCatalog: ['looking'] })
  return { plugin, seen }
}

test('plugins get the port objects by token, and the judges see the names of surfaces', async () => {
  const home = await temporaryFolder('ports')
  const happened: string[] = []
  const disk: DiskKeeper = {
    writable: true,
    room: noReserve,
    catalog: noReserve,
    look: async () => 1,
    refusal: async () => undefined,
    start: async () => void happened.push('disk starts'),
    onHealed() {},
    close: async () => void happened.push('disk closes'),
  }
  const ports: Ports = {
    settings: () => settings,
    disk: () => disk,
    judges: [
      ({ ofCatalog }) => void happened.push(`judged ${ofCatalog}`),
      async () => void happened.push('judged again'),
    ],
  }
  const { plugin, seen } = looking()
  const kernel = await createKernel({ home, plugins: [plugin], ports })
  assert.is(seen[0]?.needs.disk, disk)
  assert.is(seen[0]?.needs.values, settings)
  assert.is(seen[0]?.config.get(size), 7)
  assert.equal(await kernel.close(), [])
  assert.equal(happened, ['judged looking', 'judged again', 'disk starts', 'disk closes'])
  await rm(home, { recursive: true })
})

test('a judge that throws stops the start before the database is created, and the home is free again', async () => {
  const home = await temporaryFolder('ports')
  const refuse = () => {
    throw new Fault('not_here', 500, 'no')
  }
  const error = await createKernel({ home, plugins: [], ports: { judges: [refuse] } }).catch(error => error)
  assert.is(error.code, 'not_here')
  const kernel = await createKernel({ home, plugins: [], ports: {} })
  assert.equal(await kernel.close(), [])
  await rm(home, { recursive: true })
})

test('an embedder without ports gets file ports; empty ports open the home unprotected', async () => {
  const home = await temporaryFolder('ports')
  await mkdir(path.join(home, 'events'))
  await writeFile(path.join(home, 'events/journal.json'), '{}')
  const missing = await createKernel({ home, plugins: [] }).catch(error => error)
  assert.is(missing.code, 'catalog_missing')
  const { plugin, seen } = looking()
  await writeFile(path.join(home, 'config.json'), '{ "acme": { "size": 3 } }')
  const bare = await createKernel({ home, plugins: [plugin], ports: {} })
  assert.is(seen[0]?.config.get(size), 1)
  assert.is(seen[0]?.needs.disk.room, noReserve)
  await bare.close()
  const named = await createKernel({ home, plugins: [plugin] })
  assert.is(seen[1]?.config.get(size), 3)
  assert.is.not(seen[1]?.needs.disk.room, noReserve)
  await named.close()
  assert.equal(Object.keys(filePorts()).sort(), ['disk', 'judges', 'settings'])
  await rm(home, { recursive: true })
})

test.run()
