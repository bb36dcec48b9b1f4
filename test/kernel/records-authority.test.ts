import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Actor, Fault, operator, pluginActor } from '../../kernel/plugin.js'
import { testCases } from '../fixtures/cases.js'
import { everywhere, extension, garden, leaf, outcomeOf } from './fixtures/keeper.js'

const desk: Actor = { kind: 'operator', id: 'desk', owner: { kind: 'operator', id: 'desk' }, source: operator.source }
const ws = (id: string) => ({ kind: 'workspace', id }) as const

test('an extension cannot write a single record, whatever its grants', async () => {
  const { host, put, remove } = await garden()
  await put(operator, leaf('a'))
  const actor = extension('ivy')
  assert.is(await outcomeOf(put(actor, leaf('b'))), '403 forbidden')
  assert.is(await outcomeOf(put({ ...actor, source: operator.source }, leaf('a'))), '403 forbidden')
  assert.is(await outcomeOf(remove({ ...actor, source: operator.source }, 'leaf', 'a', 1)), '403 forbidden')
  const { body } = await host.request('GET', '/api/resources')
  assert.equal(
    body.records.map((record: { id: string; version: number }) => [record.id, record.version]),
    [['a', 1]],
  )
  await host.close()
})

const WRITERS: [string, Partial<Actor>, object, string][] = [
  ['no grants', {}, {}, 'done'],
  ['empty grants', { grantedKinds: [], grantedScopes: [] }, {}, 'done'],
  ['kind granted', { grantedKinds: ['leaf'] }, {}, 'done'],
  ['kind not granted', { grantedKinds: ['branch'] }, {}, '403 not_granted'],
  ['kind not granted, before the body', { grantedKinds: ['branch'] }, { spec: 1 }, '403 not_granted'],
  ['scope granted', { grantedScopes: ['global'] }, {}, 'done'],
  ['user is global', { grantedScopes: ['user'] }, {}, 'done'],
  ['global is user', { grantedScopes: ['global'] }, { scope: { kind: 'user' } }, 'done'],
  ['scope not granted', { grantedScopes: ['workspace'] }, {}, '403 not_granted'],
  ['scope not granted, after the codec', { grantedScopes: ['workspace'] }, { spec: 1 }, '422 invalid_spec'],
  ['largest scope global', { maxScope: everywhere }, { scope: ws('ws_1') }, 'done'],
  ['largest scope a workspace', { maxScope: ws('ws_1') }, {}, '403 not_granted'],
  ['that workspace', { maxScope: ws('ws_1') }, { scope: ws('ws_1') }, 'done'],
  ['another workspace', { maxScope: ws('ws_1') }, { scope: ws('ws_2') }, '403 not_granted'],
]

testCases({
  open: () => garden(),
  close: ({ host }) => host.close(),
  cases: [operator, desk].flatMap(base => WRITERS.map((writer, i) => ({ base, writer, id: `${base.id}-${i}` }))),
  name: ({ base, writer: [what, , , wanted] }) => `a write of ${base.kind} is ${wanted}: ${what}`,
  run: async ({ put }, { base, writer: [, limits, write, wanted], id }) =>
    assert.is(await outcomeOf(put({ ...base, ...limits }, { ...leaf(id), ...write, expectedVersion: 0 })), wanted),
  after: [
    'a record outside the limits is not changed, moved or removed',
    async ({ put, remove }) => {
      await put(operator, { ...leaf('far'), scope: ws('ws_2') })
      const near = { ...operator, maxScope: ws('ws_1') }
      assert.is(
        await outcomeOf(put(near, { ...leaf('far'), scope: ws('ws_1'), expectedVersion: 1 })),
        '403 not_granted',
      )
      assert.is(await outcomeOf(remove(near, 'leaf', 'far', 1)), '403 not_granted')
      assert.is(await outcomeOf(remove(near, 'leaf', 'far', 9)), '403 not_granted', 'before the version')
      assert.is(await outcomeOf(remove(near, 'leaf', 'none', 9)), '404 record_not_found')
    },
  ],
})

