// timeout: 60s
import { spawnSync } from 'node:child_process'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import {
  definePlugin,
  type Exchange,
  event,
  kind,
  ok,
  type Plugin,
  type PluginKernel,
  routeOf,
  surfaceOf,
} from '../../../../kernel/plugin.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import { inTree } from '../../../../plugins/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import { type Metric, Metrics } from '../../../../plugins/reach/telemetry/api.js'
import telemetry from '../../../../plugins/reach/telemetry/index.js'
import { MOST_SERIES } from '../../../../plugins/reach/telemetry/metrics/counted.js'
import { Counts } from '../../../../plugins/reach/telemetry/metrics/counts.js'
import { declared } from '../../../../plugins/reach/telemetry/metrics/declared.js'
import { exposed, expositionFor } from '../../../../plugins/reach/telemetry/metrics/exposition.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { label } from '../../../fixtures/cases.js'
import { boot, type TestKernel, whileTimePasses } from '../../../harness/kernel.js'
import { read, sumOf } from './exposition.js'

const { contribute, reconciler } = surfaceOf<PluginKernel>()
const route = routeOf<unknown>()

async function metrics(svc: TestKernel, accept = '', as: 'openmetrics' | 'prometheus' = 'openmetrics') {
  const { body, headers, status } = await svc.kernel.inject({ method: 'GET', url: '/metrics', headers: { accept } })
  assert.is(status, 200)
  return { families: read(body, as), text: body, type: String(headers['content-type']) }
}

const Thing = kind({ name: 'acme.thing', spec: v.object({ bad: v.boolean() }), maxBytes: 100 })
const Done = event('acme.done', v.object({}))
let inside: PluginKernel<{ events: typeof Events }>
/** A plugin with everything that is counted. */
const acme = definePlugin({
  name: 'acme.work',
  version: '1',
  requires: { events: Events },
  service: async () =>
    class {
      constructor(kernel: PluginKernel<{ events: typeof Events }>) {
        inside = kernel
      }
    },
}).surface({
  kinds: [Thing],
  events: [Done],
  reconcilers: [
    reconciler({
      kind: Thing,
      run: async (_, { records, fail }) => {
        for (const { id, spec } of records) if (spec.bad) fail(id, new Error('it is bad'))
      },
    }) as never,
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/ext/acme.work/things/{id}',
      summary: 'Get a thing',
      replies: { 200: v.object({ id: v.string() }) },
      handle: (_, { params }) => ok({ id: params.id }),
    }),
  ],
}) as unknown as Plugin

test('requests, events, passes and the process are counted, and both formats are valid', async () => {
  const svc = await boot({ plugins: [daemon, telemetry, acme] })
  for (const id of ['ses_1', 'ses_2', 'ses_3'])
    await svc.kernel.inject({ method: 'GET', url: `/api/ext/acme.work/things/${id}` })
  await svc.kernel.inject({ method: 'GET', url: '/api/secret-path?token=hidden' })
  const { db, records, needs, actor } = inside
  await db.tx(t => needs.events.emit(t, Done, {}))
  await db
    .tx(t => {
      needs.events.emit(t, Done, {})
      throw new Error('rolled back')
    })
    .catch(() => {})
  await db.tx(t => {
    records.put(t, actor, { kind: Thing, id: 'one', scope: { kind: 'global' }, spec: { bad: false } })
    records.put(t, actor, { kind: Thing, id: 'two', scope: { kind: 'global' }, spec: { bad: true } })
  })
  await db.durable()
  const { families, text, type } = await metrics(svc)
  assert.is(type, 'application/openmetrics-text; version=1.0.0; charset=utf-8')
  const requests = families.get('svc_http_requests')
  const things = '/api/ext/acme.work/things/{id}'
  assert.is(
    requests?.samples.get(`svc_http_requests_total{route="${things}",method="GET",status="200",door="inject"}`),
    3,
  )
  assert.is(sumOf(requests, 'route="none"', 'status="404"'), 1)
  assert.is(sumOf(families.get('svc_http_request_duration_seconds'), `_count{route="${things}"`), 3)
  assert.not.match(text, /ses_\d|secret-path|hidden/)
  assert.is(sumOf(families.get('svc_events'), 'event="acme.done"'), 1)
  assert.is(sumOf(families.get('svc_reconcile_passes'), 'kind="acme.thing"', 'outcome="failed"'), 1)
  assert.is(sumOf(families.get('svc_reconcile_quarantined'), 'kind="acme.thing"'), 1)
  for (const name of [
    'process_resident_memory_bytes',
    'process_cpu_seconds',
    'svc_heap_bytes',
    'svc_database_transactions',
  ])
    assert.ok(sumOf(families.get(name)) > 0, name)
  assert.is(sumOf(families.get('svc_build'), 'version='), 1)
  if (process.platform === 'linux') assert.ok(sumOf(families.get('process_open_fds')) > 3)
  assert.equal(
    [...families.keys()],
    Object.values(declared).map(({ name }) => name),
    'all that is declared, in order',
  )

  const plain = await metrics(svc, 'text/plain;version=0.0.4', 'prometheus')
  assert.is(plain.type, 'text/plain; version=0.0.4; charset=utf-8')
  assert.is(plain.families.get('svc_build_info')?.type, 'gauge')
  assert.ok(sumOf(plain.families.get('svc_http_requests_total')) > 3)
  assert.ok(plain.families.has('svc_event_loop_delay_seconds'))
  const tool = spawnSync('promtool', ['check', 'metrics'], { input: plain.text, encoding: 'utf8', timeout: 20_000 })
  // Of the package `prometheus`; where that is not installed, the reader above is the judge.
  if (!tool.error) assert.is(tool.stdout + tool.stderr, '')
  await svc.close()
})

