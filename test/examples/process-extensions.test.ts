import { cp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readManifest } from '../../plugins/extensions/manifest.js'
import { temporaryFolder } from '../harness/kernel.js'
import { type Made, type Scene, scene, until } from '../plugins/extensions/subprocess/scene.js'

let world: Scene
let folder: string
test.before(async () => {
  world = await scene()
  folder = await realpath(await temporaryFolder('examples'))
})
test.after(async () => {
  await world.close()
  await rm(folder, { recursive: true, force: true })
})

/** A copy of an example, as somebody drops it into a home; the answers to health checks are asked for often. */
async function example(name: string): Promise<Made> {
  const root = path.join(folder, name)
  await cp(path.join(import.meta.dirname, '../../examples/extensions', name), root, { recursive: true })
  const manifest = await readManifest(root, file => readFile(file, 'utf8'))
  const subprocess = manifest.subprocess && { ...manifest.subprocess, health_check_interval: '50ms' }
  return world.run(root, { ...manifest, subprocess })
}

test('clock-node tells the time, is well, and ends when it is asked to', async () => {
  const { runtime, said } = await example('clock-node')
  await runtime.start()
  assert.equal(await runtime.call('provide_tools', {}), { tools: [{ id: 'now', handler: 'now' }] })
  const answer = (await runtime.call('tools/call', { tool: 'now', input: { zone: 'Asia/Tokyo' } })) as Record<
    string,
    string
  >
  assert.match(answer.time ?? '', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
  assert.is(answer.told_by, `svc ${world.kernel.host.version}`)
  const bad = await runtime.call('tools/call', { tool: 'now', input: { zone: 'No/Where' } }).catch(error => error)
  assert.match((bad as Error).message, /Invalid time zone/)
  await until(() => runtime.health().health === 'healthy')
  await runtime.stop()
  assert.equal(runtime.state, { status: 'stopped' })
  assert.is(said(), '')
})

test('desks-python publishes what its file says, again when it has changed', async () => {
  const { runtime, said } = await example('desks-python')
  const names = () => world.kernel.records.list({ kind: 'window_layout' }).map(record => record.id)
  await runtime.start()
  await until(() => names().length === 2)
  assert.equal(names(), ['desks-review', 'desks-write'])
  await writeFile(path.join(folder, 'desks-python/desks.txt'), 'Read\nReview\n')
  await until(() => names().includes('desks-read'))
  assert.equal(names(), ['desks-read', 'desks-review'])
  await until(() => runtime.health().health === 'healthy' && said().includes('published\npublished'))
  await runtime.stop()
  // Once more when it was read while it was being written.
  assert.match(said(), /^published(\npublished){1,2}$/)
})

test.run()
