import { readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { type Bench, bench, hourly, START } from './bench.js'
import { completed } from './fake-sessions.js'

const HOUR = 3_600_000

/** Overwrites the stored spec that has this prompt, byte for byte, wherever it lies in the closed database. */
async function damage(home: string, prompt: string, change: (spec: string) => string): Promise<void> {
  const file = path.join(home, 'svc.db')
  const bytes = await readFile(file)
  let found = 0
  for (let at = bytes.indexOf(`"${prompt}"`); at >= 0; at = bytes.indexOf(`"${prompt}"`, at + 1)) {
    const begin = bytes.lastIndexOf('{"agent_name"', at)
    const end = bytes.indexOf('}}', at) + 2
    const spec = bytes.toString('utf8', begin, end)
    const changed = change(spec)
    assert.is(Buffer.byteLength(changed), end - begin)
    bytes.write(changed, begin)
    found++
  }
  assert.ok(found > 0, `the prompt ${prompt} is stored somewhere`)
  await writeFile(file, bytes)
}

const DAMAGES: readonly [id: string, change: (spec: string) => string][] = [
  ['mode', spec => spec.replace('"every"', '"evexx"')],
  ['interval', spec => spec.replace('"1h"', '"1x"')],
  ['cut', spec => `{}${' '.repeat(spec.length - 2)}`],
  ['text', spec => `"${'x'.repeat(spec.length - 2)}"`],
  ['null', spec => `null${' '.repeat(spec.length - 4)}`],
]

/** A daemon on a home whose jobs have been damaged, at the hour when all of them are due; one is as it was. */
async function damaged(): Promise<Bench> {
  const b = await bench()
  await b.put('good', hourly({ name: 'good' }))
  for (const [id] of DAMAGES) await b.put(id, hourly({ name: id, prompt: `prompt of ${id}` }))
  await b.kernel.close()
  for (const [id, change] of DAMAGES) await damage(b.home, `prompt of ${id}`, change)
  return bench({ home: b.home, clock: new VirtualClock(START + HOUR / 2), answer: () => completed })
}

test('invalid jobs are quarantined and reported; the others run; a rewritten job runs at once', async () => {
  const b = await damaged()
  const ids = DAMAGES.map(([id]) => id)
  const { items } = (await b.request('GET', '/api/doctor')).body
  const named = items.filter((item: { code: string }) => item.code === 'record_quarantined')
  for (const id of ids) {
    const item = named.find((one: { id: string }) => one.id === `resources.reconcile.automation.job/${id}`)
    assert.ok(item, `doctor names ${id}`)
    assert.match(item.message, /not valid|does not match automation.job/)
  }
  assert.is(named.length, ids.length)

  const list = (await b.request('GET', '/api/automation/jobs')).body
  const listed = list.jobs.map((job: { id: string }) => job.id)
  assert.ok(listed.includes('good'))
  assert.not(listed.includes('text'))
  const [good] = await b.after(HOUR / 2, async () => (await b.runs('good'))[0]?.ended_at && b.runs('good'), 'it ran')
  assert.is(good.status, 'completed')
  assert.is((await b.runs()).length, 1)

  for (const id of ids) {
    const trigger = await b.request('POST', `/api/automation/jobs/${id}/trigger`)
    assert.equal([trigger.status, trigger.body.code], [409, 'job_damaged'], id)
    assert.is((await b.request('GET', `/api/automation/jobs/${id}/runs`)).status, 200)
    const healed = await b.put(id, hourly({ name: id }), 1)
    assert.is(healed.status, 200, id)
    assert.ok((await b.job(id)).next_run, id)
  }
  const after = (await b.request('GET', '/api/doctor')).body.items
  assert.not(after.some((item: { code: string }) => item.code === 'record_quarantined'))
  await b.after(
    HOUR,
    async () => ids.length < (await b.runs()).filter(run => run.status === 'completed').length,
    'all run',
  )
  await b.end()
  await rm(b.home, { recursive: true, force: true })
})

test('an invalid job can be deleted through the jobs API', async () => {
  const b = await damaged()
  for (const [id] of DAMAGES) {
    assert.is((await b.request('DELETE', `/api/automation/jobs/${id}`)).status, 204, id)
    assert.is((await b.request('GET', `/api/automation/jobs/${id}`)).status, 404, id)
  }
  await b.until(
    async () =>
      !(await b.request('GET', '/api/doctor')).body.items.some(
        (i: { code: string }) => i.code === 'record_quarantined',
      ),
    'doctor is content',
  )
  await b.end()
  await rm(b.home, { recursive: true, force: true })
})

test.run()
