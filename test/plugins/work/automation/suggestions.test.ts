import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { AGENT_SESSION } from '../../../../plugins/access/identity/api.js'
import { Automation } from '../../../../plugins/work/automation/api.js'
import type { Reply } from '../../../harness/kernel.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { type Bench, bench, hourly } from './bench.js'
import { completed } from './fake-sessions.js'

const DAY = 86_400_000
const job = { name: 'daily', agent_name: 'report', prompt: 'Go.', schedule: { mode: 'every', interval: '1h' } } as const

const urlOf = (b: Bench) => `/api/workspaces/${b.workspace}/automation/suggestions`
const propose = (b: Bench, body: Record<string, unknown>) => b.request('POST', urlOf(b), body)
const listed = async (b: Bench, query = ''): Promise<Reply[]> =>
  (await b.request('GET', `${urlOf(b)}${query}`)).body.suggestions

test('a suggestion has no effect until it is accepted, and creates its job once', async () => {
  const b = await bench()
  const made = await propose(b, { job })
  assert.is(made.status, 201, JSON.stringify(made.body))
  const { suggestion } = made.body
  assert.equal([suggestion.status, suggestion.payload.name, suggestion.resolved_at], ['pending', 'daily', null])
  assert.equal((await b.request('GET', '/api/automation/jobs')).body.jobs, [])
  // The same again is the one that waits.
  assert.is((await propose(b, { job })).body.suggestion.id, suggestion.id)
  const url = `${urlOf(b)}/${suggestion.id}`
  const both = await Promise.all([1, 2].map(() => b.request('POST', `${url}/accept`)))
  assert.equal(both.map(({ status, body }) => body.code ?? status).sort(), [200, 'suggestion_resolved'])
  const { jobs } = (await b.request('GET', '/api/automation/jobs')).body
  assert.equal(
    jobs.map((one: Reply) => [one.name, one.workspace_id, one.source]),
    [['daily', b.workspace, 'dynamic']],
  )
  assert.ok(jobs[0].next_run)
  assert.equal(
    (await listed(b)).map(one => one.status),
    ['accepted'],
  )
  for (const verb of ['accept', 'dismiss']) {
    const again = await b.request('POST', `${url}/${verb}`)
    assert.equal([again.status, again.body.code], [409, 'suggestion_resolved'])
  }
  await b.end()
})

test('of an acceptance and a dismissal at the same time one counts', async () => {
  const b = await bench()
  const { id } = (await propose(b, { job })).body.suggestion
  const both = await Promise.all(['accept', 'dismiss'].map(verb => b.request('POST', `${urlOf(b)}/${id}/${verb}`)))
  assert.equal(both.map(({ status, body }) => body.code ?? status).sort(), [200, 'suggestion_resolved'])
  const { jobs } = (await b.request('GET', '/api/automation/jobs')).body
  const isAccepted = (await listed(b))[0]?.status === 'accepted'
  assert.is(jobs.length, isAccepted ? 1 : 0, 'a dismissed suggestion makes no job')
  await b.end()
})

test('suggestions that share a long prefix are not duplicates', async () => {
  const b = await bench()
  const long = { ...job, prompt: 'Look at everything. '.repeat(50) }
  const one = (await propose(b, { job: long })).body.suggestion
  const other = { ...long, schedule: { mode: 'every', interval: '2h' } }
  const two = (await propose(b, { job: other })).body.suggestion
  assert.is.not(one.id, two.id)
  assert.is((await propose(b, { job: other })).body.suggestion.id, two.id)
  await b.end()
})

