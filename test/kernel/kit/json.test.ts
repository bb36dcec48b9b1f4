import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parseJson, wellFormed } from '../../../kernel/kit/json.js'

test('halves of characters in texts and names become U+FFFD, whole ones stay', () => {
  const json = String.raw`{"a\ud83d":["\ud83d\ude00","\ude00\ud83d",1,null,{"b":"x\udc00"}],"c":"\u00e9"}`
  assert.equal(parseJson(json), { 'a\ufffd': ['\u{1f600}', '\ufffd\ufffd', 1, null, { b: 'x\ufffd' }], c: 'é' })
  assert.equal(parseJson(String.raw`"\uD800"`), '\ufffd')
  assert.equal(parseJson('{"__proto__":"\\ud800"}'), JSON.parse('{"__proto__":"\ufffd"}'))
})

test('what is no JSON is refused as ever, and what is no text stays what it is', () => {
  assert.throws(() => parseJson('{'), SyntaxError)
  for (const value of [undefined, null, true, 3]) assert.is(wellFormed(value), value)
})

test.run()
