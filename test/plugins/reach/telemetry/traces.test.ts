// timeout: 90s
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import {
  definePlugin,
  kind,
  noContent,
  type Plugin,
  type PluginKernel,
  routeOf,
  type Setting,
  surfaceOf,
} from '../../../../kernel/plugin.js'
import { daemon, hooks, resources, settings, workspaces } from '../../../../plugins/index.js'
import { Telemetry } from '../../../../plugins/reach/telemetry/api.js'
import telemetry from '../../../../plugins/reach/telemetry/index.js'
import { Endpoint, Headers, SampleRatio } from '../../../../plugins/reach/telemetry/settings.js'
import { Newest, spanContextOf, traceparentOf } from '../../../../plugins/reach/telemetry/traces/context.js'
import { MOST_WAITING } from '../../../../plugins/reach/telemetry/traces/exporter.js'
import { headersIn } from '../../../../plugins/reach/telemetry/traces/headers.js'
import { NativeHooks } from '../../../../plugins/work/hooks/api.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { eventually, openWorld } from '../../../fixtures/session-world.js'
import type { Answer } from '../../../harness/http-endpoint.js'
import { boot, type TestKernel, temporaryFolder, whileTimePasses } from '../../../harness/kernel.js'
import { type CollectedSpan, Collector } from './collector.js'

type Kernel = PluginKernel<{ telemetry: typeof Telemetry }>
const { contribute, reconciler } = surfaceOf<{ kernel: Kernel }>()
const route = routeOf<{ kernel: Kernel }>()
const REMOTE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const SECRET = 'sk-traced-0123456789abcdef'

const Thing = kind({ name: 'acme.thing', spec: v.object({ bad: v.boolean() }), maxBytes: 100 })
/** Writes a record, works in a span of its own, and has a hook. */
const acme = definePlugin({
  name: 'acme.work',
  version: '1',
  requires: { telemetry: Telemetry },
  service: async () =>
    class {
      constructor(readonly kernel: Kernel) {}
    },
}).surface({
  kinds: [Thing],
  secrets: [() => ({ follow: (sink: (value: string) => () => void) => sink(SECRET) })],
  reconcilers: [reconciler({ kind: Thing, run: async () => {} }) as never],
  registries: [
    contribute(NativeHooks, () => [{ name: 'look', event: 'input.pre_submit' as const, run: () => undefined }]),
  ],
  routes: [
    route({
      method: 'POST',
      path: '/api/ext/acme.work/things/{id}',
      summary: 'Write a thing',
      replies: { 204: null },
      handle: async ({ kernel }, { params, actor }) => {
        const { telemetry: traces } = kernel.needs
        await traces.span(
          `write ${SECRET}`,
          async () => {
            await kernel.db.tx(t =>
              kernel.records.put(t, { ...actor, owner: kernel.actor.owner } as never, {
                kind: Thing,
                id: params.id,
                scope: { kind: 'global' },
                spec: { bad: false },
              }),
            )
          },
          { attributes: { 'acme.key': `Bearer ${SECRET}` } },
        )
        return noContent()
      },
    }),
    route({
      method: 'POST',
      path: '/api/ext/acme.work/fail',
      summary: 'Fail',
      replies: { 204: null },
      handle: async ({ kernel }) => {
        await kernel.needs.telemetry.span('failing', () => Promise.reject(new Error(`no ${SECRET}`)))
        return noContent()
      },
    }),
  ],
}) as unknown as Plugin

async function homeWith(config: unknown): Promise<string> {
  const home = await temporaryFolder('traces')
  await writeFile(path.join(home, 'config.json'), JSON.stringify(config))
  return home
}

/** Resolves when spans are made. */
const on = (svc: Pick<TestKernel, 'request'>) =>
  eventually(async () => {
    const { body } = await svc.request('GET', '/api/telemetry')
    return body.telemetry.traces.state === 'ok'
  }, 'traces')

const only = (spans: readonly CollectedSpan[]): CollectedSpan => {
  assert.is(spans.length, 1, JSON.stringify(spans))
  return spans[0] as CollectedSpan
}

