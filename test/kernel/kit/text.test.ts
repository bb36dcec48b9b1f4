import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { settingsSection } from '../../../kernel/kit/settings.js'
import { clip, cut, parseJson, shown, text, wellFormed } from '../../../kernel/kit/text.js'

test('a text is trimmed before it is measured', () => {
  assert.is(v.parse(text(3), '  abc\n'), 'abc')
  assert.not.ok(v.is(text(3), 'abcd'))
  assert.not.ok(v.is(text(3), '   '))
  assert.is(v.parse(text(3, 0), '   '), '')
  assert.not.ok(v.is(text(3), 3))
})

test('external text is quoted, escaped and cut', () => {
  assert.is(shown('a "b"\n'), '"a \\"b\\"\\n"')
  assert.is(shown('x'.repeat(200)), JSON.stringify('x'.repeat(200)))
  assert.is(shown('x'.repeat(201)), JSON.stringify(`${'x'.repeat(200)}…`))
  assert.is(shown('abcdef', 3), '"abc…"')
  assert.is(shown('\u001b[31m'), '"\\u001b[31m"')
})

test('a surrogate pair is never split', () => {
  const face = '\u{1f600}'
  assert.equal([clip(`a${face}b`, 1), clip(`a${face}b`, 2), clip(`a${face}b`, 3)], ['a', 'a', `a${face}`])
  assert.equal([clip(face, 2), clip(face, 1), clip('', 5), clip('abc', 0)], [face, '', '', ''])
  assert.equal([cut(`a${face}b`, 2), cut(`a${face}`, 3)], ['a…', `a${face}`])
})

test('lone surrogates in texts and names become U+FFFD, pairs stay', () => {
  const json = String.raw`{"a\ud83d":["\ud83d\ude00","\ude00\ud83d",1,null,{"b":"x\udc00"}],"c":"\u00e9"}`
  assert.equal(parseJson(json), { 'a\ufffd': ['\u{1f600}', '\ufffd\ufffd', 1, null, { b: 'x\ufffd' }], c: 'é' })
  assert.equal(parseJson(String.raw`"\uD800"`), '\ufffd')
  assert.equal(parseJson('{"__proto__":"\\ud800"}'), JSON.parse('{"__proto__":"\ufffd"}'))
})

test('invalid JSON is refused, and values other than text stay', () => {
  assert.throws(() => parseJson('{'), SyntaxError)
  for (const value of [undefined, null, true, 3]) assert.is(wellFormed(value), value)
})

test('the settings of a section share its path and the time at which they take effect', () => {
  const setting = settingsSection({ path: 'limits', section: 'general', apply: 'live' })
  const schema = v.number()
  assert.equal(setting('max_open', schema, 5), {
    path: 'limits.max_open',
    section: 'general',
    schema,
    default: 5,
    apply: 'live',
  })
})

test.run()
