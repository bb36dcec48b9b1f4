import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Plugin, PluginKernel } from '../../../../kernel/plugin.js'
import { openStore } from '../../../../kernel/store/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import { Ownership, type OwnershipApi } from '../../../../plugins/platform/ownership/api.js'
import ownership from '../../../../plugins/platform/ownership/index.js'
import { bound, cursors, migrations, tombstones } from '../../../../plugins/platform/ownership/tables.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { typescript } from '../../../harness/run-typescript.js'
import { Boxes, type BoxesApi, boxes, counted, type Labels, label, labels } from './boxes.js'
import { service } from './scene.js'

async function scene(world: Labels | undefined, options: Partial<Parameters<typeof boot>[0]> = {}) {
  const reader = service<BoxesApi>(Boxes)
  const own: readonly Plugin[] = world ? [labels(world)] : []
  const s = await boot({ ...options, plugins: [boxes, reader.plugin, ...own, ...(options.plugins ?? [])] })
  const rows = (sql: string) => {
    const found = reader.current().kernel.db.rows(sql)
    return found.map(row => (row.length === 1 ? row[0] : row))
  }
  return { ...s, boxes: reader.current, rows }
}

async function until(
  isSo: () => boolean | Promise<boolean>,
  what: string,
  pass = () => new Promise<unknown>(setImmediate),
) {
  for (let n = 0; n < 20_000; n++) {
    if (await isSo()) return
    await pass()
  }
  throw new Error(`not reached: ${what}`)
}

const gone = { labels: 0, shown: 0, keys: [] }

test('rows are deleted with their owner, at most 1,000 per transaction, and are hidden at once', async () => {
  const ended: string[] = []
  const world: Labels = { ended: id => void ended.push(id) }
  const s = await scene(world)
  await s.boxes().put('a', 'b')
  await label(world, 'a', 2500)
  await label(world, 'b', 3, ['b1'])
  await until(() => s.rows('SELECT * FROM ownership_cursor').length > 0, 'a cursor')
  const seen = new Set<number>()
  const done = s.boxes().end('a')
  assert.equal(counted(world, 'a'), { labels: 2500, shown: 0, keys: [] })
  assert.ok(s.boxes().isEnded('a'))
  await done
  await until(() => {
    seen.add(counted(world, 'a').labels)
    return seen.has(0)
  }, 'no rows')
  assert.equal(
    [...seen].filter(count => count > 0 && count < 2500).every(count => count === 1500 || count === 500),
    true,
  )
  await until(() => ended.length > 0, 'what else there is')
  assert.equal([counted(world, 'b'), ended], [{ labels: 3, shown: 3, keys: ['b1'] }, ['a']])
  await until(() => s.rows('SELECT id FROM ownership_tombstone').length === 0, 'no tombstone')
  assert.not(s.boxes().isEnded('a'))
  await s.close()
})

test('the external thing of a row is released before the row; a failure keeps the row and is retried', async () => {
  const clock = new VirtualClock()
  const forgotten: string[] = []
  let isBroken = true
  const world: Labels = {
    forget({ name, box }) {
      assert.ok(counted(world, `${box}`).keys.includes(`${name}`), 'its row is there')
      if (name === 'k2' && isBroken) throw new Error('the keeper is away')
      forgotten.push(`${name}`)
    },
  }
  const s = await scene(world, { clock })
  const ended: string[] = []
  world.ended = id => void ended.push(id)
  await s.boxes().put('a', 'b')
  await label(world, 'a', 2, ['k1', 'k2', 'k3'])
  await label(world, 'b', 1, ['k4'])
  await s.boxes().end('a')
  await s.boxes().end('b')
  const pass = async () => {
    await new Promise(setImmediate)
    await clock.advance(10)
  }
  await until(() => counted(world, 'b').keys.length === 0, 'the other box', pass)
  assert.equal(counted(world, 'a'), { labels: 0, shown: 0, keys: ['k2'] })
  assert.not(ended.includes('a'), 'what else there is comes after its rows')
  const isTold = () =>
    s.kernel.host.faults().some(({ where, error }) => where === 'owned rows' && /keeper is away/.test(error))
  await until(isTold, 'the fault', pass)
  isBroken = false
  await until(() => counted(world, 'a').keys.length === 0, 'the last key', pass)
  await until(() => ended.includes('a'), 'the rest', pass)
  assert.equal(forgotten, ['k1', 'k3', 'k4', 'k2'])
  await s.close()
})