test('one trace covers a request and the turn of an agent, through header, environment and prompt', async () => {
  const collector = await Collector.start()
  const config = { telemetry: { otlp_endpoint: collector.url, service_name: 'svc-of-tests' } }
  const world = await openWorld({ plugins: [hooks, telemetry, acme], config })
  try {
    const traced = { traceparent: REMOTE, 'content-type': 'application/json' }
    await on(world.kernel)
    await world.agent('plain')
    const { at } = await world.session('plain')
    const { kernel } = world.kernel
    const wrote = await kernel.inject({
      method: 'POST',
      url: '/api/ext/acme.work/things/one',
      headers: { traceparent: REMOTE },
    })
    assert.is(wrote.status, 204, wrote.body)
    const body = { text: 'env TRACEPARENT\nmeta\n' }
    const { body: text } = await kernel.inject({ method: 'POST', url: `${at}/prompt`, headers: traced, body })
    const turn = JSON.parse(text).prompt.new_turn_id
    await world.until(at, event => event.turn_id === turn && event.type === 'done')
    const output = JSON.stringify(await world.events(at, `?turn_id=${turn}&limit=1000`))
    await world.kernel.close()

    assert.equal(collector.wrong, [])
    assert.is(collector.resources[0]?.['service.name'], 'svc-of-tests')
    const request = only(collector.named('POST /api/workspaces/{workspace_id}/sessions/{session_id}/prompt'))
    assert.equal([request.traceId, request.parentSpanId], [REMOTE.slice(3, 35), REMOTE.slice(36, 52)])
    assert.equal([request.kind, request.attributes['http.response.status_code'], request.failed], [2, 200, undefined])
    const agentTurn = only(collector.named('agent turn'))
    assert.equal([agentTurn.traceId, agentTurn.parentSpanId], [request.traceId, request.spanId])
    assert.equal([agentTurn.attributes['svc.status'], agentTurn.attributes['svc.turn']], ['completed', turn])
    const hook = only(collector.named('hook input.pre_submit'))
    assert.equal([hook.traceId, hook.parentSpanId], [request.traceId, request.spanId])
    const name = `00-${agentTurn.traceId}-${agentTurn.spanId}-01`
    assert.match(output, `TRACEPARENT=${name}`)
    assert.match(output.replaceAll('\\', ''), `meta {"traceparent":"${name}"}`)

    const write = only(collector.named('POST /api/ext/acme.work/things/{id}'))
    const own = only(collector.named(/^write/))
    const pass = only(collector.named('reconcile acme.thing'))
    assert.equal([own.parentSpanId, pass.parentSpanId], [write.spanId, own.spanId])
    assert.equal([own.name, own.attributes['acme.key']], ['write [redacted]', 'Bearer [redacted]'])
    assert.is(pass.attributes['svc.records'], 1)
    assert.equal(
      collector.received.filter(({ body: sent }) => sent.includes(SECRET)),
      [],
    )
  } finally {
    await world.close().catch(() => {})
    await collector.close()
  }
})

test('a failure is marked, and a secret in its error is redacted', async () => {
  const collector = await Collector.start()
  const home = await homeWith({ telemetry: { otlp_endpoint: collector.url } })
  const svc = await boot({ plugins: [daemon, telemetry, acme], home })
  await on(svc)
  assert.is((await svc.kernel.inject({ method: 'POST', url: '/api/ext/acme.work/fail' })).status, 500)
  await svc.close()
  assert.equal(collector.wrong, [])
  assert.is(only(collector.named('failing')).failed, 'no [redacted]')
  assert.is(only(collector.named('POST /api/ext/acme.work/fail')).failed, 'status 500')
  await collector.close()
  await rm(home, { recursive: true })
})

test('a collector that refuses, hangs or is unreachable blocks nothing, and doctor reports it', async () => {
  const clock = new VirtualClock(Date.UTC(2030, 0, 1))
  let answer: Answer | undefined = { status: 503 }
  const collector = await Collector.start(() => answer ?? new Promise<Answer>(() => {}))
  const home = await homeWith({ telemetry: { otlp_endpoint: collector.url } })
  const svc = await boot({ plugins: [daemon, telemetry, acme], home, clock })
  await whileTimePasses(clock, on(svc))
  const ask = () => svc.kernel.inject({ method: 'POST', url: '/api/ext/acme.work/things/one' })
  const traces = async () => (await svc.request('GET', '/api/telemetry')).body.telemetry.traces
  const until = (wanted: string) =>
    whileTimePasses(
      clock,
      eventually(async () => (await traces()).state === wanted, wanted),
    )
  await ask()
  await until('failing')
  const failing = await traces()
  assert.is(failing.error, 'it answered 503')
  assert.ok(failing.waiting > 0 && failing.sent === 0)
  const doctor = await whileTimePasses(clock, svc.request('GET', '/api/doctor?only=telemetry'))
  assert.equal(
    doctor.body.items.map(({ code, severity }: { code: string; severity: string }) => `${severity} ${code}`),
    ['warning telemetry_endpoint_failing'],
  )
  // It holds a bounded number, and counts what it lets go.
  let full = await traces()
  for (let n = 0; n < 20 && full.dropped === 0; n++) {
    await Promise.all(Array.from({ length: 100 }, ask))
    full = await traces()
  }
  assert.is(full.waiting, MOST_WAITING)
  assert.ok(full.dropped > 0)
  // One that never answers is given up.
  answer = undefined
  await whileTimePasses(
    clock,
    eventually(async () => /no end within/.test((await traces()).error ?? ''), 'a late answer'),
  )
  // What waited is sent when it is back.
  answer = { body: { partialSuccess: { rejectedSpans: '3', errorMessage: 'three' } } }
  await until('ok')
  const { sent, refused } = await traces()
  assert.ok(sent > 0 && refused >= 3)
  // What it says of a request for good is not sent again.
  answer = { status: 400 }
  await ask()
  await until('failing')
  assert.is((await traces()).error, 'it answered 400')
  assert.equal(collector.wrong, [])
  await whileTimePasses(clock, svc.close())
  await collector.close()
  await rm(home, { recursive: true })
})

