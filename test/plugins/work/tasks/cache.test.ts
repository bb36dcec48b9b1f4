import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openStore, type Store } from '../../../../kernel/store/index.js'
import { Cache } from '../../../../plugins/work/tasks/cache.js'
import { temporaryFolder } from '../../../harness/kernel.js'

const test = suite<{ store: Store }>('facts in memory')
test.before.each(async context => {
  context.store = await openStore({ path: path.join(await temporaryFolder('cache'), 'svc.db'), now: () => 0 })
})
test.after.each(({ store }) => store.close())

test('a fact is read once, and again after a change without a value', async ({ store: { db } }) => {
  const cache = new Cache<number>(db)
  let stored = 1
  const read = () => cache.read('a', () => stored)
  assert.equal([read(), read()], [1, 1])
  await db.tx(t => {
    stored = 2
    cache.changed(t, 'a')
    assert.is(read(), 2)
    stored = 3
    assert.is(read(), 3, 'a fact that the transaction changes is not kept before it is durable')
  })
  assert.is(read(), 3)
  stored = 4
  assert.is(read(), 3)
})

test('a transaction that is rolled back leaves no entry', async ({ store: { db } }) => {
  const cache = new Cache<number>(db)
  let stored = 1
  const read = () => cache.read('a', () => stored)
  assert.is(read(), 1)
  const undone = db.tx(t => {
    cache.changed(t, 'a', 2)
    stored = 2
    assert.is(read(), 2)
    stored = 1
    throw new Error('refused')
  })
  await undone.then(assert.unreachable, () => {})
  assert.is(read(), 1)
})

test('a later change wins over an earlier one that becomes durable after it', async ({ store: { db } }) => {
  const cache = new Cache<number>(db)
  const first = db.tx(t => cache.changed(t, 'a', 1))
  const second = db.tx(t => cache.changed(t, 'a', 2))
  assert.is(cache.get('a'), undefined)
  await Promise.all([first, second])
  assert.is(cache.get('a'), 2)
  const third = db.tx(t => cache.changed(t, 'a', 3))
  const all = db.tx(t => cache.changedAll(t))
  assert.is(
    cache.read('a', () => 4),
    4,
  )
  await Promise.all([third, all])
  assert.is(cache.get('a'), undefined)
})

test.run()
