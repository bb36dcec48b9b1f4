import { mkdir, realpath, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { backup } from '../../../../plugins/index.js'
import { temporaryFolder, whileTimePasses } from '../../../harness/kernel.js'
import { FakePlatform } from './fake-platform.js'
import { scene } from './scene.js'

const HELD = { restored_at: '2030-01-01T00:00:00.000Z', backup: 'x.tar', backup_created_at: '2030-01-01T00:00:00.000Z' }

test('a held home starts no bridge and sends nothing until it is confirmed', async () => {
  const folder = await realpath(await temporaryFolder('bridges-held'))
  const home = path.join(folder, 'home')
  await mkdir(home)
  const before = await scene([new FakePlatform()], { home })
  const { id } = await before.create({ delivery_defaults: { group_id: '#ops' } })
  await before.reaches(id, 'ready')
  await before.leave()

  await writeFile(path.join(home, 'held.json'), JSON.stringify(HELD))
  const platform = new FakePlatform()
  const s = await scene([platform], { home, plugins: [backup] })
  await whileTimePasses(s.clock, s.clock.sleep(10 * 60_000), 1000)
  assert.equal(platform.running, [])
  assert.is.not(await s.statusOf(id), 'ready')
  assert.is((await s.request('POST', '/api/backups/confirm')).status, 200)
  await s.reaches(id, 'ready')
  assert.equal(
    platform.running.map(({ id: one }) => one),
    [id],
  )
  await s.end()
  await rm(folder, { recursive: true, force: true })
})

test.run()