test('each write sets owner and source; only daemon actors choose an owner', async () => {
  const { host, kernel, snapshots, put } = await garden()
  const stamped = () => {
    const record = kernel.records.get('leaf', 'a')
    return `${record?.owner.kind}/${record?.owner.id} ${record?.source.kind}/${record?.source.id}`
  }
  await put(operator, leaf('a'))
  assert.is(stamped(), 'daemon/daemon-control daemon/system')
  await put({ ...pluginActor('garden'), source: operator.source }, leaf('a'))
  assert.is(stamped(), 'daemon/garden daemon/system')
  await put(operator, { ...leaf('a'), owner: { kind: 'plan', id: 'p1' } })
  assert.is(stamped(), 'plan/p1 daemon/system')
  assert.is(await outcomeOf(put(desk, { ...leaf('a'), owner: { kind: 'plan', id: 'p2' } })), '403 forbidden')
  await put(desk, leaf('a'))
  assert.is(stamped(), 'operator/desk daemon/system')
  await kernel.db.tx(t => {
    snapshots.activate(t, extension('ivy').source, 'n1')
    const stranger = { ...extension('ivy'), owner: { kind: 'daemon', id: 'x' } }
    snapshots.apply(t, stranger, { sourceVersion: 1, records: [leaf('b')] })
  })
  assert.equal(kernel.records.get('leaf', 'b')?.owner, { kind: 'extension', id: 'ivy' })
  await host.close()
})

const READERS: [string, Actor, string[]][] = [
  ['operator', operator, ['d', 'a', 'b', 'c']],
  ['ivy', extension('ivy'), ['d', 'b', 'c']],
  ['another', extension('oak'), []],
  ['no kinds', extension('ivy', { grantedKinds: [] }), []],
  ['no scopes', extension('ivy', { grantedScopes: [] }), []],
  ['one kind', extension('ivy', { grantedKinds: ['leaf'] }), ['b', 'c']],
  ['one scope', extension('ivy', { grantedScopes: ['user'] }), ['d', 'b']],
  ['one workspace', extension('ivy', { maxScope: ws('ws_1') }), ['c']],
  ['operator of one kind', { ...operator, grantedKinds: ['branch'] }, ['d']],
  ['operator of one workspace', { ...operator, maxScope: ws('ws_1') }, ['c']],
]

testCases({
  open: async () => {
    const { host, kernel, snapshots, put } = await garden()
    await put(operator, leaf('a'))
    const ivy = extension('ivy')
    await kernel.db.tx(t => {
      snapshots.activate(t, ivy.source, 'n1')
      snapshots.apply(t, ivy, {
        sourceVersion: 1,
        records: [
          leaf('b'),
          { ...leaf('c'), scope: ws('ws_1') },
          { kind: 'branch', id: 'd', scope: everywhere, spec: { leaves: [] } },
        ],
      })
    })
    return { host, kernel }
  },
  close: ({ host }) => host.close(),
  cases: READERS,
  name: ([what, , ids]) => `a reader lists and gets only [${ids}]: ${what}`,
  run: ({ kernel }, [, actor, readable]) => {
    const list = (limit = 0) => kernel.records.list({ as: actor, limit }).map(({ id }) => id)
    assert.equal(list(), readable)
    assert.equal(list(1), readable.slice(0, 1), 'the limit counts readable records')
    for (const { kind, id } of kernel.records.list({}))
      assert.is(kernel.records.get(kind, id, actor) !== undefined, readable.includes(id), id)
  },
})

