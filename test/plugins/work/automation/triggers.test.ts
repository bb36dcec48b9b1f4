import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inTree } from '../../../../plugins/index.js'
import { templateProblem } from '../../../../plugins/work/automation/triggers/prompt-template.js'
import { label, testCases } from '../../../fixtures/cases.js'
import { boot } from '../../../harness/kernel.js'
import { processorMs } from '../../../harness/processor-time.js'
import { type Bench, bench } from './bench.js'

const KIND = '/api/resources/automation.trigger'
const trigger = (more: Record<string, unknown> = {}) => ({
  name: 'on-stop',
  agent_name: 'report',
  prompt: 'What happened?',
  event: 'session.stopped',
  ...more,
})
const hook = (more: Record<string, unknown> = {}) =>
  trigger({ event: 'webhook', endpoint_slug: 'ci-done', webhook_secret_ref: 'env:CI_SECRET', ...more })
const loop = (more: Record<string, unknown> = {}) => ({
  name: 'l',
  event: 'ext.build.done',
  target_kind: 'loop',
  loop_target: { loop_name: 'x', workspace_id: 'ws_1', input_mapping: { a: '{{ .trigger.payload.x }}' } },
  ...more,
})

const VALID: readonly Record<string, unknown>[] = [
  trigger(),
  ...['session.created', 'memory.consolidated', 'hook.gate.completed', 'ext.ci.done'].map(event => trigger({ event })),
  hook(),
  hook({
    endpoint_slug: undefined,
    webhook_id: 'wbh_4c1ee2b97a0f4d6c9b3e5a8d7f60c2e1',
    webhook_secret_ref: 'vault:automation/ci',
  }),
  trigger({ filter: { kind: 'a', scope: 'workspace', workspace_id: 'w', source: 'observer', 'data.a.b': 'x' } }),
  trigger({ prompt: '{{.Kind}} {{ .Data.a.b }} {{ index .Data "stop reason" }} {{- .Scope -}}' }),
  trigger({ fire_limit: { max: 1, window: '1h' }, retry: { strategy: 'backoff', max_retries: 2, base_delay: '2s' } }),
  loop(),
]

const INVALID: readonly (readonly [Record<string, unknown>, RegExp])[] = [
  [trigger({ name: ' ' }), /name/],
  [trigger({ event: 'task.done' }), /event: unknown event "task\.done"; use session\.created/],
  [trigger({ event: 'hook..completed' }), /event: (?!.*memory\.consolidated)/],
  [trigger({ event: 'ext.' }), /event: /],
  [trigger({ agent_name: '' }), /agent_name: required/],
  [trigger({ prompt: ' ' }), /prompt: required/],
  [trigger({ prompt: '{{ .Nope }}' }), /unknown template field \{\{ \.Nope \}\}/],
  [trigger({ prompt: '{{ .Kind' }), /unbalanced/],
  [trigger({ prompt: '{{ .Kind.x }}' }), /unknown template field/],
  [trigger({ filter: { name: 'x' } }), /filter: unknown key/],
  [trigger({ filter: { 'data.': 'x' } }), /filter: unknown key/],
  [trigger({ filter: { constructor: 'x', kind: 'a' } }), /filter\.constructor: is reserved/],
  [trigger({ filter: { kind: '' } }), /filter\.kind: must not be empty/],
  [trigger({ webhook_id: 'wbh_1' }), /webhook_id: only allowed with event webhook/],
  [trigger({ webhook_secret_ref: 'env:X' }), /webhook_secret_ref: only allowed with event webhook/],
  [hook({ endpoint_slug: undefined }), /endpoint_slug: a webhook requires/],
  [hook({ endpoint_slug: 'a--b' }), /single hyphens/],
  [hook({ webhook_id: 'x' }), /must be wbh_ and at least 22/],
  [hook({ webhook_id: 'wbh_mine' }), /must be wbh_ and at least 22/],
  [hook({ webhook_secret_ref: 'the secret' }), /env:NAME or vault:automation/],
  [hook({ webhook_secret_ref: undefined }), /a webhook requires a secret/],
  [trigger({ fire_limit: { max: 0, window: '1h' } }), /fire_limit\.max/],
  [trigger({ retry: { strategy: 'none', max_retries: 1, base_delay: '' } }), /strategy none/],
  [loop({ prompt: 'x' }), /must be empty/],
  [loop({ loop_target: { loop_name: '', workspace_id: 'w' } }), /loop_name: required/],
  [
    trigger({ target_kind: 'agent', loop_target: { loop_name: 'x', workspace_id: 'w' } }),
    /not allowed with target_kind agent/,
  ],
  [trigger({ id: 'other' }), /id: "other" does not match/],
  [trigger({ scope: 'workspace' }), /the record scope global/],
]

