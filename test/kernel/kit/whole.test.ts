import { Readable } from 'node:stream'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { wholeOf } from '../../../kernel/kit/whole.js'

test('all bytes of a stream are joined, up to the limit', async () => {
  const pieces = ['ab', 'c'].map(piece => Buffer.from(piece))
  const tooMuch = () => new Error('too much')
  assert.is((await wholeOf(Readable.from(pieces), 3, tooMuch)).toString(), 'abc')
  assert.is((await wholeOf(new Response('abc').body!, 3, tooMuch)).toString(), 'abc')
})

test('a stream over the limit is abandoned before its end', async () => {
  let given = 0
  const endless = Readable.from(
    (function* () {
      for (;;) {
        given++
        yield Buffer.alloc(10)
      }
    })(),
  )
  const why = await wholeOf(endless, 100, () => new Error('more than 100')).catch((error: Error) => error.message)
  assert.is(why, 'more than 100')
  assert.ok(given < 100, `${given} pieces`)
  assert.ok(endless.destroyed)
})

test.run()