const PROMETHEUS = 'application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
const ACCEPTS: readonly (readonly [string | undefined, string])[] = [
  [undefined, 'openmetrics'],
  ['*/*', 'openmetrics'],
  [PROMETHEUS, 'openmetrics'],
  ['text/plain', 'prometheus'],
  ['text/plain;version=0.0.4;q=0.9,application/openmetrics-text;q=0.1', 'prometheus'],
  ['text/plain;q=0', 'openmetrics'],
  ['TEXT/PLAIN; q=1', 'prometheus'],
  [`${'a/b,'.repeat(100_000)}text/plain`, 'openmetrics'],
  ['text/plain;q=many', 'openmetrics'],
]
for (const [accept, format] of ACCEPTS)
  test(`the format is ${format} with Accept: ${label(accept)}`, () => assert.is(expositionFor(accept), format))

test('labels and help texts are escaped, and numbers formatted by the specifications', () => {
  const hostile = 'a"b\\c\nd'
  const family = {
    name: 'acme_x',
    type: 'gauge',
    help: hostile,
    labels: ['l'],
    samples: [
      { labels: { l: hostile }, value: Number.NaN },
      { labels: { l: 'inf' }, value: Number.NEGATIVE_INFINITY },
      { labels: { l: 'small' }, value: 1e-9 },
    ],
  } as const
  const open = read(exposed([family], 'openmetrics'), 'openmetrics').get('acme_x')
  assert.equal(
    [...(open?.samples.keys() ?? [])],
    ['acme_x{l="a\\"b\\\\c\\nd"}', 'acme_x{l="inf"}', 'acme_x{l="small"}'],
  )
  assert.is(open?.help, 'a\\"b\\\\c\\nd')
  assert.is(read(exposed([family], 'prometheus'), 'prometheus').get('acme_x')?.help, 'a"b\\\\c\\nd')
})

const gauge = (name: string, samples: readonly unknown[], more: Partial<Metric> = {}): Metric =>
  ({ name, type: 'gauge', help: 'A figure', read: () => samples, ...more }) as Metric

test('an invalid metric of an extension is skipped and is a fault of the extension', async () => {
  const clock = new VirtualClock(Date.UTC(2030, 0, 1))
  const good = [
    gauge('acme_good', [{ labels: { part: 'a' }, value: 1 }], { labels: ['part'] }),
    { ...gauge('acme_seconds', [{ counts: [1, 2, 3], sum: 4 }]), type: 'histogram', bounds: [1, 2] } as Metric,
  ]
  const wrong: Readonly<Record<string, readonly [Metric, RegExp]>> = {
    throws: [
      {
        ...gauge('acme_throws', []),
        read: () => {
          throw new Error('no figures today')
        },
      },
      /no figures today/,
    ],
    hangs: [{ ...gauge('acme_hangs', []), read: () => new Promise(() => {}) }, /no end within 2000 ms/],
    foreign: [gauge('svc_sessions_of_mine', [{ value: 1 }]), /begin with acme_/],
    twice: [gauge('acme_good', [{ value: 1 }]), /another metric has this name/],
    labels: [gauge('acme_labels', [{ labels: { id: 'ses_1' }, value: 1 }]), /its labels differ from its declaration/],
    many: [
      gauge(
        'acme_many',
        Array.from({ length: 501 }, (_, n) => ({ labels: { n: `${n}` }, value: n })),
        { labels: ['n'] },
      ),
      /501 series, and at most 500/,
    ],
    text: [gauge('acme_text', [{ value: '7' }]), /not a number/],
    nothing: [gauge('acme_nothing', undefined as never), /not return a list/],
    same: [gauge('acme_same', [{ value: 1 }, { value: 2 }]), /the same labels/],
    buckets: [
      { ...gauge('acme_buckets', [{ counts: [1], sum: 1 }]), type: 'histogram', bounds: [1, 2] } as Metric,
      /buckets/,
    ],
    name: [gauge('acme_x_total', []), /an entry of telemetry.metrics@1 is ignored: name/],
    bounds: [{ ...gauge('acme_bounds', []), bounds: [2, 1] }, /ascending/],
  }
  const all = [...good, ...Object.values(wrong).map(([metric]) => metric)]
  const extension = definePlugin({ name: 'acme.figures', version: '1' }).surface({
    registries: [contribute(Metrics, () => all)],
  })
  const svc = await boot({ plugins: [daemon, telemetry, extension as never], clock })
  const { families } = await whileTimePasses(clock, metrics(svc))
  assert.equal(
    [...families.keys()].filter(name => name.startsWith('acme_')),
    ['acme_good', 'acme_seconds'],
  )
  assert.is(families.get('acme_good')?.samples.get('acme_good{part="a"}'), 1)
  assert.is(families.get('acme_seconds')?.samples.get('acme_seconds_bucket{le="2.0"}'), 3)
  assert.ok(families.has('svc_sessions') && !families.has('svc_sessions_of_mine'))
  const faults = svc.kernel.host.faults().filter(({ owner }) => owner === 'acme.figures')
  for (const [name, [, why]] of Object.entries(wrong))
    assert.ok(
      faults.some(({ error }) => why.test(error)),
      `${name}: ${faults.map(({ error }) => error).join('\n')}`,
    )
  const again = await whileTimePasses(clock, metrics(svc))
  assert.ok(sumOf(again.families.get('svc_telemetry_collect_failures'), 'plugin="acme.figures"') >= 8)
  await svc.close()
})

