import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { Redactors } from '../../kernel/platform.js'
import { definePlugin, type Plugin, type PluginKernel, type RegistryToken, surfaceOf } from '../../kernel/plugin.js'
import { type Check, Checks } from '../../plugins/desk/daemon/api.js'
import { audit, daemon, inTree } from '../../plugins/index.js'
import { AuditedEvents } from '../../plugins/platform/audit/api.js'
import { boot } from '../harness/kernel.js'

const declared = [Redactors, ...inTree.flatMap(({ surface }) => surface.declares ?? [])]
/** Registries that no drop-in is meant to fill: code contributes to it that runs before there are drop-ins. */
const UNCHECKED = ['extensions.begun@1']

/** A plugin that reads registries. */
function reader(): { readonly plugin: Plugin; readonly collect: PluginKernel['collect'] } {
  let kernel: PluginKernel | undefined
  const plugin = definePlugin({ name: 'reader', version: '1' }).surface({
    hooks: {
      running: (self: PluginKernel) => {
        kernel = self
      },
    },
  } as never)
  return { plugin, collect: token => kernel!.collect(token) }
}

const { contribute } = surfaceOf<unknown>()
const check = (id: string): Check => ({ id, category: 'acme', run: async () => [] })

test('every registry describes its entries', () => {
  const without = declared.flatMap(({ registry, entry }) => (entry ? [] : [registry]))
  assert.equal(without, UNCHECKED)
})

test('built-in contributions match the schemas of the registries', async () => {
  const { plugin, collect } = reader()
  const svc = await boot({ plugins: [...inTree, plugin] })
  let entries = 0
  for (const token of declared as RegistryToken<unknown>[]) {
    for (const { owner, entry } of token.entry ? collect(token) : []) {
      entries++
      const { issues } = v.safeParse(token.entry!, entry)
      assert.is(issues, undefined, `${owner} in ${token.registry}: ${issues?.map(({ message }) => message)}`)
    }
  }
  assert.ok(entries > 60, `${entries} entries`)
  await svc.close()
})

test('an invalid entry of a drop-in is skipped and is a fault of the drop-in', async () => {
  const { plugin, collect } = reader()
  const wrong = { id: 'acme.wrong', category: 'acme', run: 'no function' } as never
  const throwing = Object.defineProperty({}, 'id', {
    get: () => {
      throw new Error('not for you')
    },
    enumerable: true,
  }) as never
  const bad = definePlugin({ name: 'acme.bad', version: '1' }).surface({
    registries: [
      contribute(Checks, () => [check('acme.one'), wrong, throwing, check('acme.two')]),
      contribute(AuditedEvents, () => ['acme.thing.done', 7 as never]),
    ],
  })
  const good = definePlugin({ name: 'acme.good', version: '1' }).surface({
    registries: [contribute(Checks, () => [check('acme.three')])],
  })
  const svc = await boot({ plugins: [daemon, audit, plugin, bad, good] })
  const ids = () =>
    collect(Checks)
      .filter(({ owner }) => owner.startsWith('acme.'))
      .map(({ owner, entry }) => `${owner} ${entry.id}`)
  const left = ['acme.bad acme.one', 'acme.bad acme.two', 'acme.good acme.three']
  assert.equal(ids(), left)
  assert.equal(ids(), left)
  const events = collect(AuditedEvents).filter(({ owner }) => owner === 'acme.bad')
  assert.equal(
    events.map(({ entry }) => entry),
    ['acme.thing.done'],
  )
  const faults = svc.kernel.host.faults().filter(({ owner }) => owner === 'acme.bad')
  assert.equal(
    faults.filter(({ where }) => where === Checks.registry).map(({ error, count }) => `${count} ${error}`),
    [
      '1 an entry of daemon.checks@1 is ignored: run: must be a function, not a string',
      '1 an entry of daemon.checks@1 is ignored: not for you',
    ],
    'an entry is checked once',
  )
  assert.match(faults.find(({ where }) => where === AuditedEvents.registry)?.error ?? '', 'the entry: ')
  const { body } = await svc.request('GET', '/api/doctor')
  assert.match(JSON.stringify(body), 'daemon.faults.acme.bad')
  await svc.close()
})

test('an entry contributed by another built-in plugin is not validated at run time', async () => {
  const { plugin, collect } = reader()
  const own = definePlugin({ name: 'own', version: '1' }).surface({
    registries: [contribute(Checks, () => [{ id: 'x', category: 'y', run: 7 } as never])],
  })
  const svc = await boot({ plugins: [daemon, plugin, own] })
  assert.is(collect(Checks).filter(({ owner }) => owner === 'own').length, 1)
  await svc.close()
})

test.run()