test('nothing is sent without an endpoint; settings start and stop it, and a missing secret is reported', async () => {
  const collector = await Collector.start()
  const env = { PATH: process.env.PATH, HOME: '/nowhere', COLLECTOR: `authorization=Bearer%20${SECRET}` }
  const svc = await boot({ plugins: [daemon, settings, workspaces, resources, telemetry, acme], env })
  const ask = (thing: string) =>
    svc.kernel.inject({ method: 'POST', url: `/api/ext/acme.work/things/${thing}`, headers: { traceparent: REMOTE } })
  const traces = async () => (await svc.request('GET', '/api/telemetry')).body.telemetry.traces
  const set = async (changes: Readonly<Record<string, unknown>>) => {
    const body = { changes: Object.entries(changes).map(([name, value]) => ({ key: `telemetry.${name}`, value })) }
    const { status, body: reply } = await svc.request('PATCH', '/api/settings/keys', body)
    assert.is(status, 200, JSON.stringify(reply))
  }
  await ask('before')
  assert.is((await traces()).state, 'off')
  await set({ otlp_endpoint: `${collector.url}/`, otlp_headers: 'env:MISSING' })
  await on(svc)
  await ask('kept')
  await eventually(async () => (await traces()).state === 'failing', 'a missing secret')
  assert.match((await traces()).error, 'MISSING')
  assert.equal(collector.received, [])
  await set({ otlp_headers: 'env:COLLECTOR' })
  await eventually(async () => collector.named(/things/).length > 0, 'spans')
  assert.is(collector.received[0]?.headers.authorization, `Bearer ${SECRET}`)
  await set({ trace_sample_ratio: 0 })
  await on(svc)
  const before = collector.spans.length
  // A caller's own trace is recorded as it says, others are not.
  await svc.kernel.inject({ method: 'POST', url: '/api/ext/acme.work/things/unsampled' })
  await ask('sampled')
  await set({ otlp_endpoint: '' })
  await eventually(async () => collector.spans.length > before, 'the last spans')
  assert.is((await traces()).state, 'off')
  const parents = collector.spans
    .slice(before)
    .filter(({ kind: of }) => of === 2)
    .map(({ parentSpanId }) => parentSpanId)
  assert.equal(parents, [REMOTE.slice(36, 52)])
  await ask('after')
  await svc.close()
  assert.equal(collector.wrong, [])
  await collector.close()
})

test('an endpoint with a password and other invalid settings are refused', () => {
  const refuses = (setting: Setting<unknown>, value: unknown) => !v.safeParse(setting.schema, value).success
  for (const bad of ['localhost:4318', 'http://user:pass@host', 'https://host/?key=1', 'ftp://host', 'http://', 7])
    assert.ok(refuses(Endpoint as never, bad), String(bad))
  for (const good of ['', 'http://localhost:4318', 'https://otlp.example/base'])
    assert.not.ok(refuses(Endpoint as never, good), good)
  for (const bad of ['authorization=x', 'vault:other/x', 'vault:telemetry/'])
    assert.ok(refuses(Headers as never, bad), bad)
  for (const bad of [-0.1, 1.1, '1']) assert.ok(refuses(SampleRatio as never, bad), String(bad))
})

test('trace headers are parsed, and headers of the collector are sent', () => {
  assert.equal(spanContextOf(REMOTE), {
    traceId: REMOTE.slice(3, 35),
    spanId: REMOTE.slice(36, 52),
    traceFlags: 1,
    isRemote: true,
  })
  assert.is(traceparentOf(spanContextOf(REMOTE) as never), REMOTE)
  const zeros = '0'.repeat(32)
  for (const bad of [
    undefined,
    '',
    ['x'],
    `00-${zeros}-b7ad6b7169203331-01`,
    REMOTE.toUpperCase(),
    `${REMOTE}-01`,
    `01${REMOTE.slice(2)}`,
    `${REMOTE}\n`,
  ])
    assert.is(spanContextOf(bad), undefined, String(bad))
  assert.equal(headersIn('Authorization=Bearer%20a%2Cb, x-team = 7 ,'), { authorization: 'Bearer a,b', 'x-team': '7' })
  for (const bad of ['no-equals', 'a b=c', 'x=%0d%0ainjected: 1', 'x=%zz']) {
    try {
      headersIn(bad)
      assert.unreachable(bad)
    } catch (error) {
      assert.not.match((error as Error).message, bad)
    }
  }
  const newest = new Newest<number>(2)
  newest.set('a', 1)
  newest.set('b', 2)
  newest.set('a', 3)
  newest.set('c', 4)
  assert.equal([newest.get('a'), newest.get('b'), newest.get('c'), newest.size], [3, undefined, 4, 2])
})

test.run()
