import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { backup } from '../../../../plugins/index.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Bench, bench, hourly, START } from '../../work/automation/bench.js'
import { completed } from '../../work/automation/fake-sessions.js'

const HOUR = 3_600_000
const HELD = { restored_at: '2030-01-01T00:00:00.000Z', backup: 'x.tar', backup_created_at: '2030-01-01T00:00:00.000Z' }

/** A home with these jobs, restored when three occurrences of each were due. */
async function restored(jobs: Readonly<Record<string, Record<string, unknown>>>): Promise<Bench> {
  const before = await bench()
  for (const [id, spec] of Object.entries(jobs)) {
    const { status, body } = await before.put(id, hourly({ name: id, ...spec }))
    assert.is(status, 201, JSON.stringify(body))
  }
  await before.kernel.close()
  await writeFile(path.join(before.home, 'held.json'), JSON.stringify(HELD))
  return bench({
    home: before.home,
    clock: new VirtualClock(START + 3 * HOUR + 1),
    plugins: [backup],
    answer: () => completed,
  })
}

const every = { mode: 'every', interval: '1h' }

test('a held home runs no job; after the confirmation it continues with the next occurrence without catching up', async () => {
  const b = await restored({
    latest: { schedule: every },
    replay: { schedule: { ...every, catch_up_policy: 'replay' } },
    once: { schedule: { mode: 'at', time: new Date(START + HOUR).toISOString() } },
  })
  try {
    await b.clock.advance(HOUR)
    const refused = await b.request('POST', '/api/automation/jobs/latest/trigger')
    assert.equal(
      [refused.status, refused.body.code, refused.body.details.next],
      [503, 'home_held', 'svc backup confirm'],
    )
    assert.equal(await b.runs(), [])
    assert.is((await b.request('GET', '/api/status')).body.automation.scheduler_running, false)
    const { items } = (await b.request('GET', '/api/doctor?only=scheduler')).body
    assert.equal(
      [items[0].code, items[0].severity, items[0].suggested_command],
      ['scheduler_paused', 'warning', 'svc backup confirm'],
    )
    assert.equal((await b.request('POST', '/api/backups/confirm')).body, { held: false })
    await b.until(
      async () => (await b.request('GET', '/api/status')).body.automation.scheduler_running,
      'the scheduler runs',
    )
    assert.equal(await b.runs(), [])
    const runs = await b.after(
      HOUR,
      async () => {
        const all = await b.runs()
        return all.length >= 2 && all.every((run: Reply) => run.ended_at) && all
      },
      'the next occurrences have run',
    )
    assert.equal(
      runs.map((run: Reply) => [run.job_id, run.status, Date.parse(run.scheduled_at)]).sort(),
      ['latest', 'replay'].map(job => [job, 'completed', START + 5 * HOUR]),
    )
  } finally {
    await b.end()
  }
})

test.run()
