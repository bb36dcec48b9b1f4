import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { keep, OutputEnd, OutputStart } from '../../../../plugins/platform/processes/api.js'

/** What is kept of pieces of output, and whether some was dropped. */
async function kept(keeper: OutputStart | OutputEnd, pieces: readonly (string | Buffer)[]) {
  const stream = Readable.from(pieces.map(piece => Buffer.from(piece as string)))
  keep(stream, keeper)
  await finished(stream)
  return [keeper.text(), keeper.truncated]
}

test('the first bytes of an output are kept up to the limit', async () => {
  assert.equal(await kept(new OutputStart(6), ['abc', 'def']), ['abcdef', false])
  assert.equal(await kept(new OutputStart(5), ['abc', 'def', 'g']), ['abcde', true])
  assert.equal(await kept(new OutputStart(3), ['abc', 'd']), ['abc', true])
})

test('the last bytes of an output are kept up to the limit', async () => {
  assert.equal(await kept(new OutputEnd(6), ['abc', 'def']), ['abcdef', false])
  assert.equal(await kept(new OutputEnd(5), ['abc', 'def', 'g']), ['cdefg', true])
})

test('a character cut by the limit is omitted, and one split over chunks is whole', async () => {
  const [one, two] = [Buffer.from('é').subarray(0, 1), Buffer.from('é').subarray(1)]
  assert.equal(await kept(new OutputStart(4), ['a', one, two, 'b']), ['aéb', false])
  assert.equal(await kept(new OutputStart(2), ['a', one, two, 'b']), ['a', true])
  assert.equal(await kept(new OutputEnd(2), ['a', one, two, 'b']), ['b', true])
})

test('lines are whole: a line without its start is omitted, whatever follows', async () => {
  const linesOf = async (limit: number, text: string) => {
    const keeper = new OutputEnd(limit)
    await kept(keeper, [text])
    return keeper.lines()
  }
  assert.is(await linesOf(8, 'one\ntwo'), 'one\ntwo')
  assert.is(await linesOf(6, 'one\ntwo'), 'two')
  assert.is(await linesOf(6, 'a secret'), '')
})

test.run()
