import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { canonicalJson } from '../../../kernel/kit/canonical.js'

test('members are sorted at every level, whether the value was sorted or not', () => {
  assert.is(canonicalJson({ a: 1, b: { c: [2, { d: 3, e: null }] } }), '{"a":1,"b":{"c":[2,{"d":3,"e":null}]}}')
  assert.is(canonicalJson({ b: { d: [{ z: 1, y: 2 }], c: 1 }, a: 1 }), '{"a":1,"b":{"c":1,"d":[{"y":2,"z":1}]}}')
  assert.is(canonicalJson({ a: [{ b: 1 }, { d: 1, c: 2 }] }), '{"a":[{"b":1},{"c":2,"d":1}]}')
  assert.is(canonicalJson({ '9': 1, '10': 2 }), '{"9":1,"10":2}')
})

test('a value with its own form in JSON is sorted in that form', () => {
  const own = { toJSON: () => ({ b: 1, a: 2 }) }
  assert.is(canonicalJson({ own }), '{"own":{"a":2,"b":1}}')
  assert.is(canonicalJson([own]), '[{"a":2,"b":1}]')
  assert.is(canonicalJson({ at: new Date(0) }), '{"at":"1970-01-01T00:00:00.000Z"}')
})

test('cycles and bigints are refused', () => {
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  assert.throws(() => canonicalJson(cycle))
  assert.throws(() => canonicalJson({ big: 1n }))
})

test.run()
