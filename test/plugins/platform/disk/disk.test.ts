import { mkdirSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { daemon, disk, resources } from '../../../../plugins/index.js'
import { DiskLimits } from '../../../../plugins/platform/disk/disk-guard.js'
import { diskItem } from '../../../../plugins/platform/disk/verdict.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { boot, temporaryFolder, whileTimePasses } from '../../../harness/kernel.js'
import { body, notes, outcome } from '../resource-scene.js'

test('the threshold of low space depends on the size', () => {
  const verdicts = [2 ** 40, 2 ** 30, 2 ** 30 - 1, 2 ** 27, 2 ** 27 - 1].map(free => diskItem(free).code)
  const low = ['home_disk_space_low', 'home_disk_space_low', 'home_disk_space_critical']
  assert.equal(verdicts, ['home_disk_space_ok', 'home_disk_space_ok', ...low])
})

test('status and doctor report the disk while the plugin runs; a full disk is refused also without it', async () => {
  const room = { free: 2 ** 40 }
  const clock = new VirtualClock()
  const plugins = [daemon, resources, notes().plugin]
  const host = await boot({ plugins, clock, freeBytes: async () => room.free })
  const health = async () => (await host.request('GET', '/api/status')).body.health
  const probe = () => outcome(host, 'GET', '/api/doctor?only=home.disk')
  const set = async (free: number) => {
    room.free = free
    await clock.advance(DiskLimits.freshMs)
  }

  assert.not.ok('disk' in (await health()))
  assert.is(await probe(), '400 unknown_component')
  await whileTimePasses(clock, host.kernel.host.load(disk))
  assert.is(await probe(), '200')
  const well = await health()
  assert.equal([well.disk, well.persistence.status], [{ status: 'ok', free_bytes: 2 ** 40 }, 'ok'])

  await set(DiskLimits.short - 1)
  const full = await health()
  const told = [{ status: 'full', free_bytes: DiskLimits.short - 1 }, 'degraded']
  assert.equal([full.disk, full.persistence.status], told, 'one look tells both')
  await whileTimePasses(clock, host.kernel.host.unload(disk.name))
  assert.not.ok('disk' in (await health()))
  assert.is(await probe(), '400 unknown_component')
  assert.is(await outcome(host, 'PUT', '/api/resources/note/a', body('x')), '507 disk_full')
  assert.is((await host.request('GET', '/api/status')).body.daemon.status, 'degraded')
  assert.is((await host.request('GET', '/api/db/status')).body.disk.status, 'full')
  await host.close()
})

test('circular links at the path of the reserve do not prevent a start', async () => {
  const home = await temporaryFolder('reserve')
  mkdirSync(path.join(home, 'cache'))
  symlinkSync('reserve', path.join(home, 'cache', 'reserve'))
  const host = await boot({ home, plugins: [daemon, resources, notes().plugin] })
  assert.is(await outcome(host, 'PUT', '/api/resources/note/a', body('x')), '201')
  await host.close()
})

test.run()
