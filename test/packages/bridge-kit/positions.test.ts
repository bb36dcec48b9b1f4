import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isAfter, Positions, realTiming, type Timing } from '../../../packages/bridge-kit/src/index.js'

/** What a daemon keeps for an instance; a pause before it is asked for that ends at once. */
function open(kept: { value?: unknown } = {}) {
  const abort = new AbortController()
  const timing: Timing = { ...realTiming, sleep: () => Promise.resolve() }
  const values = {
    get: async () => kept.value,
    put: async (_: string, value: unknown) => {
      kept.value = value
    },
  }
  const positions = new Positions({ values, signal: abort.signal, log: () => {} }, timing)
  const settled = async () => {
    for (let n = 0; n < 20; n++) await new Promise(resolve => setImmediate(resolve))
    return kept.value as Record<string, string>
  }
  return { positions, settled, abort, kept }
}

test('a position does not pass a pending message', async () => {
  const { positions, settled } = open()
  for (const id of ['101', '102', '103']) positions.taking('a', id)
  positions.taken('a', '102')
  assert.is(positions.of('a'), '100')
  positions.taken('a', '101')
  assert.is(positions.of('a'), '102')
  positions.taken('a', '102')
  positions.taken('a', '77')
  positions.taking('a', '50')
  positions.taken('a', '50')
  assert.is(positions.of('a'), '102', 'what is known again changes nothing')
  positions.taken('a', '103')
  assert.equal(await settled(), { a: '103' })
})

test('a held position stays until it is released', async () => {
  const { positions, settled } = open({ value: { a: '1700000000.000100' } })
  await positions.load()
  const release = positions.hold('a')
  positions.taking('a', '1700000009.000100')
  positions.taken('a', '1700000009.000100')
  assert.is(positions.of('a'), '1700000000.000100')
  positions.taking('a', '1700000005.000100')
  release()
  assert.is(positions.of('a'), '1700000000.000100')
  positions.taken('a', '1700000005.000100')
  assert.equal(await settled(), { a: '1700000009.000100' })
  positions.hold('unknown')()
})

test('stored positions are restored, garbage is not; unused ones are forgotten', async () => {
  const { positions, settled } = open({ value: { a: '5', b: 7, c: 'x', d: '1'.repeat(40), e: '1.2.3' } })
  await positions.load()
  assert.equal(positions.places(), ['a'])
  positions.begin('a', '9')
  assert.is(positions.of('a'), '5', 'a place that is known does not begin anew')
  for (let n = 0; n < 700; n++) positions.begin(`p${n}`, '1')
  assert.is(positions.places().length, 600)
  assert.is(positions.of('a'), undefined)
  positions.taking('p100', '2')
  assert.is(positions.places()[0], 'p100', 'the latest one is the first')
  positions.forget('p699')
  const kept = await settled()
  assert.ok(!('p699' in kept) && 'p698' in kept)
  assert.ok(Buffer.byteLength(JSON.stringify(kept)) < 64 * 1024)
  const nothing = open({ value: 'text' })
  await nothing.positions.load()
  assert.equal(nothing.positions.places(), [])
})

test('ids of different lengths are ordered by time', () => {
  assert.ok(isAfter('1576234743559618561', '999'))
  assert.ok(isAfter('1700000000.000200', '1700000000.000100'))
  assert.not(isAfter('5', '5'))
})

test.run()
