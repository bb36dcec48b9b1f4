import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { bench, hourly } from './bench.js'
import { completed, failed } from './fake-sessions.js'

const spec = { name: 'one', agent_name: 'report', prompt: 'Look.', event: 'session.created' }

test('trigger names are unique in a scope, whichever API writes them', async () => {
  const b = await bench()
  const put = (id: string, scope: unknown, more: Record<string, unknown> = {}, version = 0) => {
    const body = { expected_version: version, scope, spec: { ...spec, ...more } }
    return b.request('PUT', `/api/resources/automation.trigger/${id}`, body)
  }
  const here = { kind: 'workspace', id: b.workspace }
  assert.is((await put('a', here)).status, 201)
  const twice = await put('b', here)
  assert.equal([twice.status, twice.body.code], [409, 'trigger_name_taken'])
  assert.is((await put('c', { kind: 'global' })).status, 201)
  // It keeps its own.
  assert.is((await put('a', here, { prompt: 'New.' }, 1)).status, 200)
  assert.is((await put('b', here, { name: 'two' })).status, 201)
  const renamed = await put('b', here, { name: 'one' }, 1)
  assert.equal([renamed.status, renamed.body.code], [409, 'trigger_name_taken'])
  const patched = await b.request('PATCH', '/api/automation/triggers/b', { name: 'one' })
  assert.equal([patched.status, patched.body.code], [409, 'trigger_name_taken'])
  await b.end()
})

test('doctor names a trigger whose latest run failed, until one completes or it is deleted', async () => {
  const b = await bench()
  b.sessions.answer = ({ text }) => (text === 'Look.' ? failed('no paper') : completed)
  const filter = { 'data.agent_name': 'worker' }
  const body = { ...spec, filter, event: 'session.stopped', scope: 'workspace', workspace_id: b.workspace }
  const { trigger } = (await b.request('POST', '/api/automation/triggers', body)).body
  await b.put('demo', hourly({ agent_name: 'worker' }))
  const found = async () => {
    const { items } = (await b.request('GET', '/api/doctor')).body
    return items.find((item: { id: string }) => item.id === `trigger:${trigger.id}`)
  }
  const fire = async (count: number) => {
    await b.request('POST', '/api/automation/jobs/demo/trigger')
    await b.until(async () => {
      const { runs } = (await b.request('GET', `/api/automation/triggers/${trigger.id}/runs`)).body
      return runs.length === count && runs.every((run: { ended_at: string | null }) => run.ended_at)
    }, 'it ran')
  }
  assert.is(await found(), undefined)
  await fire(1)
  const item = await found()
  assert.equal([item?.code, item?.severity], ['automation_run_failed', 'warning'])
  assert.match(item.message, /no paper/)
  assert.is(item.suggested_command, `svc automation triggers history ${trigger.id}`)
  await b.request('PATCH', `/api/automation/triggers/${trigger.id}`, { prompt: 'Look again.' })
  await fire(2)
  assert.is(await found(), undefined)
  await b.request('PATCH', `/api/automation/triggers/${trigger.id}`, { prompt: 'Look.' })
  await fire(3)
  assert.ok(await found())
  await b.request('DELETE', `/api/automation/triggers/${trigger.id}`)
  assert.is(await found(), undefined)
  await b.end()
})

test.run()