test('a trigger can be suggested, and a dismissed suggestion creates nothing', async () => {
  const b = await bench()
  const trigger = { name: 'after', agent_name: 'report', prompt: 'See {{ .Kind }}.', event: 'session.stopped' }
  const one = (await propose(b, { trigger })).body.suggestion
  assert.equal([one.trigger.event, one.payload.name, one.payload.schedule], ['session.stopped', 'after', null])
  const two = (await propose(b, { job, dedup_key: 'mine' })).body.suggestion
  assert.is(two.dedup_key, 'mine')
  const accepted = await b.request('POST', `${urlOf(b)}/${one.id}/accept`)
  assert.equal([accepted.status, accepted.body.trigger.event], [200, 'session.stopped'])
  assert.is((await b.request('GET', `/api/automation/triggers/${accepted.body.trigger.id}`)).status, 200)
  assert.is((await b.request('POST', `${urlOf(b)}/${two.id}/dismiss`)).body.suggestion.status, 'dismissed')
  assert.equal(await listed(b, '?status=pending'), [])
  assert.equal((await b.request('GET', '/api/automation/jobs')).body.jobs, [])
  await b.end()
})

test('an invalid suggestion is refused, and pending suggestions are limited and expire', async () => {
  const b = await bench()
  for (const [body, code] of [
    [{}, 'suggestion_invalid'],
    [{ job: { ...job, schedule: { mode: 'cron', expr: 'never' } } }, 'job_invalid'],
    [{ job: { ...job, prompt: 'Run svc daemon stop.' } }, 'lifecycle_command'],
    [{ trigger: { name: 'x', prompt: 'y', agent_name: 'report', event: 'nothing' } }, 'trigger_invalid'],
    [{ job: { ...job, scope: 'global' } }, 'invalid_request'],
  ] as const) {
    const reply = await propose(b, body)
    assert.equal([reply.status, reply.body.code], [400, code], JSON.stringify(reply.body))
  }
  for (let n = 0; n < 50; n++) assert.is((await propose(b, { job: { ...job, name: `job ${n}` } })).status, 201)
  const more = await propose(b, { job: { ...job, name: 'one more' } })
  assert.equal([more.status, more.body.code], [409, 'suggestion_limit'])
  const [newest] = await listed(b)
  await b.clock.advance(31 * DAY)
  assert.equal(await listed(b), [])
  const late = await b.request('POST', `${urlOf(b)}/${newest?.id}/accept`)
  assert.equal([late.status, late.body.code], [404, 'suggestion_not_found'])
  assert.is((await propose(b, { job: { ...job, name: 'one more' } })).status, 201)
  const elsewhere = await b.request('GET', '/api/workspaces/ws_none/automation/suggestions')
  assert.equal([elsewhere.status, elsewhere.body.code], [404, 'workspace_not_found'])
  await b.end()
})

test('an agent suggests only in its own workspace, an extension through the automation API', async () => {
  const kernels: PluginKernel<{ automation: typeof Automation }>[] = []
  const acme = definePlugin({
    name: 'acme.tips',
    version: '1.0.0',
    requires: { automation: Automation },
    service: async () =>
      class {
        constructor(kernel: PluginKernel<{ automation: typeof Automation }>) {
          kernels.push(kernel)
        }
      },
  }).surface({})
  const b = await bench({ plugins: [acme] })
  b.sessions.answer = () => completed
  await b.put('demo', hourly({ agent_name: 'worker' }))
  await b.request('POST', '/api/automation/jobs/demo/trigger')
  const { id } = await b.until(async () => b.sessions.created[0], 'a session was made')
  const [kernel] = kernels as [PluginKernel<{ automation: typeof Automation }>]
  const agent = { ...kernel.actor, id, origin: AGENT_SESSION }
  const mine = await kernel.needs.automation.suggest(agent, b.workspace, { job })
  assert.is(mine.source, 'agent:worker')
  const root = await b.request('POST', '/api/workspaces', { root_dir: await temporaryFolder('other'), name: 'other' })
  const foreign = await kernel.needs.automation.suggest(agent, root.body.workspace.id, { job }).catch(error => error)
  assert.is(foreign.code, 'suggestion_foreign')
  const own = await kernel.needs.automation.suggest(kernel.actor, b.workspace, { job: { ...job, name: 'tip' } })
  assert.is(own.source, 'extension:acme.tips')
  await b.end()
})

test.run()
