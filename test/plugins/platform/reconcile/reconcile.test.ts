import { rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { backoff } from '../../../../kernel/kit/backoff.js'
import { type Batch, kind, operator, type Reconciler, watch } from '../../../../kernel/plugin.js'
import { systemDisk } from '../../../../kernel/store/disk.js'
import { openStore } from '../../../../kernel/store/index.js'
import type { KindHealth } from '../../../../plugins/platform/reconcile/api.js'
import { watchCycle } from '../../../../plugins/platform/reconcile/order.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { temporaryFolder, whileTimePasses } from '../../../harness/kernel.js'
import { Branch, everywhere, type Garden, garden, keeper, Leaf, leaf } from '../../../kernel/fixtures/keeper.js'

type AnyReconciler = Reconciler<unknown, never>
type AnyBatch = Batch<{ text: string }>

const reconciler = (run: (batch: AnyBatch, signal: AbortSignal) => unknown, more: object = {}): AnyReconciler =>
  ({ kind: Leaf, run: (_: unknown, batch: AnyBatch, signal: AbortSignal) => run(batch, signal), ...more }) as never

const key = (id: string, name = 'leaf') => ({ kind: name, id })
const branch = (id: string, leaves: string[]) => ({ kind: 'branch', id, scope: everywhere, spec: { leaves } })

const healthOf = ({ kernel }: Garden, name = 'leaf') =>
  kernel.needs.reconcile.health().find(entry => entry.kind === name) as KindHealth

/** Lets everything run that waits for no time. */
async function quiet(clock: VirtualClock): Promise<void> {
  for (let i = 0; i < 20; i++) await clock.advance(0)
}

/** A promise and what settles it. */
function gate() {
  let open = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return { opened, open }
}

test('a change marks its watchers with the old and new record, on deletion too, transitively', async () => {
  const passes: string[] = []
  const Tree = kind({ name: 'tree', spec: v.object({ branch: v.string() }), maxBytes: 1000 })
  const note = (batch: Batch<unknown>) =>
    void passes.push(
      ...batch.records.map(({ kind: name, id }) => `${name} ${id}`),
      ...batch.removed.map(id => `gone ${id}`),
    )
  const trees = keeper('trees', {
    kinds: [Tree] as never,
    reconcilers: [
      {
        kind: Tree,
        run: (_: unknown, batch: Batch<unknown>) => note(batch),
        watches: [watch(Branch, (_, { id }) => [`on-${id}`])],
      },
    ] as never,
  })
  const branches = {
    kind: Branch,
    run: (_: unknown, batch: Batch<unknown>) => note(batch),
    watches: [watch(Leaf, (_, { spec }) => (spec.text === 'broken' ? (null as never) : [`of-${spec.text}`]))],
  }
  const scene = await garden({ reconcilers: [branches] as never, more: [trees.plugin] })
  const { kernel, put, remove } = scene
  const settled = async (id: string) => {
    assert.ok(await kernel.needs.reconcile.settled([key(`of-${id}`, 'branch'), key(`on-of-${id}`, 'tree')]))
    return passes.splice(0).sort()
  }
  await put(operator, branch('of-x', []))
  await put(operator, { kind: 'tree', id: 'on-of-x', scope: everywhere, spec: { branch: 'of-x' } })
  await settled('x')
  await put(operator, leaf('a', 'x'))
  assert.equal(await settled('x'), ['branch of-x', 'tree on-of-x'])
  await put(operator, leaf('a', 'y'))
  assert.equal(await settled('x'), ['branch of-x', 'gone of-y', 'tree on-of-x'], 'renamed: both names')
  await put(operator, leaf('a', 'x'))
  await settled('x')
  await remove(operator, 'leaf', 'a', 3)
  assert.equal(await settled('x'), ['branch of-x', 'tree on-of-x'], 'removed: the last one known')
  await put(operator, leaf('b', 'x'))
  await settled('x')
  kernel.needs.reconcile.mark([key('b'), key('never')])
  assert.equal(await settled('x'), ['branch of-x', 'tree on-of-x'], 'marked by hand: as it is stored')
  // A watch that fails is its owner's trouble alone.
  await put(operator, leaf('c', 'broken'))
  await put(operator, leaf('d', 'x'))
  assert.equal(await settled('x'), ['branch of-x', 'tree on-of-x'])
  const faults = scene.host.kernel.host.faults().map(({ owner, where }) => `${owner}: ${where}`)
  assert.equal(faults, ['garden: watch leaf'])
  await scene.host.close()
})

test('a cycle of watches is found with its path, whichever plugin closes it', () => {
  const watching = (owner: string, name: string, ...watched: string[]) => ({
    owner,
    kind: name,
    watches: watched.map(other => ({ kind: other })),
  })
  const table: [ReturnType<typeof watching>[], string | undefined][] = [
    [[], undefined],
    [[watching('p', 'a', 'b'), watching('q', 'b', 'c')], undefined],
    [[watching('p', 'a', 'b', 'c'), watching('q', 'b', 'd'), watching('r', 'c', 'd'), watching('s', 'd')], undefined],
    [[watching('p', 'a', 'a')], 'p: a a'],
    [[watching('p', 'a', 'b'), watching('q', 'b', 'a')], 'q: b a b'],
    [[watching('q', 'b', 'a'), watching('p', 'a', 'b')], 'p: a b a'],
    [
      [watching('p', 'a', 'x', 'b'), watching('q', 'b', 'c'), watching('r', 'c', 'y', 'a'), watching('s', 'y', 'c')],
      'r: c a b c',
    ],
  ]
  for (const [reconcilers, expected] of table) {
    const cycle = watchCycle(reconcilers)
    assert.is(cycle && `${cycle.owner}: ${cycle.path.join(' ')}`, expected)
  }
})

test('the plugin that closes a cycle of watches fails by name, and the others run', async () => {
  const none = () => []
  const round = keeper('zz-round', {
    reconcilers: [{ kind: Leaf, run: () => {}, watches: [watch(Branch, none)] }] as never,
  })
  const branches = { kind: Branch, run: () => {}, watches: [watch(Leaf, none)] }
  const scene = await garden({ reconcilers: [branches] as never, more: [round.plugin] })
  const states = new Map(scene.host.kernel.host.plugins().map(({ name, state }) => [name, state]))
  assert.equal(states.get('garden'), { status: 'active' })
  assert.equal(states.get('zz-round'), {
    status: 'failed',
    error: 'its reconciler creates a cycle of watches: leaf → branch → leaf',
  })
  assert.equal(
    scene.kernel.needs.reconcile.health().map(entry => entry.kind),
    ['branch'],
  )
  await scene.host.close()
})

test('a record older than its codec is quarantined with its bytes; the codec may load before or after', async () => {
  const projected = new Map<string, unknown>()
  const Later = kind({
    name: 'later',
    spec: v.object({
      n: v.pipe(
        v.number(),
        v.transform(n => (n === 13 ? explode() : n)),
      ),
    }),
    maxBytes: 1000,
    check: ({ id, spec }) => (id === `is-${spec.n}` || !id.startsWith('is-') ? undefined : 'it has another id'),
  })
  const explode = (): number => {
    throw Object.create(null)
  }
  const run = (batch: AnyBatch) => {
    for (const { id, spec } of batch.records) projected.set(id, spec)
  }
  const codec = keeper('codec', { kinds: [Later] as never })
  const scene = await garden({ reconcilers: [reconciler(run, { kind: Later })] })
  const { kernel, put, host } = scene
  const write = (id: string, spec: unknown) => put(operator, { kind: 'later', id, scope: everywhere, spec })
  await write('good', { n: 1, more: true })
  await write('bad', { n: 'one' })
  await write('is-2', { n: 3 })
  await write('throws', { n: 13 })
  const keys = ['good', 'bad', 'is-2', 'throws'].map(id => key(id, 'later'))
  assert.ok(await kernel.needs.reconcile.settled(keys))
  assert.equal([...projected.keys()].sort(), ['bad', 'good', 'is-2', 'throws'], 'raw, for nobody knows better')
  assert.equal(
    kernel.records.kinds().find(({ name }) => name === 'later'),
    { name: 'later', registered: false, onDemand: false, count: 4 },
  )
  projected.clear()
  await host.kernel.host.load(codec.plugin)
  assert.ok(await kernel.needs.reconcile.settled(keys))
  assert.equal([...projected], [['good', { n: 1 }]])
  const aside = healthOf(scene, 'later').quarantined
  assert.equal(aside.map(({ id }) => id).sort(), ['bad', 'is-2', 'throws'])
  assert.match(aside.find(({ id }) => id === 'throws')?.error ?? '', /the codec of later fails/)
  assert.equal((await host.request('GET', '/api/resources/later/bad')).body.record.spec, { n: 'one' })
  // A codec that throws refuses a write and hurts nothing else.
  const refused = await host.request('PUT', '/api/resources/later/new', { scope: everywhere, spec: { n: 13 } })
  assert.equal([refused.status, refused.body.code], [422, 'invalid_spec'])
  await write('bad', { n: 2 })
  assert.ok(await kernel.needs.reconcile.settled(keys))
  assert.equal(projected.get('bad'), { n: 2 })
  await host.close()
})

test('settled waits for a pass that began after the write, not for a running one', async () => {
  const clock = new VirtualClock()
  const seen: string[] = []
  let hold = gate()
  const scene = await garden({
    clock,
    reconcilers: [
      reconciler(async ({ records }) => {
        const held = hold
        await held.opened
        seen.push(...records.map(({ spec }) => spec.text))
      }),
    ],
  })
  const { kernel, put } = scene
  await put(operator, leaf('a', 'zero'))
  await quiet(clock)
  let ended = false
  const begun = kernel.needs.reconcile.settled([key('a')]).finally(() => {
    ended = true
  })
  await quiet(clock)
  assert.is(ended, false, 'the pass with it has begun and not ended')
  hold.open()
  assert.is(await begun, true)
  seen.length = 0
  hold = gate()
  await put(operator, leaf('a', 'one'))
  await quiet(clock)
  await put(operator, leaf('a', 'two'))
  let settled: boolean | undefined
  const waiting = kernel.needs.reconcile.settled([key('a')]).then(done => {
    settled = done
  })
  const first = hold
  hold = gate()
  first.open()
  await quiet(clock)
  assert.equal([seen, settled], [['one'], undefined])
  hold.open()
  await waiting
  assert.equal([seen, settled], [['one', 'two'], true])
  assert.ok(await kernel.needs.reconcile.settled([key('a'), key('unknown'), key('x', 'no.such')]), 'nothing is due')
  hold = gate()
  await put(operator, leaf('a', 'three'))
  const late = kernel.needs.reconcile.settled([key('a')], { timeoutMs: 100 })
  await quiet(clock)
  await clock.advance(100)
  assert.is(await late, false)
  hold.open()
  await scene.host.close()
})

test('an endless boot pass holds the boot for 5 s, then its kind is stuck until the end', async () => {
  const clock = new VirtualClock()
  const hold = gate()
  const pages: string[] = []
  const slow = keeper('slow', {
    reconcilers: [
      reconciler(async ({ first, records }) => {
        pages.push(`${first} ${records.length}`)
        if (pages.length === 2) await hold.opened
      }),
    ],
  })
  const scene = await garden({ clock })
  const { kernel, host } = scene
  await kernel.db.tx(t => {
    for (let i = 0; i < 2500; i++) kernel.records.put(t, operator, leaf(`r${String(i).padStart(4, '0')}`))
  })
  let loaded = false
  const loading = host.kernel.host.load(slow.plugin).then(() => {
    loaded = true
  })
  while (pages.length < 2) await new Promise(resolve => setTimeout(resolve, 1))
  await clock.advance(4999)
  assert.equal([loaded, healthOf(scene).status, pages], [false, 'healthy', ['true 1000', 'true 1000']])
  const unread = kernel.needs.reconcile.settled([key('r2400')], { timeoutMs: 60_000 })
  await clock.advance(1)
  await whileTimePasses(clock, loading)
  assert.is(healthOf(scene).status, 'stuck')
  assert.is(await kernel.needs.reconcile.settled([key('r0100')]), true, 'its page is through')
  await kernel.db.tx(t => kernel.records.put(t, operator, leaf('r9')))
  hold.open()
  assert.is(await unread, true)
  await kernel.needs.reconcile.settled([key('r9')])
  assert.equal([healthOf(scene).status, pages.slice(2)], ['healthy', ['true 500', 'false 1']])
  await host.close()
})

test('a failed pass is bisected, a named key is quarantined, and foreign keys are a fault of the plugin', async () => {
  const runtime = new Map<string, string>()
  const scene = await garden({
    reconcilers: [
      reconciler(({ records, removed, fail }) => {
        for (const { id, spec } of records) if (spec.text === 'named') fail(id, new Error(`no ${id}`))
        fail('elsewhere', 'x')
        if (records.length > 20) throw new Error('too much at once')
        for (const { id, spec } of records) {
          if (spec.text === 'poison') throw new Error(`poison ${id}`)
          if (spec.text !== 'named') runtime.set(id, spec.text)
        }
        for (const id of removed) runtime.delete(id)
      }),
    ],
  })
  const { kernel, host } = scene
  const texts = (i: number) => (i % 17 === 0 ? 'poison' : i % 13 === 0 ? 'named' : `t${i}`)
  const keys = Array.from({ length: 100 }, (_, i) => key(`r${i}`))
  await kernel.db.tx(t => {
    for (const [i, { id }] of keys.entries()) kernel.records.put(t, operator, leaf(id, texts(i)))
  })
  assert.ok(await kernel.needs.reconcile.settled(keys))
  const good = keys.filter((_, i) => texts(i) === `t${i}`).map(({ id }) => id)
  assert.equal([...runtime.keys()].sort(), good.sort())
  const { status, quarantined } = healthOf(scene)
  assert.is(status, 'failing')
  assert.equal(quarantined.length, 100 - good.length)
  assert.is(quarantined.find(({ id }) => id === 'r17')?.error, 'poison r17')
  assert.is(quarantined.find(({ id }) => id === 'r13')?.error, 'no r13')
  assert.not.ok(quarantined.some(({ id }) => id === 'elsewhere'))
  assert.ok(host.kernel.host.faults().some(({ owner, where }) => owner === 'garden' && where.includes('elsewhere')))
  await host.close()
})

test('a poison record is retried with back-off and at its next write; its kind fails, degrades and recovers', async () => {
  const clock = new VirtualClock()
  const tries: number[] = []
  const scene = await garden({
    clock,
    reconcilers: [
      reconciler(({ records }) => {
        if (!records.some(({ id }) => id === 'p')) return
        tries.push(clock.now())
        if (records.some(({ spec }) => spec.text === 'poison')) throw new Error('poison')
      }),
    ],
  })
  const { put } = scene
  const status = () => healthOf(scene).status
  await put(operator, leaf('p', 'poison'))
  await quiet(clock)
  const statuses = [status()]
  for (let i = 0; i < 2; i++) {
    await clock.advance((healthOf(scene).quarantined[0]?.retryAt ?? 0) - clock.now())
    await quiet(clock)
    statuses.push(status())
  }
  assert.equal(statuses, ['failing', 'failing', 'degraded'])
  await put(operator, leaf('q'))
  await quiet(clock)
  assert.is(status(), 'failing', 'something succeeded')
  for (let i = 0; i < 200; i++) await clock.advance(1000)
  const pauses = tries.slice(1).map((at, i) => at - (tries[i] ?? 0))
  assert.is(pauses[0], 50)
  pauses.forEach((ms, i) => {
    const full = Math.min(30_000, 50 * 2 ** i)
    assert.ok(ms >= Math.max(50, full * 0.8) && ms <= full, `${i}: ${ms}`)
  })
  assert.ok(pauses.length > 12)
  const faults = scene.host.kernel.host.faults().map(({ where }) => where)
  assert.equal(faults, ['reconcile leaf p'], 'told once, not with every try')
  const before = tries.length
  await put(operator, leaf('p', 'poison'))
  await quiet(clock)
  assert.is(tries.length, before + 1, 'at once')
  assert.is((healthOf(scene).quarantined[0]?.retryAt ?? 0) - clock.now(), 50, 'and its retries begin anew')
  await put(operator, leaf('p', 'sound'))
  await quiet(clock)
  assert.equal([status(), tries.length], ['healthy', before + 2])
  await clock.advance(60_000)
  assert.is(tries.length, before + 2)
  await scene.host.close()
})

test('the back-off of a retry stays between 50 ms and 30 s', () => {
  for (let attempt = 1; attempt < 2000; attempt++) {
    for (const random of [0, 0.5, 0.999]) {
      const ms = backoff(attempt, () => random)
      assert.ok(ms >= 50 && ms <= 30_000, `${attempt} ${random}: ${ms}`)
    }
  }
})

test('a durable projection gets its differences and removed records at boot', async () => {
  const held = new Map<string, number>()
  let broken = false
  const batches: string[] = []
  const runtime = keeper('runtime', {
    reconcilers: [
      reconciler(
        ({ first, records, removed }) => {
          batches.push(`${first}: ${records.map(({ id }) => id).join()} - ${removed.join()}`)
          for (const { id, version } of records) held.set(id, version)
          for (const id of removed) held.delete(id)
        },
        {
          projected: () => {
            if (broken) throw new Error('it does not know')
            return held
          },
        },
      ),
    ],
  })
  const scene = await garden()
  const { put, remove, host, kernel } = scene
  for (const id of ['a', 'b', 'c', 'd']) await put(operator, leaf(id))
  await host.kernel.host.load(runtime.plugin)
  await host.kernel.host.unload('runtime')
  await put(operator, leaf('b', 'changed'))
  await remove(operator, 'leaf', 'c', 1)
  await put(operator, leaf('e'))
  await host.kernel.host.load(runtime.plugin)
  await host.kernel.host.unload('runtime')
  await host.kernel.host.load(runtime.plugin)
  assert.equal(batches.splice(0), ['true: a,b,c,d - ', 'true: b,e - c'])
  await host.kernel.host.unload('runtime')
  broken = true
  await host.kernel.host.load(runtime.plugin)
  assert.equal(batches, ['true: a,b,d,e - '], 'all, where it fails to say')
  assert.equal(
    [...held].sort(),
    kernel.records.list({}).map(({ id, version }) => [id, version]),
  )
  await host.close()
})

test('a plugin is released when its pass has ended, however long, and no new pass begins', async () => {
  const hold = gate()
  const passes: string[] = []
  const late = keeper('late', {
    reconcilers: [
      reconciler(async ({ records }) => {
        passes.push(records.map(({ id }) => id).join())
        await hold.opened
        passes.push('ended')
        throw new Error('and it fails')
      }),
    ],
  })
  const clock = new VirtualClock()
  const { host, put, kernel } = await garden({ clock, more: [late.plugin] })
  await put(operator, leaf('a'))
  await quiet(clock)
  await put(operator, leaf('b'))
  const waiting = kernel.needs.reconcile.settled([key('b')])
  let unloaded = false
  const unloading = host.kernel.host.unload('late').finally(() => {
    unloaded = true
  })
  assert.is(await waiting, true, 'nobody is left to wait for')
  await quiet(clock)
  assert.is(unloaded, false)
  hold.open()
  await whileTimePasses(clock, unloading)
  await clock.advance(60_000)
  assert.equal([passes, kernel.needs.reconcile.health()], [['a', 'ended'], []])
  assert.equal(host.kernel.host.faults(), [], 'what ends late is nobody’s trouble')
  await host.close()
})

test('a pass does nothing with undurable changes', async () => {
  const disk = systemDisk()
  const syncs: (() => void)[] = []
  let holding = false
  const seen: string[] = []
  const scene = await garden({
    disk: {
      ...disk,
      fsync: async handle => {
        if (holding) await new Promise<void>(resolve => syncs.push(resolve))
        await disk.fsync(handle)
      },
    },
    reconcilers: [reconciler(({ records }) => void seen.push(...records.map(({ spec }) => spec.text)))],
  })
  const nextSync = async () => {
    while (syncs.length === 0) await new Promise(setImmediate)
    return syncs.shift() ?? (() => {})
  }
  holding = true
  const one = scene.put(operator, leaf('a', 'one'))
  const first = await nextSync()
  const two = scene.put(operator, leaf('a', 'two'))
  first()
  await one
  const second = await nextSync()
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  assert.equal(seen, [], 'the record reads as two, which may yet be lost')
  holding = false
  second()
  await two
  assert.ok(await scene.kernel.needs.reconcile.settled([key('a')]))
  assert.is(seen.at(-1), 'two')
  await scene.host.close()
})

test('a kind that marks itself forever starves no other', async () => {
  const other: string[] = []
  let rounds = 0
  const scene: Garden = await garden({
    reconcilers: [
      reconciler(({ records }) => {
        rounds++
        scene.kernel.needs.reconcile.mark(records.map(({ id }) => key(id)))
      }),
      {
        kind: Branch,
        run: (_: unknown, { records }: Batch<unknown>) => void other.push(...records.map(({ id }) => id)),
      } as never,
    ],
  })
  await scene.put(operator, leaf('a'))
  await scene.put(operator, branch('b', []))
  assert.ok(await scene.kernel.needs.reconcile.settled([key('b', 'branch')]))
  assert.equal((await scene.host.request('GET', '/api/resources/leaf/a')).status, 200)
  for (let i = 0; i < 100 && rounds < 5; i++) await new Promise(setImmediate)
  assert.ok(rounds >= 5)
  await scene.host.close()
  const ended = rounds
  await new Promise(setImmediate)
  assert.is(rounds, ended)
})

test('a stored spec that is no JSON breaks neither lists nor the boot', async () => {
  const runtime: string[] = []
  const late = keeper('late', {
    reconcilers: [reconciler(({ records }) => void runtime.push(...records.map(({ id }) => id)))],
  })
  const home = await temporaryFolder('damage')
  const before = await garden({ home })
  await before.put(operator, leaf('a'))
  await before.put(operator, leaf('b'))
  await before.host.close()
  const store = await openStore({ path: path.join(home, 'svc.db'), now: () => 0 })
  await store.db.tx(t => t.run(`UPDATE kernel_record SET spec = '{"text":' WHERE id = 'a'`))
  await store.close()
  const scene = await garden({ home, more: [late.plugin] })
  assert.equal(runtime, ['b'])
  assert.equal(
    healthOf(scene).quarantined.map(({ id }) => id),
    ['a'],
  )
  assert.is((await scene.host.request('GET', '/api/resources')).body.records[0].spec, '{"text":')
  await scene.host.close()
  await rm(home, { recursive: true })
})

test.run()
