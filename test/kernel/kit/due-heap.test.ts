import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { DueHeap } from '../../../kernel/kit/due-heap.js'
import { seededIds } from '../../../testing/seeded-ids.js'

test('the heap equals a sorted list under random sets, moves and deletes', () => {
  const ids = seededIds(7)
  const heap = new DueHeap()
  const model = new Map<string, number>()
  const first = () => [...model].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1))[0]
  for (let step = 0; step < 20_000; step++) {
    const key = `k${Math.floor(ids.random() * 60)}`
    const what = ids.random()
    if (what < 0.6) {
      const at = Math.floor(ids.random() * 50)
      heap.set(key, at)
      model.set(key, at)
    } else if (what < 0.8) {
      heap.delete(key)
      model.delete(key)
    } else {
      const now = Math.floor(ids.random() * 50)
      const expected = first()
      const taken = heap.take(now)
      assert.equal(taken, expected && expected[1] <= now ? { key: expected[0], at: expected[1] } : undefined)
      if (taken) model.delete(taken.key)
    }
    assert.is(heap.size, model.size)
    assert.is(heap.peek()?.key, first()?.[0])
    assert.is(heap.get(key), model.get(key))
  }
})

test.run()
