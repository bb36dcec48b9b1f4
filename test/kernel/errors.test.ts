import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '../../kernel/contract/errors.js'

test('a fault of another copy of the class is recognized, and a subclass by its class', async () => {
  const url = new URL('../../dist/plugin.js', import.meta.url).href
  const other: typeof import('../../kernel/contract/errors.js') = await import(url)
  assert.is.not(other.Fault, Fault)
  const foreign = new other.Fault('code', 409, 'text')
  class Special extends Fault {}
  const special = new Special('code', 409, 'text')
  assert.equal([foreign instanceof Fault, special instanceof Fault], [true, true])
  assert.equal([special instanceof Special, foreign instanceof Special], [true, false])
  assert.equal(
    [new Error('text'), { code: 'code', status: 409 }, null, 'text'].map(x => x instanceof Fault),
    [false, false, false, false],
  )
})

test.run()