test('rows with an owner that ended while their plugin was disabled are deleted when it runs again', async () => {
  const home = await temporaryFolder('home')
  const world: Labels = {}
  const first = await scene(world, { home })
  await first.boxes().put('a', 'b')
  await label(world, 'a', 5, ['k1'])
  await label(world, 'b', 5, ['k2'])
  await until(() => first.rows('SELECT * FROM ownership_cursor').length > 0, 'a cursor')
  await first.close()

  const without = await scene(undefined, { home })
  await without.boxes().end('a')
  assert.equal(without.rows('SELECT id FROM ownership_tombstone'), ['a'], 'it waits')
  await without.close()
  await (await scene(undefined, { home })).close()

  const again = await scene(world, { home })
  await until(() => counted(world, 'a').labels === 0, 'no rows')
  assert.equal([counted(world, 'a'), counted(world, 'b').labels], [gone, 5])
  await until(() => again.rows('SELECT id FROM ownership_tombstone').length === 0, 'no tombstone')
  await again.close()
  await rm(home, { recursive: true })
})

test('a plugin without a cursor, or with one of the previous version, checks all its rows', async () => {
  const home = await temporaryFolder('home')
  const world: Labels = {}
  const s = await scene(world, { home })
  // Its first pass over all rows has ended.
  await until(() => s.rows('SELECT * FROM ownership_cursor').length > 0, 'a cursor')
  await s.boxes().put('b')
  await label(world, 'never', 2, ['k1'])
  await label(world, 'b', 2)
  await label(world, '', 2)
  await s.close()

  const cursor = service(Events)
  const old = await scene(world, { home, plugins: [cursor.plugin] })
  await until(() => old.rows('SELECT * FROM ownership_cursor').length > 0, 'a cursor')
  assert.is(counted(world, 'never').labels, 2, 'it had been looked through before they were added')
  await world.kernel?.db.durable()
  await old.close()

  // The version before has run: it follows by a cursor of its own.
  const before = await boot({
    home,
    plugins: [
      {
        name: 'acme.labels',
        version: '0.9.0',
        requires: { events: Events },
        surface: {},
        apply: (kernel: PluginKernel<{ events: typeof Events }>) =>
          kernel.needs.events.on({ cursor: 'workspace-deleted', type: '*' }, () => {}),
      },
    ],
  })
  await before.close()
  const again = await scene(world, { home })
  await until(() => counted(world, 'never').labels === 0, 'no rows')
  assert.equal([counted(world, 'b').labels, counted(world, '').labels], [2, 2], 'an empty id stands for none')
  await until(() => again.rows('SELECT * FROM ownership_cursor').length > 0, 'a cursor')
  assert.equal(again.rows("SELECT 1 FROM kernel_cursor WHERE owner = 'acme.labels'"), [])
  await again.close()
  await rm(home, { recursive: true })
})

test('rows wait for the plugin of their owners, and are checked when it loads', async () => {
  const world: Labels = {}
  const s = await boot({ plugins: [labels(world)] })
  await label(world, 'never', 2)
  await new Promise(resolve => setTimeout(resolve, 20))
  assert.is(counted(world, 'never').labels, 2)
  await s.kernel.host.load(boxes)
  await until(() => counted(world, 'never').labels === 0, 'no rows')
  await s.close()
})

test('rows of a plugin without tombstones wait for a version with them', async () => {
  const home = await temporaryFolder('home')
  const world: Labels = {}
  const first = await scene(world, { home })
  await first.boxes().put('a', 'b')
  for (const box of ['a', 'b']) await label(world, box, 2)
  await until(() => first.rows('SELECT * FROM ownership_cursor').length > 0, 'a cursor')
  await first.close()
  const silent: Plugin = {
    ...{ name: 'acme.boxes', version: '0.9.0', requires: {}, surface: boxes.surface },
    apply: ({ db }: PluginKernel) => db.tx(t => t.run("DELETE FROM acme_boxes_box WHERE id = 'a'")),
  }
  await (await boot({ plugins: [silent, labels(world)], home })).close()
  const again = await scene(world, { home })
  await until(() => counted(world, 'a').labels === 0, 'no rows')
  assert.is(counted(world, 'b').labels, 2)
  await again.close()
  await rm(home, { recursive: true })
})

