import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { DropIns, type DropInsApi } from '../../../kernel/platform.js'
import type { PluginKernel } from '../../../kernel/plugin.js'
import { bootBare as boot } from '../../harness/kernel.js'
import { plain, refusal } from './scene.js'

type Svc = Awaited<ReturnType<typeof boot>>
const doorOf = (kernel: PluginKernel) =>
  (kernel.needs as unknown as Record<string, DropInsApi>)[DropIns.id] as DropInsApi
const states = (svc: Svc) =>
  Object.fromEntries(svc.kernel.host.plugins().map(({ name, version, state }) => [`${name} ${version}`, state.status]))

/** A plugin that hands out its door. */
function keeper(seen: { door?: DropInsApi }) {
  return plain('keeper', {
    requires: [DropIns.id],
    apply: kernel => {
      seen.door = doorOf(kernel)
    },
  })
}

test('a plugin loads, replaces and removes only drop-ins', async () => {
  const seen: { door?: DropInsApi } = {}
  const svc = await boot({ plugins: [keeper(seen), plain('base')], replace: ['acme.base'] })
  const door = seen.door as DropInsApi
  assert.equal(await door.put(plain('acme.one')), { status: 'active' })
  assert.equal(await door.put(plain('acme.one', { version: '2' })), { status: 'active' })
  await door.put(plain('acme.base', { replaces: 'base', version: '2', path: '/api/base' }))
  assert.equal(states(svc), { 'acme.one 2': 'active', 'base 2': 'active', 'keeper 1': 'active' })
  // The one that replaces goes by its own name.
  await door.remove('acme.base')
  await door.remove('acme.one')
  assert.equal(states(svc), { 'base 1': 'active', 'keeper 1': 'active' })
  assert.match(await refusal(door.remove('base')), /^forbidden: base/)
  assert.match(await refusal(door.put(plain('base', { version: '3' }))), /^forbidden: base/)
  assert.equal(states(svc), { 'base 1': 'active', 'keeper 1': 'active' })
  await svc.close()
})

test('the tables of a removed plugin are purged, never those of a running or built-in one', async () => {
  const seen: { door?: DropInsApi } = {}
  const svc = await boot({ plugins: [keeper(seen)] })
  const door = seen.door as DropInsApi
  const tables = [{ id: '1', sql: 'CREATE TABLE acme_one_thing (id TEXT)' }]
  const one = plain('acme.one')
  await door.put({ ...one, surface: { ...one.surface, tables } })
  const streams = () => svc.kernel.host.store().streams.map(({ owner }) => owner)
  assert.match(await refusal(door.purge('acme.one')), /^forbidden: acme.one runs/)
  assert.match(await refusal(door.purge('keeper')), /^forbidden: keeper is built in/)
  await door.remove('acme.one')
  assert.ok(streams().includes('acme.one'), 'they stay until then')
  await door.purge('acme.one')
  await door.purge('acme.one')
  assert.not.ok(streams().includes('acme.one'))
  await svc.close()
})

test('a plugin that starts or ends is refused a wait for itself', async () => {
  const messages: string[] = []
  const starting = plain('acme.two', {
    requires: [DropIns.id],
    apply: async kernel => {
      messages.push(await refusal(doorOf(kernel).put(plain('acme.three'))))
      kernel.scope.defer('last word', async () => {
        messages.push(await refusal(doorOf(kernel).remove('acme.two')))
      })
    },
  })
  const seen: { door?: DropInsApi } = {}
  const early: string[] = []
  const eager = plain('eager', {
    requires: ['keeper@1'],
    apply: async () => {
      early.push(await refusal((seen.door as DropInsApi).put(plain('acme.early'))))
    },
  })
  const svc = await boot({ plugins: [{ ...keeper(seen), provides: { id: 'keeper@1' } } as never, eager] })
  assert.match(early[0] ?? '', /^change_under_way/)
  await seen.door?.put(starting)
  await seen.door?.remove('acme.two')
  assert.is(messages.length, 2)
  for (const text of messages) assert.match(text, /^change_under_way/)
  assert.equal(states(svc), { 'eager 1': 'active', 'keeper 1': 'active' })
  await svc.close()
})

test.run()
