import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { lastNumber, markFor, markOfLimit, numberIn } from '../../../../plugins/platform/processes/mark.js'
import { findMarking, homeNumber } from '../../../../plugins/platform/processes/marking.js'

const bytes = (mark: number) => String(BigInt(mark) * 1024n)

test('a mark passes through the byte limit unchanged at both ends of its range', () => {
  for (const home of [0, 1, 2 ** 36 - 1]) {
    for (const number of [1, 2, lastNumber]) {
      const mark = markFor(home, number)
      assert.is(markOfLimit(bytes(mark)), mark)
      assert.is(numberIn(mark, home), number)
      assert.is(numberIn(mark, home === 0 ? 1 : home - 1), 0)
      // A shell takes the limit in KiB as a signed number of 64 bits, in bytes.
      assert.ok(BigInt(mark) * 1024n < 2n ** 63n)
    }
  }
})

test('limits set by users are no marks', () => {
  const limits = [
    '18446744073709551615',
    '0',
    '8589934592',
    String(2 ** 50),
    bytes(2 ** 52 - 1),
    bytes(2 ** 53),
    '',
    'x',
  ]
  for (const limit of [...limits, undefined]) assert.is(markOfLimit(limit), 0)
  assert.is(numberIn(0, homeNumber('home')), 0)
})

test('each home has its own number', () => {
  const numbers = new Set(Array.from({ length: 1000 }, (_, at) => homeNumber(`home-${at}`)))
  assert.is(numbers.size, 1000)
  for (const number of numbers) assert.ok(number >= 0 && number < 2 ** 36)
})

test('processes can be marked on Linux', async () => {
  const marking = await findMarking(process.platform)
  assert.is(marking !== undefined, process.platform === 'linux')
  assert.is(await findMarking('darwin'), undefined)
})

test.run()