test('a sweep continues after a reload of the plugin or of the tombstone keeper', async () => {
  const world: Labels = {}
  const s = await scene(world)
  await s.boxes().put('a', 'b', 'c')
  for (const box of ['a', 'b', 'c']) await label(world, box, 1)
  const end = async (box: string) => {
    await s.boxes().end(box)
    await until(() => counted(world, box).labels === 0, `no rows of ${box}`)
    assert.equal(counted(world, box), gone)
  }
  await end('a')
  await s.kernel.host.reload(labels(Object.assign(world, { version: '1.1.0' })))
  await end('b')
  const held = () => s.kernel.host.plugins().find(({ name }) => name === 'acme.labels')?.holds
  const before = held()
  await s.kernel.host.reload({ ...ownership, version: '0.1.1' })
  await end('c')
  assert.equal(held(), before, 'nothing is left on a plugin that stayed')
  await s.close()
})

test('only the plugin of a thing may write its tombstone', async () => {
  const { plugin, current } = service<OwnershipApi>(Ownership)
  const world: Labels = {}
  const s = await scene(world, { plugins: [plugin] })
  let why = ''
  await world.kernel?.db.tx(t => {
    try {
      current().tombstone(t, Boxes, 'a')
    } catch (error) {
      why = `${error}`
    }
  })
  assert.match(why, /acme.reads-ownership-1 does not own the resources with the token acme.boxes@1/)
  await s.close()
})

test('rows with a reused owner id are kept', async () => {
  const world: Labels = {}
  const s = await scene(world)
  await s.boxes().put('a', 'b')
  await until(() => s.rows('SELECT * FROM ownership_cursor').length > 0, 'a cursor')
  const ended = s.boxes().end('a')
  await Promise.all([ended, s.boxes().put('a'), label(world, 'a', 1), label(world, 'b', 1)])
  await s.boxes().end('b')
  await until(() => counted(world, 'b').labels === 0, 'no rows of the other')
  assert.is(counted(world, 'a').labels, 1)
  await s.close()
})

test('the oldest tombstones beyond the limit are deleted with the cursors that would miss them', async () => {
  const folder = await temporaryFolder('bound')
  const store = await openStore({ path: path.join(folder, 'svc.db'), now: Date.now })
  store.migrate('ownership', migrations)
  const db = store.db.bind({ name: 'ownership', tables: 'ownership' })
  await db.tx(t => {
    for (const [kind, id] of ['xa', 'xb', 'ya', 'xc', 'xd'] as Iterable<string>)
      tombstones.insert(t, { kind: `${kind}`, id: `${id}`, at: 0 })
    for (const [stream, kind, seq] of [
      ['behind', 'x', 1],
      ['near', 'x', 2],
      ['other', 'y', 0],
      ['far', 'z', 0],
    ] as const)
      cursors.insert(t, { stream, kind, seq })
    bound(t, 5)
    assert.is(tombstones.all(t).length, 5)
    bound(t, 3)
  })
  assert.equal(
    tombstones.all(db).map(({ id }) => id),
    ['a', 'c', 'd'],
  )
  assert.equal(
    cursors.all(db).map(({ stream }) => stream),
    ['near', 'other', 'far'],
  )
  await store.close()
  await rm(folder, { recursive: true })
})

for (const point of ['forget', 'rows'])
  test(`kill -9 between the end of an owner and of its rows loses nothing (${point})`, async () => {
    const home = await temporaryFolder('home')
    const program = fileURLToPath(new URL('killed-daemon.ts', import.meta.url))
    const child = spawn(process.execPath, [...typescript, program, home, point], { stdio: 'inherit' })
    assert.equal(await once(child, 'exit'), [null, 'SIGKILL'])
    const forgotten: string[] = []
    const world: Labels = { forget: ({ name }) => void forgotten.push(`${name}`) }
    const s = await scene(world, { home })
    assert.not(s.boxes().has('a'))
    assert.ok(counted(world, 'a').labels > 0, 'some rows are left')
    assert.is(counted(world, 'a').shown, 0)
    await until(() => counted(world, 'a').labels === 0, 'no rows')
    assert.equal([counted(world, 'a'), counted(world, 'b')], [gone, { labels: 3, shown: 3, keys: ['k3'] }])
    if (point === 'forget') assert.equal(forgotten, ['k1', 'k2'])
    await s.close()
    await rm(home, { recursive: true })
  })

test.run()