test('a label with a secret of an extension is redacted', async () => {
  const secret = 'sk-figure-0123456789abcdef'
  const source = {
    follow: (sink: (value: string) => () => void) => sink(secret),
  }
  const extension = definePlugin({ name: 'acme.figures', version: '1' }).surface({
    secrets: [() => source],
    registries: [
      contribute(Metrics, () => [
        gauge('acme_keys', [{ labels: { key: `Bearer ${secret}` }, value: 1 }], { labels: ['key'] }),
      ]),
    ],
  })
  const svc = await boot({ plugins: [daemon, telemetry, extension as never] })
  const { text } = await metrics(svc)
  assert.match(text, 'acme_keys')
  assert.not.match(text, secret)
  await svc.close()
})

test('unbounded methods and routes of requests create a bounded number of series', () => {
  const counts = new Counts({ collect: () => [] })
  const exchange = (n: number): Exchange => ({
    ...{ id: `req_${n}`, door: 'tcp', method: `M${n}`, url: '/', headers: {}, remoteAddress: undefined },
    ...{ path: `/api/ext/acme/${n}`, status: 200, milliseconds: 1 },
  })
  for (let n = 0; n < MOST_SERIES + 500; n++) counts.request(exchange(n))
  const samples = counts.requests.read()
  assert.is(samples.length, MOST_SERIES + 1)
  assert.is(samples.at(-1)?.value, 500)
  assert.equal(new Set(samples.map(({ labels }) => labels?.method)).size, 1)
})

test('turns, runs, hooks and deliveries are counted by outcome', () => {
  const counts = new Counts({ collect: () => [] })
  const stored = (name: string, payload: object = {}) =>
    counts.event({ seq: 1, id: 'evt_1', at: 1, name, actor: { kind: 'user', id: 'a' } as never, payload })
  stored('task.run_completed')
  stored('task.run_operator_forced_fail')
  stored('task.run_lease_expired')
  stored('automation.run.created', { trigger_id: 't' })
  stored('automation.run.created', { job_id: 'j' })
  stored('automation.run.ended', { trigger_id: 't', status: 'failed' })
  stored('automation.run.ended', { job_id: 'j', status: 'completed' })
  const turn = { sessionId: 'ses_1', turnId: 'trn_1' }
  counts.turnStarted({ ...turn, type: 'user_message', content: {} })
  assert.is(counts.turnsRunning, 1)
  counts.turnEnded({ ...turn, type: 'done', content: { status: 'canceled', duration_ms: 2000 } })
  counts.turnEnded({ ...turn, type: 'error', content: {} })
  counts.turnStarted({ ...turn, type: 'user_message', content: {} })
  counts.sessionStopped('ses_1')
  assert.is(counts.turnsRunning, 0)
  counts.bridgeDelivery({ state: 'failed' })
  const shown = (counter: { read: () => { labels?: object; value: number }[] }) =>
    counter.read().map(({ labels, value }) => `${Object.values(labels ?? {}).join(' ')} ${value}`.trim())
  assert.equal(shown(counts.taskRunsEnded), ['completed 1', 'failed 1'])
  assert.equal(shown(counts.leasesExpired), ['1'])
  assert.equal(shown(counts.automationRuns), ['trigger failed 1', 'job completed 1'])
  assert.equal(shown(counts.triggerFires), ['1'])
  assert.equal(shown(counts.turns), ['canceled 1', 'failed 1'])
  assert.equal(counts.turnSeconds.read(), [{ labels: {}, counts: [0, 1, 0, 0, 0, 0, 0], sum: 2 }])
  assert.equal(shown(counts.bridgeDeliveries), ['failed 1'])
})

test('every metric is readable while all plugins run', async () => {
  const svc = await boot({ plugins: inTree })
  const { families } = await metrics(svc)
  assert.equal(
    [...families.keys()],
    Object.values(declared).map(({ name }) => name),
  )
  assert.is(sumOf(families.get('svc_telemetry_collect_failures')), 0)
  await svc.close()
})

test.run()
