import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inTree } from '../../../../plugins/index.js'
import { boot, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

const job = { agent_name: 'general', prompt: 'Go.', schedule: { mode: 'every', interval: '1h' } }
const trigger = { agent_name: 'general', prompt: 'Look.', event: 'session.stopped' }

async function start(home: string, automation: unknown): Promise<TestKernel> {
  await writeFile(path.join(home, 'config.json'), JSON.stringify({ automation }))
  return boot({ home, plugins: inTree })
}

const jobsOf = async (daemon: TestKernel) =>
  (await daemon.request('GET', '/api/automation/jobs?source=config')).body.jobs as {
    id: string
    [member: string]: unknown
  }[]

test('jobs and triggers of the configuration are records of source config, synchronized at each start', async () => {
  const home = await temporaryFolder('home')
  const first = await start(home, { jobs: { nightly: job, other: job }, triggers: { seen: trigger } })
  const [nightly] = (await jobsOf(first)).filter(({ name }) => name === 'nightly')
  assert.equal([nightly?.source, nightly?.enabled, nightly?.prompt], ['config', true, 'Go.'])
  assert.ok(nightly?.next_run, 'it is scheduled')
  const at = `/api/automation/jobs/${nightly?.id}`
  for (const [method, body] of [
    ['PATCH', { prompt: 'Stop.' }],
    ['DELETE', undefined],
  ] as const) {
    const { status, body: reply } = await first.request(method, at, body)
    assert.equal([status, reply.code], [409, 'job_read_only'], method)
  }
  assert.is((await first.request('PATCH', at, { enabled: false })).status, 200)
  const triggers = (await first.request('GET', '/api/resources/automation.trigger')).body.records
  assert.equal(
    triggers.map(({ spec, source }: { spec: { name: string }; source: unknown }) => [spec.name, source]),
    [['seen', { kind: 'daemon', id: 'config' }]],
  )
  const { record } = (await first.request('GET', `/api/resources/automation.job/${nightly?.id}`)).body
  await first.close()

  const second = await start(home, { jobs: { nightly: { ...job, prompt: 'Go on.' } } })
  try {
    const [now, ...others] = await jobsOf(second)
    assert.equal([now?.id, now?.prompt, others.length], [nightly?.id, 'Go on.', 0])
    assert.is(now?.enabled, false, 'the switch of a person outlives the definition')
    const after = (await second.request('GET', `/api/resources/automation.job/${nightly?.id}`)).body.record
    assert.is(after.version, record.version + 1)
    assert.equal((await second.request('GET', '/api/resources/automation.trigger')).body.records, [])
  } finally {
    await second.close()
  }
})

test('an invalid definition is reported by doctor, and the others run', async () => {
  const home = await temporaryFolder('home')
  const jobs = {
    good: job,
    bad: { ...job, schedule: { mode: 'cron', expr: 'never' } },
    lost: { ...job, workspace: 'nowhere' },
  }
  const daemon = await start(home, { jobs, triggers: { odd: { ...trigger, event: 'sun.rises' } } })
  try {
    assert.equal(
      (await jobsOf(daemon)).map(({ name }) => name),
      ['good'],
    )
    const { items } = (await daemon.request('GET', '/api/doctor?only=automation')).body
    assert.equal(
      items.flatMap(({ id, code }: { id: string; code: string }) =>
        code === 'automation_definition_invalid' ? [id] : [],
      ),
      ['config.automation.jobs.bad', 'config.automation.jobs.lost', 'config.automation.triggers.odd'],
    )
  } finally {
    await daemon.close()
  }
})

test.run()
