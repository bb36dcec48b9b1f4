import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { Collected } from '../../kernel/platform.js'
import {
  type Change,
  definePlugin,
  kind,
  type Plugin,
  type PluginKernel,
  type StoredRecord,
  surfaceOf,
  type Tx,
  type Written,
} from '../../kernel/plugin.js'
import * as all from '../../plugins/index.js'
import { Reconcile, type ReconcileApi, points as reconcilePoints } from '../../plugins/platform/reconcile/api.js'
import { bootBare, temporaryFolder } from '../harness/kernel.js'

/** A plugin of the package with all that it requires, directly or not. */
function withNeeds(...plugins: readonly Plugin[]): Plugin[] {
  const found = new Set(plugins)
  for (const plugin of found) {
    for (const need of Object.values(plugin.requires)) {
      const provider = 'id' in need && all.inTree.find(({ provides }) => provides?.id === need.id)
      if (provider) found.add(provider)
    }
  }
  return [...found]
}

const note = { scope: { kind: 'global' }, spec: { text: 'hello' }, expected_version: 0 }

test('the smallest kernel is daemon and resources with their requirements', async () => {
  const plugins = withNeeds(all.daemon, all.resources)
  assert.equal(plugins.map(({ name }) => name).sort(), [
    'daemon',
    'events',
    'journals',
    'processes',
    'reconcile',
    'resources',
  ])
  const svc = await bootBare({ plugins })
  assert.equal([...new Set(svc.kernel.host.plugins().map(({ state }) => state.status))], ['active'])
  assert.is((await svc.request('GET', '/api/status')).status, 200)
  assert.is((await svc.request('PUT', '/api/resources/some.note/one', note)).status, 201)
  assert.equal((await svc.request('GET', '/api/resources/some.note/one')).body.record.spec, note.spec)
  assert.is((await svc.request('GET', '/api/openapi.json')).status, 404)
  await svc.close()
})

test('a home of the whole program starts with an empty kernel, and is complete again afterwards', async () => {
  const home = await temporaryFolder('home')
  const whole = await bootBare({ plugins: withNeeds(all.daemon, all.resources), home })
  assert.is((await whole.request('PUT', '/api/resources/some.note/one', note)).status, 201)
  await whole.close()
  await (await bootBare({ plugins: [], home })).close()
  const again = await bootBare({ plugins: withNeeds(all.daemon, all.resources), home })
  assert.equal((await again.request('GET', '/api/resources/some.note/one')).body.record.spec, note.spec)
  await again.close()
  await rm(home, { recursive: true })
})

/** Runs every reconciler at once, one record at a time; as small as such a thing can be. */
class EagerReconcile implements ReconcileApi {
  readonly passed

  constructor(private readonly kernel: PluginKernel) {
    this.passed = kernel.hooks.of(reconcilePoints).passed
  }

  projected(change: Change): void {
    for (const { owner, entry } of this.kernel.collect(Collected.reconcilers)) {
      const { name } = entry.entry.kind
      if (change.started.has(owner)) for (const id of this.kernel.records.ids(name)) this.run(name, id)
    }
  }

  written(t: Tx, { change }: Written): void {
    const { kind: name, id } = change.verb === 'put' ? change.after : change.before
    this.kernel.db.onDurable(t, () => this.run(name, id))
  }

  run(name: string, id: string): void {
    const stored = this.kernel.records.get(name, id) as StoredRecord | undefined
    const batch = stored
      ? { records: [this.kernel.records.decoded(stored)], removed: [] }
      : { records: [], removed: [id] }
    for (const { entry } of this.kernel.collect(Collected.reconcilers)) {
      const { kind, run } = entry.entry
      if (kind.name === name) void run(entry.self, { first: false, ...batch, fail: () => {} }, this.kernel.scope.signal)
    }
  }

  mark(keys: Parameters<ReconcileApi['mark']>[0]): void {
    for (const key of keys) this.run(key.kind, key.id)
  }

  settled = async () => true
  health = () => []
}

const eager = definePlugin({
  name: 'acme.reconcile',
  version: '3',
  replaces: 'reconcile',
  provides: Reconcile,
  service: async () => EagerReconcile,
}).surface({
  hooks: {
    projected: (self, change) => self.projected(change),
    written: (self, t, written) => self.written(t, written),
  },
})

const Light = kind({ name: 'light', spec: v.object({ on: v.boolean() }), maxBytes: 100 })
const lit = new Map<string, boolean>()
const { reconciler } = surfaceOf<object>()
const lights = definePlugin({ name: 'lights', version: '1', service: async () => class {} }).surface({
  kinds: [Light],
  reconcilers: [
    reconciler({
      kind: Light,
      run: (_, { records, removed }) => {
        for (const { id, spec } of records) lit.set(id, spec.on)
        for (const id of removed) lit.delete(id)
      },
    }),
  ],
})

test('a plugin can replace reconcile and give it back', async () => {
  lit.clear()
  const svc = await bootBare({
    plugins: [...withNeeds(all.daemon, all.resources), lights, eager],
    replace: ['acme.reconcile'],
  })
  const who = () => svc.kernel.host.plugins().find(({ name }) => name === 'reconcile')
  assert.equal([who()?.state.status, who()?.replacedBy, who()?.version], ['active', 'acme.reconcile', '3'])
  const put = (id: string, on: boolean, version = 0) =>
    svc.request('PUT', `/api/resources/light/${id}`, {
      scope: { kind: 'global' },
      spec: { on },
      expected_version: version,
    })
  assert.is((await put('hall', true)).status, 201)
  assert.equal([...lit], [['hall', true]])
  assert.is((await put('hall', false, 1)).status, 200)
  assert.equal([...lit], [['hall', false]])
  assert.is((await svc.request('DELETE', '/api/resources/light/hall', { expected_version: 2 })).status, 204)
  assert.equal([...lit], [])
  await put('stairs', true)
  lit.clear()
  await svc.kernel.host.unload('reconcile')
  assert.equal([who()?.state.status, who()?.replacedBy], ['active', undefined])
  assert.equal([...lit], [['stairs', true]], 'the one of the package began anew')
  await svc.close()
})

test.run()
