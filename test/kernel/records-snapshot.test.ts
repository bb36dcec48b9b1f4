import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Actor, Fault, operator } from '../../kernel/plugin.js'
import type { Snapshot } from '../../plugins/delivery/subprocess-host/snapshots.js'
import { VirtualClock } from '../../testing/virtual-clock.js'
import { testCases } from '../fixtures/cases.js'
import { temporaryFolder } from '../harness/kernel.js'
import { everywhere, extension, type Garden, garden, leaf, outcomeOf } from './fixtures/keeper.js'

const ivy = extension('ivy')
const ws = (id: string) => ({ kind: 'workspace', id }) as const

const activate = ({ kernel, snapshots }: Garden, actor: Actor = ivy) =>
  kernel.db.tx(t => snapshots.activate(t, actor.source, actor.nonce ?? ''))

const publish = (
  { kernel, snapshots }: Garden,
  sourceVersion: number,
  records: Snapshot['records'],
  actor: Actor = ivy,
) => kernel.db.tx(t => snapshots.apply(t, actor, { sourceVersion, records }))

const stored = ({ kernel }: Garden) =>
  kernel.records.list({}).map(({ id, version, createdAt, updatedAt }) => ({ id, version, createdAt, updatedAt }))

test('a snapshot creates, changes, keeps and removes; only changes get a pass and an event', async () => {
  const clock = new VirtualClock()
  const passes: string[] = []
  const scene = await garden({
    clock,
    reconcilers: [
      {
        kind: { name: 'leaf' } as never,
        run: (_, { records, removed }) =>
          void passes.push(...records.map(({ id }) => id), ...removed.map(id => `-${id}`)),
      },
    ],
  })
  await scene.put(operator, leaf('mine'))
  await activate(scene)
  assert.equal(await publish(scene, 1, [leaf('a'), leaf('b'), leaf('c')]), {
    created: 3,
    updated: 0,
    unchanged: 0,
    deleted: 0,
  })
  const at = clock.now()
  await clock.advance(1000)
  passes.length = 0
  const seq = (await scene.kernel.needs.events.list({})).at(-1)?.seq ?? 0
  const mark = { b: { ...leaf('b'), spec: { text: 'b', unknown: true } }, c: leaf('c', 'changed') }
  assert.equal(await publish(scene, 5, [mark.c, leaf('d'), mark.b]), {
    created: 1,
    updated: 1,
    unchanged: 1,
    deleted: 1,
  })
  await clock.advance(0)
  assert.equal(stored(scene), [
    { id: 'b', version: 1, createdAt: at, updatedAt: at },
    { id: 'c', version: 2, createdAt: at, updatedAt: at + 1000 },
    { id: 'd', version: 1, createdAt: at + 1000, updatedAt: at + 1000 },
    { id: 'mine', version: 1, createdAt: at, updatedAt: at },
  ])
  assert.equal(passes.sort(), ['-a', 'c', 'd'])
  const events = (await scene.kernel.needs.events.list({})).filter(event => event.seq > seq)
  assert.equal(events.map(({ name, subject }) => `${name} ${subject}`).sort(), [
    'record.deleted leaf/a',
    'record.put leaf/c',
    'record.put leaf/d',
  ])
  assert.equal(events[0]?.actor, { kind: 'extension', id: 'ivy', origin: 'extension' })
  // An equal spec with another scope is a change.
  assert.equal(await publish(scene, 6, [mark.c, leaf('d'), { ...mark.b, scope: { kind: 'user' } }]), {
    created: 0,
    updated: 1,
    unchanged: 2,
    deleted: 0,
  })
  assert.equal(await publish(scene, 7, []), { created: 0, updated: 0, unchanged: 0, deleted: 3 })
  assert.equal(
    stored(scene).map(({ id }) => id),
    ['mine'],
  )
  await scene.host.close()
})