test('the checks of a write run in order, each with its status', async () => {
  const { host, put, remove } = await garden({
    hooks: {
      scope: (_, _t, scope) => (scope.id === 'ws_gone' ? new Fault('no_such_workspace', 422, 'gone') : undefined),
      write: {
        '*': (_, _t, { verb, actor }) =>
          actor.cause === 'guarded' ? new Fault(`guarded_${verb}`, 409, 'no') : undefined,
      },
    },
  })
  await put(pluginActor('other'), leaf('theirs'))
  await put(operator, leaf('mine'))
  const limited = { ...operator, grantedKinds: ['branch'], grantedScopes: ['global'] as const, cause: 'guarded' }
  const guarded = { ...operator, grantedScopes: ['global', 'workspace'] as const, cause: 'guarded' }
  const narrow = { ...guarded, grantedScopes: ['global'] as const }
  // Each write has all faults of those below it: only the first may be told.
  const bad = { kind: 'leaf', id: 'theirs', scope: ws('ws_gone'), spec: { text: 7 }, expectedVersion: 9, direct: true }
  const sound = { ...bad, spec: { text: 'x' } }
  const steps: [Actor, Parameters<typeof put>[1], string][] = [
    [limited, { ...bad, kind: 'LEAF', id: 'a/b' }, '422 invalid_kind'],
    [limited, { ...bad, id: 'a/b' }, '422 invalid_id'],
    [limited, bad, '403 not_granted'],
    [guarded, { ...bad, kind: 'kept' }, '403 owner_only'],
    [{ ...narrow, kind: 'operator' }, { ...bad, owner: operator.owner }, '403 forbidden'],
    [narrow, { ...bad, expectedVersion: -1 }, '422 invalid_version'],
    [narrow, { ...bad, scope: { kind: 'workspace' } }, '422 invalid_scope'],
    [narrow, bad, '422 invalid_spec'],
    [narrow, { ...bad, spec: { text: 'x'.repeat(300_000) } }, '413 payload_too_large'],
    [narrow, sound, '403 not_granted'],
    [guarded, sound, '422 no_such_workspace'],
    [guarded, { ...sound, scope: everywhere, id: 'none' }, '404 record_not_found'],
    [guarded, { ...sound, scope: everywhere, expectedVersion: 0 }, '409 record_exists'],
    [guarded, { ...sound, scope: everywhere }, '403 source_mismatch'],
    [guarded, { ...sound, scope: everywhere, id: 'mine' }, '409 version_conflict'],
    [guarded, { ...sound, scope: everywhere, id: 'mine', expectedVersion: 1 }, '409 guarded_put'],
    [operator, { ...sound, scope: everywhere, id: 'mine', expectedVersion: 1 }, 'done'],
  ]
  for (const [actor, write, expected] of steps) assert.is(await outcomeOf(put(actor, write)), expected)
  const deletes: [Actor, string, string, number | undefined, string][] = [
    [limited, 'LEAF', 'theirs', 0, '422 invalid_kind'],
    [limited, 'leaf', 'a/b', 0, '422 invalid_id'],
    [limited, 'leaf', 'theirs', 0, '403 not_granted'],
    [guarded, 'leaf', 'theirs', 0, '422 invalid_version'],
    [guarded, 'leaf', 'theirs', -3, '422 invalid_version'],
    [guarded, 'leaf', 'none', 9, '404 record_not_found'],
    [guarded, 'leaf', 'theirs', 9, '403 source_mismatch'],
    [guarded, 'leaf', 'mine', 9, '409 version_conflict'],
    [guarded, 'leaf', 'mine', 2, '409 guarded_delete'],
    [operator, 'leaf', 'mine', 2, 'done'],
  ]
  for (const [actor, kind, id, version, outcome] of deletes)
    assert.is(await outcomeOf(remove(actor, kind, id, version)), outcome)
  await host.close()
})

