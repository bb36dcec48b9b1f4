import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { PLUGINS } from './agents-scene.js'

const DAY = 24 * 3_600_000

test('a changed default permission mode is reported for 14 days', async () => {
  const home = await temporaryFolder('mode')
  const clock = new VirtualClock()
  const started = async (mode?: string) => {
    const config = mode === undefined ? {} : { permissions: { mode } }
    await writeFile(path.join(home, 'config.json'), JSON.stringify(config))
    const kernel = await boot({ home, clock, plugins: PLUGINS })
    const itemsOf = async (): Promise<string[]> => {
      const { items } = (await kernel.request('GET', '/api/doctor')).body
      const found = items.filter(({ code }: { code: string }) => code === 'permissions_mode_changed')
      return found.map(({ title, suggested_command: next }: Record<string, string>) => `${title}: ${next}`)
    }
    return { ...kernel, told: itemsOf }
  }
  const first = await started('approve-all')
  assert.equal(await first.told(), [], 'nothing is known of the time before')
  await first.close()
  const second = await started()
  const item =
    'agents without permissions of their own run with approve-reads: svc config set permissions.mode approve-all'
  assert.equal(await second.told(), [item])
  assert.ok(second.log.some(line => JSON.stringify(line).includes('was approve-all when the daemon ran last')))
  await second.close()
  const third = await started()
  assert.equal(await third.told(), [item])
  clock.jump(15 * DAY)
  assert.equal(await third.told(), [])
  await third.close()
  await rm(home, { recursive: true })
})

test.run()
