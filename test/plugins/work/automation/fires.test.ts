import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Reply } from '../../../harness/kernel.js'
import { type Bench, bench, hourly } from './bench.js'
import { completed, failed } from './fake-sessions.js'

const base = { agent_name: 'report', scope: 'workspace' }

async function create(b: Bench, body: Record<string, unknown>): Promise<Reply> {
  const given = { ...base, workspace_id: b.workspace, name: 't', prompt: 'Look.', ...body }
  const reply = await b.request('POST', '/api/automation/triggers', given)
  assert.is(reply.status, 201, JSON.stringify(reply.body))
  return reply.body.trigger
}

/** Runs of a trigger, oldest first, once there are so many and all are over. */
const runsOf = (b: Bench, id: string, count: number) =>
  b.until(async () => {
    const { runs } = (await b.request('GET', `/api/automation/triggers/${id}/runs`)).body
    return runs.length >= count && runs.every((run: Reply) => run.ended_at) && runs.reverse()
  }, `trigger ${id} has ${count} runs that are over`)

test('a trigger on session.stopped runs its agent with the event data, once per session', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  const prompt =
    '{{ .Kind }} of {{ .Data.agent_name }}: {{ .Data.stop_reason }} {{- .Data.nothing }} in {{ .WorkspaceID }}'
  const trigger = await create(b, { event: 'session.stopped', prompt, filter: { 'data.agent_name': 'worker' } })
  await b.put('demo', hourly({ agent_name: 'worker' }))
  for (const n of [1, 2]) {
    await b.request('POST', '/api/automation/jobs/demo/trigger')
    const runs = await runsOf(b, trigger.id, n)
    assert.is(runs.length, n)
    assert.is(runs[n - 1].status, 'completed')
    assert.equal([runs[n - 1].trigger_id, runs[n - 1].job_id], [trigger.id, undefined])
  }
  const texts = b.sessions.prompts.filter(({ text }) => text.startsWith('session.stopped')).map(({ text }) => text)
  assert.equal(texts, Array(2).fill(`session.stopped of worker: completed in ${b.workspace}`))
  await b.end()
})

test('a trigger name is unique in a scope, a PATCH changes its named members, and an unknown trigger is a 404', async () => {
  const b = await bench()
  const { id } = await create(b, { event: 'session.created', filter: { 'data.agent_name': 'a' } })
  const body = { ...base, workspace_id: b.workspace, name: 't', prompt: 'x', event: 'ext.a' }
  const twice = await b.request('POST', '/api/automation/triggers', body)
  assert.equal([twice.status, twice.body.code], [409, 'trigger_name_taken'])
  const wrong = await b.request('POST', '/api/automation/triggers', { ...body, name: 'u', filter: { colour: 'red' } })
  assert.equal([wrong.status, wrong.body.code], [400, 'trigger_invalid'])
  const url = `/api/automation/triggers/${id}`
  const { trigger } = (await b.request('PATCH', url, { enabled: false, prompt: 'New.' })).body
  assert.equal([trigger.enabled, trigger.prompt, trigger.event], [false, 'New.', 'session.created'])
  const list = async (query: string) =>
    (await b.request('GET', `/api/automation/triggers?${query}`)).body.triggers.length
  assert.equal(
    await Promise.all(['', 'enabled=true', 'q=new', 'event=session.created', 'event=webhook'].map(list)),
    [1, 0, 1, 1, 0],
  )
  assert.is((await b.request('DELETE', url)).status, 204)
  for (const path of [url, `${url}/runs`]) assert.is((await b.request('GET', path)).body.code, 'trigger_not_found')
  await b.end()
})

test('a trigger that is disabled, in another scope or filtered out does not fire', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  const event = 'session.created'
  const quiet = [
    await create(b, { name: 'off', event, enabled: false }),
    await create(b, { name: 'global', event, scope: 'global', workspace_id: undefined }),
    await create(b, { name: 'filtered', event, filter: { 'data.agent_name': 'somebody' } }),
    await create(b, { name: 'an object', event, filter: { 'data.nothing': 'x' } }),
  ]
  const filtered = await create(b, { name: 'told', event, filter: { 'data.agent_name': 'worker', source: 'observer' } })
  await b.put('demo', hourly({ agent_name: 'worker' }))
  await b.request('POST', '/api/automation/jobs/demo/trigger')
  assert.is((await runsOf(b, filtered.id, 1)).length, 1)
  for (const { id } of quiet)
    assert.equal((await b.request('GET', `/api/automation/triggers/${id}/runs`)).body.runs, [])
  await b.end()
})