test('writes of one transaction succeed or fail together and make one pass', async () => {
  const passes: string[][] = []
  let strict = true
  const { host, kernel, snapshots, put } = await garden({
    reconcilers: [
      {
        kind: { name: 'leaf' } as never,
        run: (_, { records, removed }) => void passes.push([...records.map(({ id }) => id), ...removed]),
      },
    ],
    hooks: {
      write: {
        leaf: (_, _t, change) => {
          if (!strict || change.verb !== 'put' || change.after.id !== 'c') return undefined
          throw new Error('the guard itself fails')
        },
      },
    },
  })
  await put(operator, leaf('old'))
  await kernel.needs.reconcile.settled([{ kind: 'leaf', id: 'old' }])
  passes.length = 0
  const ivy = extension('ivy')
  const batch = () =>
    kernel.db.tx(t => {
      kernel.records.put(t, operator, leaf('a'))
      kernel.records.delete(t, operator, { kind: 'leaf', id: 'old' })
      snapshots.activate(t, ivy.source, 'n1')
      snapshots.apply(t, ivy, { sourceVersion: 1, records: [leaf('b'), leaf('c'), leaf('d')] })
      kernel.records.put(t, operator, leaf('e'))
    })
  const events = async () =>
    (await kernel.needs.events.list({})).filter(({ name }) => name.startsWith('record.')).length
  const before = [kernel.records.list({}), await events()]
  assert.is(await outcomeOf(batch()), '500 hook_failed')
  assert.equal([kernel.records.list({}), await events()], before)
  assert.ok(await kernel.needs.reconcile.settled(['a', 'b', 'old'].map(id => ({ kind: 'leaf', id }))))
  assert.equal(passes, [])
  strict = false
  assert.is(await outcomeOf(batch()), 'done')
  assert.equal(
    kernel.records.list({}).map(({ id }) => id),
    ['a', 'b', 'c', 'd', 'e'],
  )
  assert.ok(await kernel.needs.reconcile.settled(['a', 'b', 'old'].map(id => ({ kind: 'leaf', id }))))
  assert.equal(
    passes.map(ids => ids.sort()),
    [['a', 'b', 'c', 'd', 'e', 'old']],
  )
  await host.close()
})

test('a paged list contains the records that its actor may read, at the cost of one page', async () => {
  const { host, kernel, snapshots, put } = await garden()
  const scopes = [everywhere, { kind: 'user' }, ws('ws_1'), ws('ws_2')] as const
  const records = Array.from({ length: 48 }, (_, n) => ({
    kind: n % 3 === 0 ? 'raw.kind' : n % 3 === 1 ? 'leaf' : 'branch',
    id: `r${String(n).padStart(2, '0')}`,
    scope: scopes[n % 4] ?? everywhere,
    spec: n % 3 === 2 ? { leaves: [] } : { text: 'x' },
  }))
  const ivy = extension('ivy')
  await kernel.db.tx(t => snapshots.activate(t, ivy.source, 'n1'))
  const global = records.filter(({ scope }) => scope.kind !== 'user')
  await kernel.db.tx(t => snapshots.apply(t, ivy, { sourceVersion: 1, records: global.filter((_, n) => n % 2 === 0) }))
  for (const record of records) if (!kernel.records.get(record.kind, record.id)) await put(operator, record)
  const actors: Partial<Actor>[] = [
    {},
    { grantedKinds: ['leaf', 'raw.kind'] },
    { grantedScopes: ['user'] },
    { grantedScopes: ['workspace'], grantedKinds: ['branch'] },
    { maxScope: ws('ws_2') },
    { maxScope: everywhere },
    { grantedKinds: ['none'] },
  ]
  for (const base of [operator, desk, ivy, extension('oak'), { ...ivy, grantedKinds: [], grantedScopes: [] }])
    for (const limits of actors) {
      const as = { ...base, ...limits }
      const wanted = kernel.records.list({}).filter(({ kind, id }) => kernel.records.get(kind, id, as))
      for (const limit of [1, 5, 100]) {
        const seen: typeof wanted = []
        for (let page = kernel.records.list({ as, limit }); page.length > 0; ) {
          seen.push(...page)
          const after = page.at(-1)
          page = after ? kernel.records.list({ as, limit, after }) : []
        }
        assert.equal(seen, wanted, JSON.stringify([as, limit]))
      }
    }
  // What is not on the page is not read: each record that is has its spec parsed.
  const { parse } = JSON
  let parsed = 0
  JSON.parse = (...given) => {
    parsed++
    return parse(...given)
  }
  try {
    const page = kernel.records.list({ as: { ...operator, grantedScopes: ['global'] }, limit: 5 })
    assert.equal([page.length, parsed], [5, 5])
  } finally {
    JSON.parse = parse
  }
  await host.close()
})

test.run()
