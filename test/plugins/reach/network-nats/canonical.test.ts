import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { canonicalize } from '../../../../plugins/reach/network-nats/canonical.js'

test('numbers, texts and literals are encoded as in the example of RFC 8785, section 3.2.2', () => {
  const value = JSON.parse(
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
      '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
  )
  const expected =
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
    '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
  assert.is(canonicalize(value), expected)
  // Section 3.2.4: the bytes of the example, the beginning of its UTF-8.
  const bytes = Buffer.from(canonicalize(value))
  assert.is(bytes.subarray(0, 16).toString('hex'), '7b226c69746572616c73223a5b6e756c')
  assert.ok(bytes.includes(Buffer.from('e282ac245c75303030665c6e', 'hex')))
})

test('members are sorted by UTF-16 code units, as in section 3.2.3', () => {
  const value = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  }
  const order = [...canonicalize(value).matchAll(/:"([^"]*)"/g)].map(([, text]) => text)
  assert.equal(order, [
    'Carriage Return',
    'One',
    'Control',
    'Latin Small Letter O With Diaeresis',
    'Euro Sign',
    'Emoji: Grinning Face',
    'Hebrew Letter Dalet With Dagesh',
  ])
})

test('integer names are sorted as texts', () => {
  assert.is(canonicalize({ 9: 0, 10: { 2: 1, 11: 2 }, a: 3, 1: 4 }), '{"1":4,"10":{"11":2,"2":1},"9":0,"a":3}')
})

/** Appendix B: IEEE 754 in hexadecimal, and the text. */
const numbers: readonly (readonly [string, string])[] = [
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
]

for (const [hex, text] of numbers)
  test(`the number ${hex} of appendix B is encoded as ${text}`, () =>
    assert.is(canonicalize(Buffer.from(hex, 'hex').readDoubleBE()), text))

for (const hex of ['7fffffffffffffff', '7ff0000000000000'])
  test(`the number ${hex} of appendix B is refused as not finite`, () =>
    assert.throws(() => canonicalize(Buffer.from(hex, 'hex').readDoubleBE()), /must be finite/))

test('a lone surrogate is refused in texts and names', () => {
  assert.throws(() => canonicalize('\ud83d'), /surrogate/)
  assert.throws(() => canonicalize({ '\ude00': 1 }), /surrogate/)
})

test.run()