const rest = [leaf('new'), leaf('held', 'changed')]
const big = 'x'.repeat(200_000)
const REFUSED: readonly [string, number, Snapshot['records'], string, Actor?][] = [
  ['an operator', 4, rest, '403 forbidden', operator],
  ['no kinds granted', 4, rest, '403 not_granted', extension('ivy', { grantedKinds: [] })],
  ['no scopes granted', 4, rest, '403 not_granted', extension('ivy', { grantedScopes: [] })],
  ['too wide a scope', 4, rest, '403 not_granted', extension('ivy', { maxScope: ws('ws_1') })],
  ['a kind of a service', 4, [...rest, { ...leaf('x'), kind: 'kept', spec: {} }], '403 owner_only'],
  ['a kind name', 4, [...rest, { ...leaf('x'), kind: 'No' }], '422 invalid_kind'],
  ['an id', 4, [...rest, leaf('a/b')], '422 invalid_id'],
  ['a scope', 4, [...rest, { ...leaf('x'), scope: { kind: 'workspace' } }], '422 invalid_scope'],
  ['a scope that is gone', 4, [...rest, { ...leaf('x'), scope: ws('ws_gone') }], '422 no_such_workspace'],
  ['a spec', 4, [...rest, { ...leaf('x'), spec: { text: 1 } }], '422 invalid_spec'],
  ['an owner', 4, [{ ...leaf('x'), owner: operator.owner } as never], '403 forbidden'],
  ['a version', 4, [...rest, { ...leaf('x'), expectedVersion: 1 }], '422 invalid_snapshot'],
  ['the same twice', 4, [...rest, leaf('new', 'other')], '422 invalid_snapshot'],
  ['no whole version', 4.5, rest, '422 invalid_snapshot'],
  ['a large record', 4, [...rest, leaf('x', 'x'.repeat(262_144))], '413 payload_too_large'],
  ['many records', 4, Array.from({ length: 257 }, (_, i) => leaf(`r${i}`)), '413 payload_too_large'],
  ['many bytes', 4, Array.from({ length: 11 }, (_, i) => leaf(`r${i}`, big)), '413 payload_too_large'],
  ['a foreign id', 4, [...rest, leaf('mine')], '409 record_exists'],
  ['the version before', 3, rest, '409 snapshot_stale'],
  ['version 0', 0, rest, '409 snapshot_stale'],
  ['another process', 4, rest, '409 source_inactive', extension('ivy', { nonce: 'n0' })],
  ['a source without a process', 4, rest, '409 source_inactive', extension('oak')],
  ['a guard of a write', 4, [...rest, leaf('refused')], '409 not_this'],
  ['a guard of a removal', 4, [leaf('new')], '409 in_use'],
]

testCases({
  open: async () => {
    const scene = await garden({
      hooks: {
        scope: (_, _t, scope) => (scope.id === 'ws_gone' ? new Fault('no_such_workspace', 422, 'gone') : undefined),
        write: {
          '*': (_, _t, change) => {
            if (change.verb === 'delete')
              return change.before.id === 'held' ? new Fault('in_use', 409, 'held') : undefined
            return change.after.id === 'refused' ? new Fault('not_this', 409, 'no') : undefined
          },
        },
      },
    })
    await scene.put(operator, leaf('mine'))
    await activate(scene)
    await publish(scene, 3, [leaf('held'), leaf('b')])
    return { scene, before: stored(scene) }
  },
  close: ({ scene }) => scene.host.close(),
  cases: REFUSED,
  name: ([what, , , outcome]) => `a snapshot is refused and writes nothing: ${what} (${outcome})`,
  run: async ({ scene, before }, [, version, records, outcome, actor]) => {
    assert.is(await outcomeOf(publish(scene, version, records, actor)), outcome)
    assert.equal(stored(scene), before)
  },
  after: [
    'a refused snapshot does not use up its version, and a snapshot at the limits is stored',
    async ({ scene }) => {
      const most = Array.from({ length: 254 }, (_, i) => leaf(`r${i}`))
      assert.is(await outcomeOf(publish(scene, 4, [...rest, ...most])), 'done')
      const heavy = Array.from({ length: 10 }, (_, i) => leaf(`r${i}`, big))
      assert.is(await outcomeOf(publish(scene, 5, [...rest, ...heavy, leaf('x', 'x'.repeat(90_000))])), 'done')
      assert.is(stored(scene).length, 14)
    },
  ],
})

