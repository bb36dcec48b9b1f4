import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { styled, unstyled } from '../../../packages/bridge-telegram/src/markup.js'

/** The text with each styled piece in marks of its style. */
function shown(markdown: string): string {
  const { text, entities } = styled(markdown)
  return [text, ...entities.map(one => `${one.type}<${text.slice(one.offset, one.offset + one.length)}>`)].join(' | ')
}

test('Markdown styles become entities', () => {
  assert.is(shown('**a** _b_ ~~c~~ `d`'), 'a b c d | bold<a> | italic<b> | strikethrough<c> | code<d>')
  assert.is(shown('## Title\ntext'), 'Title\ntext | bold<Title>')
  assert.is(shown('**all *of* it**'), 'all of it | bold<all of it> | italic<of>')
  assert.is(shown('[docs](https://example.test/a) now'), 'docs now | text_link<docs>')
})

test('text similar to a style is unchanged', () => {
  for (const text of ['snake_case_name', '2 * 3 * 4', 'a ** b ** c', '[x](javascript:alert(1))', '[x](tg://user?id=1)'])
    assert.equal(styled(text), { text, entities: [] })
  assert.is(shown('\\*not\\*'), '*not*')
})

test('code is shown unchanged', () => {
  assert.equal(styled('see\n```ts\nconst a = "**b**" // @somebody\n```\nend'), {
    text: 'see\nconst a = "**b**" // @somebody\nend',
    entities: [{ type: 'pre', offset: 4, length: 30, language: 'ts' }],
  })
  assert.is(shown('```\nopen'), 'open | pre<open>', 'a fence that a cut left open')
})

test('an agent cannot mention a user', () => {
  assert.is(shown('ask @somebody and mail a@example.test'), 'ask @somebody and mail a@example.test | code<@somebody>')
  assert.equal(unstyled('@somebody').entities, [{ type: 'code', offset: 0, length: 9 }])
})

test('offsets count UTF-16 units', () => {
  assert.equal(styled('😀 **b**').entities, [{ type: 'bold', offset: 3, length: 1 }])
})

for (const piece of ['*', '**a', '`', '[a](', '_a', '# ', '@abcde', '~~', '```\n', '\\'])
  test(`repeated ${JSON.stringify(piece)} is parsed quickly, and every style lies inside the text`, () => {
    const { text, entities } = styled(piece.repeat(4096 / piece.length))
    for (const { offset, length } of entities) assert.ok(length > 0 && offset >= 0 && offset + length <= text.length)
    assert.ok(text.length <= 4096)
  })

test.run()