test('a trigger that fires itself stops after three runs, and the fourth run records the reason', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  const trigger = await create(b, { event: 'session.created' })
  await b.put('demo', hourly({ agent_name: 'worker' }))
  await b.request('POST', '/api/automation/jobs/demo/trigger')
  const runs = await runsOf(b, trigger.id, 4)
  assert.equal(
    runs.map((run: Reply) => [run.status, run.metadata.reason]),
    [...Array(3).fill(['completed', undefined]), ['canceled', 'trigger_depth']],
  )
  assert.match(runs[3].error, /loop protection/)
  await b.end()
})

test('the end of a run fires triggers of its outcome, and a retry keeps the prompt', async () => {
  const b = await bench()
  const retry = { strategy: 'backoff', max_retries: 1, base_delay: '1s' }
  const trigger = await create(b, { event: 'automation.run.failed', prompt: 'Why: {{ .Data.error }}', retry })
  const other = await create(b, { name: 'other', event: 'automation.run.completed' })
  b.sessions.answer = ({ text }) => (text === 'Write the report.' ? failed('no paper') : failed('still none'))
  await b.put('demo', hourly())
  await b.request('POST', '/api/automation/jobs/demo/trigger')
  await b.until(
    async () => b.sessions.prompts.filter(({ text }) => text === 'Why: prompt_failure: no paper')[0],
    'it fired',
  )
  await b.until(async () => {
    await b.clock.advance(1000)
    return b.sessions.prompts.filter(({ text }) => text === 'Why: prompt_failure: no paper')[1]
  }, 'it was tried again with the same prompt')
  assert.equal((await b.request('GET', `/api/automation/triggers/${other.id}/runs`)).body.runs, [])
  assert.ok((await b.request('GET', `/api/automation/runs?trigger_id=${trigger.id}`)).body.runs.length >= 2)
  await b.end()
})

test('beyond its fire limit a trigger records canceled runs with the reason', async () => {
  const b = await bench()
  b.sessions.answer = () => completed
  const trigger = await create(b, {
    event: 'session.stopped',
    filter: { 'data.agent_name': 'worker' },
    fire_limit: { max: 1, window: '1h' },
  })
  await b.put('demo', hourly({ agent_name: 'worker' }))
  for (const n of [1, 2]) {
    await b.request('POST', '/api/automation/jobs/demo/trigger')
    const runs = await runsOf(b, trigger.id, n)
    assert.equal(
      [runs[n - 1].status, runs[n - 1].metadata.reason],
      n === 1 ? ['completed', undefined] : ['canceled', 'fire_limit'],
    )
  }
  await b.end()
})

test('a run claimed before a kill and without a session is dispatched once after the restart', async () => {
  const first = await bench()
  first.sessions.hangs = true
  const trigger = await create(first, {
    event: 'automation.run.completed',
    prompt: 'After {{ .Data.job_id }}.',
    filter: { 'data.job_id': 'demo' },
  })
  await first.put('demo', hourly())
  first.sessions.hangs = false
  first.sessions.answer = () => completed
  first.sessions.onCreate = ({ name }) => {
    if (name === 't') first.sessions.hangs = true
  }
  await first.request('POST', '/api/automation/jobs/demo/trigger')
  await first.until(async () => first.sessions.hangs, 'the run of the trigger waits for its session')
  const home = await first.snapshot()
  await first.sessions.release()
  await first.end()

  const second = await bench({ home, answer: () => completed })
  const [run, ...more] = await runsOf(second, trigger.id, 1)
  assert.equal([run.status, run.attempt, more.length], ['completed', 1, 0])
  assert.equal(
    second.sessions.prompts.map(({ text }) => text),
    ['After demo.'],
  )
  const again = await second.snapshot()
  await second.end()

  const third = await bench({ home: again, answer: () => completed })
  assert.is((await runsOf(third, trigger.id, 1)).length, 1)
  assert.equal(third.sessions.created, [])
  await third.end()
})

test.run()
