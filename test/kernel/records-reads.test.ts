import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault, operator, pluginActor, type StoredRecord } from '../../kernel/plugin.js'
import { differing } from '../../plugins/platform/reconcile/differing.js'
import { boot, temporaryFolder } from '../harness/kernel.js'
import { everywhere, garden, keeper, Leaf, leaf } from './fixtures/keeper.js'

const idsOf = (records: readonly StoredRecord[]) => records.map(({ id }) => id).sort()

/** A garden whose leaves `old` and `half` were stored before anybody had their codec; `good` came with it. */
async function wild() {
  const home = await temporaryFolder('reads')
  const early = keeper('early')
  const first = await boot({ home, plugins: [early.plugin] })
  const { db, records } = early.kernel
  await db.tx(t => {
    records.put(t, operator, { ...leaf('old'), spec: { words: 1 } })
    records.put(t, operator, { ...leaf('half'), spec: { text: 'half', more: true } })
  })
  await first.close()
  const scene = await garden({ home })
  await scene.put(operator, leaf('good'))
  return { ...scene, home, records: scene.kernel.records }
}

test('a read by kind decodes the record, also one stored before the codec', async () => {
  const { records, host, home } = await wild()
  assert.equal(records.get(Leaf, 'half')?.spec, { text: 'half' })
  assert.equal(records.get('leaf', 'half')?.spec, { more: true, text: 'half' })
  assert.equal(
    records.list({ kind: Leaf }).map(({ spec }) => spec),
    [{ text: 'good' }, { text: 'half' }],
  )
  await host.close()
  await rm(home, { recursive: true })
})

test('get of a record that its codec refuses reports the reason and the command to view it', async () => {
  const { records, host, home } = await wild()
  try {
    records.get(Leaf, 'old')
    assert.unreachable()
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    assert.is(error.code, 'invalid_spec')
    assert.match(error.message, /leaf old/)
    assert.match(error.message, /text/)
    assert.is(error.next, 'svc resource get leaf old')
  }
  assert.equal(records.get('leaf', 'old')?.spec, { words: 1 })
  assert.is(records.get(Leaf, 'missing'), undefined)
  await host.close()
  await rm(home, { recursive: true })
})

test('a list by kind omits refused records, and a list by name has all as stored', async () => {
  const { records, host, home } = await wild()
  const ids = ['good', 'half', 'old', 'missing']
  assert.equal(idsOf(records.list({ kind: Leaf })), ['good', 'half'])
  assert.equal(idsOf(records.getAll(Leaf, ids)), ['good', 'half'])
  assert.equal(idsOf(records.list({ kind: 'leaf' })), ['good', 'half', 'old'])
  assert.equal(idsOf(records.getAll('leaf', ids)), ['good', 'half', 'old'])
  assert.equal(records.ids(Leaf), ['good', 'half', 'old'])
  assert.is(records.count({ kind: Leaf }), 3)
  await host.close()
  await rm(home, { recursive: true })
})

test('a projection differs by changed versions, new records and removed ids', async () => {
  const { kernel, put, host } = await garden()
  for (const id of ['a', 'b', 'c']) await put(operator, leaf(id))
  await put(operator, leaf('b', 'again'))
  const known = new Map([
    ['a', 1],
    ['b', 1],
    ['gone', 1],
  ])
  assert.equal(differing(kernel.records.versions({ kind: Leaf }), known), ['b', 'c', 'gone'])
  await host.close()
})

test('a page has the newest first, continues below a position, and omits the spec', async () => {
  const { kernel, put, host } = await garden()
  const { records } = kernel
  for (const id of ['c', 'a', 'b']) {
    await put(operator, leaf(id))
    await put(operator, { kind: 'raw.kind', id, scope: everywhere, spec: {} })
  }
  await put(operator, leaf('c', 'again'))
  const first = records.page({ kind: Leaf, limit: 2 })
  assert.equal(
    first.map(({ id }) => id),
    ['b', 'a'],
  )
  const [b, a] = first
  assert.not('spec' in (b ?? {}))
  assert.equal([b?.kind, b?.scope, b?.owner, b?.source], ['leaf', everywhere, operator.owner, operator.source])
  const below = { above: 0, upTo: (a?.place ?? 0) - 1 }
  const rest = records.page({ kind: Leaf, places: below })
  assert.equal(
    rest.map(({ id }) => id),
    ['c'],
  )
  assert.is(records.count({ kind: Leaf, places: below }), 1)
  assert.is(records.page({ limit: 1 })[0]?.kind, 'raw.kind')
  await host.close()
})

test('counts, lists and pages filter by spec members; a spec that is no object has none', async () => {
  const { kernel, put, host } = await garden()
  const { records } = kernel
  const raw = (id: string, spec: unknown) => put(operator, { kind: 'raw.kind', id, scope: everywhere, spec })
  await raw('on', { enabled: true, name: "it's" })
  await raw('off', { enabled: false })
  await raw('text', 'enabled')
  await raw('null', null)
  assert.is(records.count({ kind: 'raw.kind', members: { enabled: true } }), 1)
  assert.equal(idsOf(records.list({ kind: 'raw.kind', members: { enabled: false } })), ['off'])
  assert.equal(
    records.page({ kind: 'raw.kind', members: { enabled: true, name: "it's" } }).map(({ id }) => id),
    ['on'],
  )
  assert.is(records.count({ members: { 'enabled") OR 1 --': 1 } }), 0)
  await host.close()
})

test('sources with records are found by kind, with their counts', async () => {
  const { kernel, put, host } = await garden()
  const { records } = kernel
  await put(operator, leaf('a'))
  await put(pluginActor('garden'), leaf('b'))
  await put(pluginActor('garden'), leaf('c'))
  await put(pluginActor('meadow'), leaf('d'))
  const { source } = pluginActor('garden')
  assert.equal(records.sources(source.kind), ['garden', 'meadow'])
  assert.equal(records.sources('nobody'), [])
  assert.is(records.count({ source }), 2)
  const daemon = { of: 'source', kind: 'daemon' } as const
  const meadow = { ...daemon, id: 'meadow' }
  assert.is(records.count({ kind: Leaf, anyOf: [{ ...daemon, id: 'garden' }, meadow] }), 3)
  assert.equal(idsOf(records.list({ kind: Leaf, anyOf: [daemon], noneOf: [meadow, { of: 'owner', kind: 'x' }] })), [
    ...(operator.source.kind === 'daemon' ? ['a'] : []),
    'b',
    'c',
  ])
  await host.close()
})

test.run()
