import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { MarkdownText } from '../../cli/show/markdown.js'

/** The text as it is written when it comes in pieces of one size. */
function shown(text: string, { size = text.length, width = 40, styled = true } = {}): string {
  let out = ''
  const paint = (name: string, piece: string) => `<${name}:${piece}>`
  const prose = new MarkdownText({
    write: piece => {
      out += piece
    },
    width: () => width,
    ...(styled && { paint }),
  })
  for (let at = 0; at < text.length; at += size) prose.push(text.slice(at, at + size))
  prose.end()
  return out
}

const TEXT = [
  '# A heading',
  'Some **bold words** and `code` and 2 * 3 in a line that is longer than the terminal is wide.',
  '',
  '- one item that is so long that it has to go on in the next line',
  '  1. nested',
  '> quoted',
  '```js',
  'const a = 1 // a line of code that is longer than the terminal',
  '```',
  'end',
].join('\n')

test('emphasis is coloured, marks go, lists get bullets, and lines are broken between words', () => {
  const lines = shown(TEXT).split('\n')
  assert.is(lines[0], '<bold:A> <bold:heading>')
  assert.is(lines[1], 'Some <bold:bold> <bold:words> and <cyan:code> and 2 * 3 in a')
  assert.is(lines[2], 'line that is longer than the terminal is')
  const item = lines.findIndex(line => line.startsWith('•'))
  assert.is(lines[item], '• one item that is so long that it has')
  assert.is(lines[item + 1], '  to go on in the next line')
  assert.ok(lines.includes('<cyan:const a = 1 // a line of code that is longer than the terminal>'))
  assert.is(lines.at(-2), 'end')
})

test('however the text is cut into pieces, the same is shown', () => {
  for (const styled of [true, false])
    for (const size of [1, 2, 3, 7]) assert.is(shown(TEXT, { size, styled }), shown(TEXT, { styled }), String(size))
})

test('without colours the marks stay, and nothing is lost', () => {
  const text = shown(TEXT, { styled: false, width: 1000 })
  assert.is(text, `${TEXT}\n`)
})

test('emphasis that is never ended does not go beyond its line', () => {
  assert.is(shown('a **b\nc'), 'a <bold:b>\nc\n')
  assert.is(shown('a `b\nc'), 'a <cyan:b>\nc\n')
})

test.run()
