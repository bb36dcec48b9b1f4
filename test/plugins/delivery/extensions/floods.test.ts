// proof, timeout: 120s: plugins that ask for more than there is
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { definePlugin, event, kind, type PluginKernel, surfaceOf } from '../../../../kernel/plugin.js'
import { daemon, resources, workspaces } from '../../../../plugins/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import { Reconcile } from '../../../../plugins/platform/reconcile/api.js'
import { boot } from '../../../harness/kernel.js'

const name = 'acme.flood'
const Seen = event('acme.flood.seen', v.object({ n: v.number() }))
const Drop = kind({ name: 'acme.drop', spec: v.object({}), maxBytes: 100 })
const turn = () => new Promise(resolve => setImmediate(resolve))
const { reconciler } = surfaceOf<{ project(ids: readonly string[]): void }>()
/** A record that is marked in each of its passes. */
const SELF = 'self'

/** What it does until its signal aborts; each asks for more than anybody has to give. */
const needs = { events: Events, reconcile: Reconcile }
type FloodKernel = PluginKernel<typeof needs>
type Flood = (kernel: FloodKernel, signal: AbortSignal) => Promise<void>
const floods: Readonly<Record<string, Flood>> = {
  async 'emits events, one per transaction'({ db, needs: { events } }, signal) {
    while (!signal.aborted) {
      for (let n = 0; n < 50; n++) db.tx(t => events.emit(t, Seen, { n })).catch(() => {})
      await turn()
    }
  },
  async 'emits a thousand events per transaction and retries at once'({ db, needs: { events } }, signal) {
    const many = (t: Parameters<typeof events.emit>[0]) => {
      for (let n = 0; n < 1000; n++) events.emit(t, Seen, { n })
    }
    while (!signal.aborted) await db.tx(many).catch(() => {})
  },
  async 'marks its records'({ db, records, needs, actor }, signal) {
    const ids = Array.from({ length: 100 }, (_, n) => `drop-${n}`)
    const scope = { kind: 'global' } as const
    await db.tx(t => ids.map(id => records.put(t, actor, { kind: Drop, id, scope, spec: {} })))
    while (!signal.aborted) {
      try {
        needs.reconcile.mark(ids.map(id => ({ kind: Drop.name, id })))
      } catch {
        // It goes on all the same.
      }
      await turn()
    }
  },
  async 'marks its records from their own pass'({ db, records, actor }, signal) {
    const scope = { kind: 'global' } as const
    await db.tx(t => records.put(t, actor, { kind: Drop, id: SELF, scope, spec: {} }))
    await new Promise(resolve => signal.addEventListener('abort', resolve))
  },
}

/** A daemon with a plugin that does this: how long others' requests take there, how many events it keeps, what doctor says. */
async function under(flood: Flood) {
  let last = () => 0
  let passed = 0
  class Flooding {
    constructor(private readonly kernel: FloodKernel) {
      last = () => kernel.needs.events.last()
    }
    run(signal: AbortSignal) {
      return flood(this.kernel, signal)
    }
    project(ids: readonly string[]) {
      passed += ids.length
      if (ids.includes(SELF))
        for (let n = 0; n < 500; n++) this.kernel.needs.reconcile.mark([{ kind: Drop.name, id: SELF }])
    }
  }
  const plugin = definePlugin({ name, version: '1.0.0', requires: needs, service: async () => Flooding }).surface({
    kinds: [Drop],
    events: [Seen],
    reconcilers: [reconciler({ kind: Drop, run: (self, { records }) => self.project(records.map(({ id }) => id)) })],
    services: [{ name: 'flood', run: (self, signal) => self.run(signal) }],
  })
  const svc = await boot({ plugins: [daemon, resources, workspaces, plugin] })
  const times: number[] = []
  for (let n = 0; n < REQUESTS; n++) {
    const began = performance.now()
    const body = { scope: { kind: 'global' }, spec: {} }
    const replies = [svc.request('PUT', `/api/resources/note/n${n}`, body), svc.request('GET', '/api/workspaces')]
    assert.equal(await Promise.all(replies.map(async reply => (await reply).status)), [201, 200])
    times.push(performance.now() - began)
    await turn()
  }
  const { items } = (await svc.request('GET', '/api/doctor?only=daemon.faults')).body
  const events = last()
  await svc.close()
  const faults: string[] = items.flatMap(({ code, message }: Record<string, string>) =>
    code === 'plugin_fault' ? [message] : [],
  )
  return { median: times.sort((a, b) => a - b)[REQUESTS / 2] as number, events, passed, faults }
}

const REQUESTS = 60
/** How much longer a request may take beside a flood: it shares the thread with whoever floods. */
const SLOWER = 30

let quiet: Awaited<ReturnType<typeof under>>
test.before(async () => {
  quiet = await under((_, signal) => new Promise(resolve => signal.addEventListener('abort', () => resolve())))
  assert.equal(quiet.faults, [])
})

for (const [what, flood] of Object.entries(floods))
  test(`an extension that ${what} blocks and displaces nothing, and is named`, async () => {
    const { median, events, passed, faults } = await under(flood)
    assert.ok(median < quiet.median * SLOWER, `${median} ms, quiet ${quiet.median} ms`)
    assert.ok(events < quiet.events + 12_000, `${events} events`)
    assert.ok(passed < 12_000, `${passed} records passed`)
    assert.match(faults.join('\n'), /^acme\.flood failed in (events|marks), \d+ times: .* or 100 per second$/m)
  })

test.run()
