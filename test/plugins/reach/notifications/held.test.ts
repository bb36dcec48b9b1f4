import { writeFile } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { backup } from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { scene } from './scene.js'

const HELD = { restored_at: '2030-01-01T00:00:00.000Z', backup: 'x.tar', backup_created_at: '2030-01-01T00:00:00.000Z' }

test('a held home sends no notification; after the confirmation it sends later events', async () => {
  const home = await temporaryFolder('notifications-held')
  const first = await scene({ home })
  const { task } = await first.queued({ title: 'Deploy the docs' })
  await first.preset('failures', { events: ['task.run_failed'] })
  await first.emit('task.run_failed', { task_id: task, error: 'sent by the original' })
  await first.settle()
  const sent = first.texts()
  assert.is(sent.length, 1)
  await first.kernel.close()

  await writeFile(`${home}/held.json`, JSON.stringify(HELD))
  const copy = await scene({ home, clock: first.clock, plugins: [backup] })
  await copy.emit('task.run_failed', { task_id: task, error: 'while it is held' })
  await copy.settle()
  await copy.pass(120_000)
  assert.equal(copy.texts(), sent)
  assert.is((await copy.request('POST', '/api/backups/confirm')).status, 200)
  await copy.settle()
  assert.equal(copy.texts(), sent)
  await copy.emit('task.run_failed', { task_id: task, error: 'after that' })
  await copy.settle()
  assert.is(copy.texts().length, 2)
  assert.match(copy.texts()[1] ?? '', 'after that')
  await copy.close()
})

test.run()