const put = (b: Bench, id: string, spec: unknown) =>
  b.request('PUT', `${KIND}/${id}`, { scope: { kind: 'global' }, spec, expected_version: 0 })

/** The members of a spec that the plain trigger lacks. */
const part = (spec: Record<string, unknown>) =>
  label(Object.fromEntries(Object.entries(spec).filter(([key, value]) => (trigger() as typeof spec)[key] !== value)))

testCases({
  open: () => bench(),
  close: b => b.end(),
  cases: [
    ...VALID.map(spec => ({ spec, refusal: undefined })),
    ...INVALID.map(([spec, refusal]) => ({ spec, refusal })),
  ],
  name: ({ spec, refusal }) => `a trigger is ${refusal ? 'refused' : 'stored with enabled filled in'}: ${part(spec)}`,
  run: async (b, { spec, refusal }) => {
    if (refusal) {
      const { status, body } = await put(b, 'bad', spec)
      assert.equal([status, body.code], [422, 'invalid_spec'])
      return assert.match(body.error, refusal)
    }
    const n = VALID.indexOf(spec)
    const { status, body } = await put(b, `t${n}`, { ...spec, name: `${spec.name} ${n}`, colour: 'red' })
    assert.is(status, 201, JSON.stringify(body))
    assert.equal([body.record.spec.enabled, body.record.spec.colour], [true, undefined])
  },
  after: [
    'only valid triggers are listed and counted, and an oversized one is 413',
    async b => {
      assert.is((await b.request('GET', KIND)).body.records.length, VALID.length)
      assert.is((await put(b, 'large', trigger({ prompt: 'x'.repeat(256 * 1024) }))).status, 413)
      assert.equal((await b.request('GET', '/api/status')).body.automation.triggers, {
        enabled: VALID.length,
        total: VALID.length,
      })
    },
  ],
})

test('a trigger whose prompt stops the daemon is refused, like a job', async () => {
  const b = await bench()
  const spec = trigger({ prompt: 'Run svc daemon stop.' })
  const reply = await b.request('PUT', `${KIND}/t`, { scope: { kind: 'global' }, spec, expected_version: 0 })
  assert.equal([reply.status, reply.body.code], [400, 'lifecycle_command'])
  await b.end()
})

for (const kind of ['jobs', 'triggers'])
  test(`an unknown agent is refused when one of the ${kind} is created or updated`, async () => {
    const b = await boot({ plugins: inTree })
    const what = kind === 'jobs' ? { schedule: { mode: 'every', interval: '1h' } } : { event: 'session.stopped' }
    const body = { name: 'x', prompt: 'Go.', scope: 'global', agent_name: 'nobody', ...what }
    const path = `/api/automation/${kind}`
    const noun = kind.slice(0, -1)
    const made = await b.request('POST', path, body)
    assert.equal([made.status, made.body.code], [400, `${noun}_invalid`])
    const { id } = (await b.request('POST', path, { ...body, agent_name: 'general' })).body[noun]
    const changed = await b.request('PATCH', `${path}/${id}`, { agent_name: 'nobody' })
    assert.equal([changed.status, changed.body.code], [400, `${noun}_invalid`])
    assert.match(changed.body.error, /agent not found: "nobody"/)
    assert.is((await b.request('GET', `${path}/${id}`)).body[noun].agent_name, 'general')
    // Other fields of a definition whose agent was removed can still be updated.
    assert.is((await b.request('PATCH', `${path}/${id}`, { prompt: 'Go on.' })).status, 200)
    await b.close()
  })

test('a prompt of unclosed braces is refused about as fast as any other prompt', () => {
  const elapsed = (prompt: string, says: string | undefined) =>
    processorMs(() => assert.is(templateProblem(prompt)?.slice(0, 12), says))
  const size = 250_000
  const plain = Math.max(1, elapsed('{{ .Kind }} '.repeat(size / 12), undefined))
  for (const braces of ['{', '{{ ', '{{ .Kind }']) {
    const half = elapsed(braces.repeat(size / braces.length), 'unbalanced {')
    assert.ok(half < plain * 100, `${braces}: ${half} ms, and ${plain} ms for a prompt without a mistake`)
  }
})

test.run()