test('a record takes the name of one that is removed by the same snapshot', async () => {
  const textOf = (record: { spec: unknown }) => (record.spec as { text: string }).text
  const scene = await garden({
    hooks: {
      write: {
        leaf: (_, _t, change) => {
          if (change.verb === 'delete') return undefined
          const { after } = change
          const twin = scene.kernel.records
            .list({ kind: 'leaf' })
            .some(r => r.id !== after.id && textOf(r) === textOf(after))
          return twin ? new Fault('name_taken', 409, 'taken') : undefined
        },
      },
    },
  })
  await activate(scene)
  await publish(scene, 1, [leaf('a', 'name')])
  assert.is(await outcomeOf(publish(scene, 2, [leaf('b', 'name')])), 'done')
  assert.is(await outcomeOf(publish(scene, 3, [leaf('b', 'name'), leaf('c', 'name')])), '409 name_taken')
  await scene.host.close()
})

test('one process owns a source; its records and versions survive a restart; a reset forgets all', async () => {
  const home = await temporaryFolder('source')
  let scene = await garden({ home })
  await activate(scene)
  await publish(scene, 7, [leaf('a')])
  await activate(scene)
  assert.is(await outcomeOf(publish(scene, 7, [])), '409 snapshot_stale', 'the same process again changes nothing')
  await scene.host.close()

  scene = await garden({ home })
  assert.is(await outcomeOf(publish(scene, 7, [])), '409 snapshot_stale')
  const next = extension('ivy', { nonce: 'n2' })
  assert.is(await outcomeOf(publish(scene, 8, [], next)), '409 source_inactive')
  await activate(scene, next)
  assert.is(await outcomeOf(publish(scene, 8, [])), '409 source_inactive', 'the old process is fenced off')
  assert.equal(await publish(scene, 1, [leaf('a')], next), { created: 0, updated: 0, unchanged: 1, deleted: 0 })

  const oak = extension('oak')
  await activate(scene, oak)
  await publish(scene, 1, [leaf('o')], oak)
  await scene.put(operator, { kind: 'leaf', id: 'mine', scope: everywhere, spec: { text: 'x' } })
  await scene.kernel.db.tx(t => scene.snapshots.reset(t, operator, ivy.source))
  assert.equal(
    stored(scene).map(({ id }) => id),
    ['mine', 'o'],
  )
  assert.is(await outcomeOf(publish(scene, 9, [], next)), '409 source_inactive')
  await activate(scene, next)
  assert.is(await outcomeOf(publish(scene, 1, [leaf('a')], next)), 'done')
  await scene.host.close()
  await rm(home, { recursive: true })
})

test('a snapshot or reset removes nothing of kinds without a grant', async () => {
  const scene = await garden()
  const leaves = extension('ivy', { grantedKinds: ['leaf'] })
  await activate(scene, leaves)
  // The daemon keeps something of the same source that the process has no part in.
  const host: Actor = { kind: 'daemon', id: 'garden', owner: ivy.source, source: ivy.source }
  await scene.put(host, { kind: 'branch', id: 'kept', scope: everywhere, spec: { leaves: [] } })
  assert.equal(await publish(scene, 1, [leaf('a')], leaves), { created: 1, updated: 0, unchanged: 0, deleted: 0 })
  assert.equal(await publish(scene, 2, [], leaves), { created: 0, updated: 0, unchanged: 0, deleted: 1 })
  await publish(scene, 3, [leaf('b')], leaves)
  await scene.kernel.db.tx(t => scene.snapshots.reset(t, leaves, ivy.source))
  assert.equal(
    stored(scene).map(({ id }) => id),
    ['kept'],
  )
  await scene.host.close()
})

test.run()
