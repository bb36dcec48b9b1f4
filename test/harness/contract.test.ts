import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { findRoute, validateReply } from './contract.js'

const at = '2030-01-31T09:00:00.000Z'
const job = {
  id: 'job_1',
  name: 'nightly',
  agent_name: 'general',
  prompt: 'tidy up',
  enabled: true,
  scope: 'global',
  source: 'dynamic',
  target_kind: 'agent',
  fire_limit: { max: 12, window: '1h' },
  retry: { strategy: 'none', max_retries: 0, base_delay: '' },
  schedule: { mode: 'cron', expr: '0 3 * * *' },
  scheduler: null,
  created_at: at,
  updated_at: at,
}
const page = { has_more: false, limit: 50, total: 1 }

test('a literal segment wins over a parameter, and the query is ignored', () => {
  assert.is(findRoute('GET', '/api/sessions/ses_1')?.path, '/api/sessions/{session_id}')
  assert.is(findRoute('GET', '/api/sessions/catalog-stream')?.path, '/api/sessions/catalog-stream')
  assert.is(findRoute('get', '/api/agents/catalog?workspace=ws_1')?.path, '/api/agents/catalog')
  assert.is(findRoute('GET', '/api/agents/{name}')?.path, '/api/agents/{name}')
  assert.is(findRoute('GET', '/api/nowhere'), undefined)
  assert.is(findRoute('POST', '/api/status'), undefined)
})

test('a reply that matches the contract has no faults', () => {
  assert.equal(validateReply('GET', '/api/automation/jobs?limit=50', 200, { jobs: [job], page }), [])
  assert.equal(
    validateReply('GET', '/api/automation/jobs/job_1', 404, { error: 'no such job', code: 'job_not_found' }),
    [],
  )
  assert.equal(validateReply('DELETE', '/api/automation/jobs/job_1', 204, undefined), [])
  // A route of contract-completing.json, whose reply refers to a schema of contract.json.
  assert.equal(validateReply('GET', '/api/sessions', 200, { sessions: [], page }), [])
})

const faults: [string, unknown, RegExp][] = [
  ['a member is missing', { jobs: [job] }, /^\/: must have required property 'page'$/],
  ['a type is wrong', { jobs: [{ ...job, enabled: 'yes' }], page }, /^\/jobs\/0\/enabled: must be boolean$/],
  [
    'a value is outside its enumeration',
    { jobs: [{ ...job, source: 'cli' }], page },
    /^\/jobs\/0\/source: .*: config, package, dynamic$/,
  ],
  [
    'a time is invalid',
    { jobs: [{ ...job, created_at: 'now' }], page },
    /^\/jobs\/0\/created_at: must match format "date-time"$/,
  ],
  ['an integer has a fraction', { jobs: [], page: { ...page, total: 1.5 } }, /^\/page\/total: must be integer$/],
  [
    'a nested member is missing',
    { jobs: [{ ...job, retry: { strategy: 'none' } }], page },
    /^\/jobs\/0\/retry: must have/,
  ],
  ['the body is missing', undefined, /^\/: must be object$/],
]
for (const [name, body, expected] of faults)
  test(`${name}: the fault gives position and reason`, () => {
    const found = validateReply('GET', '/api/automation/jobs', 200, body)
    assert.ok(
      found.some(line => expected.test(line)),
      `${expected} is not among:\n${found.join('\n')}`,
    )
  })

test('a body with a status that has none is a fault', () => {
  assert.equal(validateReply('DELETE', '/api/automation/jobs/job_1', 204, { ok: true }), [
    '/: status 204 comes without a body',
  ])
})

test('routes and statuses outside the contract are not judged', () => {
  assert.equal(validateReply('GET', '/api/nowhere', 200, { any: 1 }), [])
  assert.equal(validateReply('GET', '/api/automation/jobs', 418, { any: 1 }), [])
})

test.run()
