import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { History } from '../../../kernel/kit/history.js'
import { seededIds } from '../../../testing/seeded-ids.js'
import { tables } from './table-scene.js'

interface Entry {
  readonly seq: number
  readonly place: string
  readonly side: string
  readonly at: number
  readonly open: number
}

async function scene() {
  const s = await tables([
    {
      id: '001',
      sql: `CREATE TABLE acme_things_past (seq INTEGER PRIMARY KEY, place TEXT NOT NULL, side TEXT NOT NULL,
        at INTEGER NOT NULL, open INTEGER NOT NULL) STRICT`,
    },
  ])
  const history = new History<Entry>(s.own.db, { table: 'acme_things_past', ended: 'open = 0' })
  const add = (place: string, at: number, more: Partial<Entry> = {}) =>
    s.own.db.tx(t => history.append(t, { place, side: 'a', at, open: 0, ...more }))
  const times = (of: Partial<Entry>) => history.page(of, { limit: -1 }).map(({ at }) => at)
  return { ...s, history, add, times }
}

test('a history is read from its newest row, page by page', async () => {
  const { history, add, times, close } = await scene()
  for (let at = 1; at <= 5; at++) {
    await add('here', at)
    await add('there', at * 10)
  }
  assert.equal(times({ place: 'here' }), [5, 4, 3, 2, 1])
  assert.is(history.newest({ place: 'there' })?.at, 50)
  assert.is(history.newest({ place: 'nowhere' }), undefined)
  const first = history.page({ place: 'here' }, { limit: 2 })
  const second = history.page({ place: 'here' }, { limit: 2, behind: first.at(-1)?.seq })
  assert.equal(
    [...first, ...second].map(({ at }) => at),
    [5, 4, 3, 2],
  )
  await close()
})

test('pruning keeps the newest, the recent and the unfinished rows', async () => {
  const { history, add, times, own, close } = await scene()
  const prune = (keep: Parameters<typeof history.prune>[2], of = { place: 'here' }) =>
    own.db.tx(t => history.prune(t, of, keep))
  for (let at = 1; at <= 6; at++) await add('here', at, { open: at === 1 ? 1 : 0 })
  await add('there', 1)
  assert.is(await prune({}), 0)
  assert.is(await prune({ newest: 2, since: 4 }), 2, 'beyond the newest and older')
  assert.equal(times({ place: 'here' }), [6, 5, 4, 1])
  assert.is(await prune({ since: 5 }), 1)
  assert.is(await prune({ newest: 1 }), 1)
  assert.equal(times({ place: 'here' }), [6, 1])
  assert.is(await prune({ newest: 0 }), 1)
  assert.equal(times({}), [1, 1])
  await close()
})

test('pruning random rows leaves the rows of a model', async () => {
  const { history, times, own, close } = await scene()
  const ids = seededIds(Number(process.env.SVC_SEED ?? 5))
  const any = (most: number) => Math.floor(ids.random() * most)
  let model: { at: number; open: number }[] = []
  await own.db.tx(t => {
    for (let step = 0; step < 1000; step++) {
      const row = { at: any(20), open: any(4) === 0 ? 1 : 0 }
      history.append(t, { place: 'here', side: 'a', ...row })
      model.push(row)
      if (any(3) > 0) continue
      const [newest, since] = [any(6), any(20)]
      history.prune(t, { place: 'here' }, { newest, since })
      const ended = model.filter(({ open }) => open === 0)
      const young = new Set(ended.slice(Math.max(0, ended.length - newest)))
      model = model.filter(entry => entry.open === 1 || young.has(entry) || entry.at >= since)
      assert.equal(times({ place: 'here' }), model.map(({ at }) => at).reverse())
      if (model.length > 40) {
        history.forget(t, { place: 'here' })
        model = []
      }
    }
  })
  await close()
})

test('the newest row can be removed, and a history forgotten', async () => {
  const { history, add, times, own, close } = await scene()
  await add('here', 1)
  await add('here', 2)
  await add('here', 3, { side: 'b' })
  await own.db.tx(t => history.pop(t, { place: 'here', side: 'a' }))
  assert.equal(times({ place: 'here' }), [3, 1])
  await own.db.tx(t => history.forget(t, { place: 'here', side: 'b' }))
  assert.equal(times({ place: 'here' }), [1])
  await own.db.tx(t => {
    history.pop(t, { place: 'nowhere' })
    history.forget(t, { place: 'nowhere' })
  })
  assert.equal(times({}), [1])
  await close()
})

test('invalid names do not get into SQL', async () => {
  const { own, close } = await scene()
  assert.throws(() => new History(own.db, { table: 'x; DROP TABLE y' }), /not a valid name/)
  const history = new History<Entry>(own.db, { table: 'acme_things_past' })
  assert.throws(() => history.page({ 'at = 1 OR 1': 1 } as never, { limit: 1 }), /not a valid name/)
  await close()
})

test.run()
