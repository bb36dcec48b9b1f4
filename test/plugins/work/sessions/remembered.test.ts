import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Remembered } from '../../../../plugins/work/sessions/lifecycle/remembered.js'

/** Values that can be written, and how often each was read. */
function table(most?: number) {
  const values = new Map([['a', 1]])
  const reads: string[] = []
  const remembered = new Remembered((key: string) => {
    reads.push(key)
    return values.get(key)
  }, most)
  return { values, reads, remembered }
}

test('a value is read once until it changes, a missing one as well', () => {
  const { values, reads, remembered } = table()
  for (let i = 0; i < 3; i++) assert.equal([remembered.get('a'), remembered.get('b')], [1, undefined])
  assert.equal(reads, ['a', 'b'])
  values.set('a', 2)
  remembered.changed('a')
  assert.equal([remembered.get('a'), remembered.get('b')], [2, undefined])
  remembered.changedAll()
  assert.equal([remembered.peek('a'), remembered.peek('b')], [undefined, undefined])
})

test('a value read in a rolled back transaction is not cached', async () => {
  const { values, remembered } = table()
  assert.is(remembered.get('a'), 1)
  const transaction = async () => {
    remembered.changed('a')
    values.set('a', 2)
    assert.is(remembered.get('a'), 2, 'inside what was written is seen')
    values.set('a', 1)
  }
  await transaction()
  assert.is(remembered.get('a'), 1)
  values.set('a', 3)
  assert.is(remembered.get('a'), 1, 'from here on it is remembered again')
})

test('the number of cached values is bounded', () => {
  const { reads, remembered } = table(2)
  for (const key of ['a', 'b', 'c', 'b', 'c', 'a']) remembered.get(key)
  assert.equal(reads, ['a', 'b', 'c', 'a'])
})

test.run()
