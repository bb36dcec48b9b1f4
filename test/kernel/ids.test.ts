import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Ids } from '../../kernel/contract/basics.js'
import { systemIds } from '../../kernel/ids.js'
import { seededIds } from '../../testing/seeded-ids.js'

const uuid4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

function sample(ids: Ids): unknown[] {
  return [ids.hex(5), ids.id('run'), ids.uuid(), ids.random(), ids.id('run')]
}

test('ids have their format and do not repeat', () => {
  for (const ids of [systemIds(), seededIds(7)]) {
    assert.match(ids.id('ws'), /^ws_[0-9a-f]{16}$/)
    assert.match(ids.hex(3), /^[0-9a-f]{6}$/)
    const many = 20_000
    assert.is(new Set(Array.from({ length: many }, () => ids.id('evt'))).size, many)
    for (let round = 0; round < 1000; round++) {
      assert.match(ids.uuid(), uuid4)
      const number = ids.random()
      assert.ok(number >= 0 && number < 1)
    }
    for (const bytes of [0, -1, 1.5, 1025, Number.NaN]) assert.throws(() => ids.hex(bytes), /1 to 1024/)
  }
})

test('a seed determines all values; adjacent seeds and the system differ', () => {
  assert.equal(sample(seededIds(42)), sample(seededIds(42)))
  const first = [0, 1, 2, 2 ** 32, -1].map(seed => seededIds(seed).hex(8))
  assert.is(new Set(first).size, first.length)
  assert.not.equal(sample(systemIds()), sample(systemIds()))
})

test('seeded random values are evenly distributed', () => {
  const ids = seededIds(1)
  const buckets = new Array<number>(10).fill(0)
  for (let round = 0; round < 10_000; round++) buckets[Math.floor(ids.random() * 10)]!++
  assert.ok(
    buckets.every(count => count > 850 && count < 1150),
    buckets.join(' '),
  )
})

test.run()
