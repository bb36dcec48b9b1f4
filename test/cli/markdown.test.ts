import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { MarkdownText } from '../../cli/show/markdown.js'
import { processorMs } from '../harness/processor-time.js'

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

test('emphasis is coloured, its marks are removed, lists get bullets, and lines wrap between words', () => {
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

test('output is the same however the text is split into chunks', () => {
  for (const styled of [true, false])
    for (const size of [1, 2, 3, 7]) assert.is(shown(TEXT, { size, styled }), shown(TEXT, { styled }), String(size))
})

test('marks stay and no text is lost without colours', () => {
  const text = shown(TEXT, { styled: false, width: 1000 })
  assert.is(text, `${TEXT}\n`)
})

test('unclosed emphasis ends with its line', () => {
  assert.is(shown('a **b\nc'), 'a <bold:b>\nc\n')
  assert.is(shown('a `b\nc'), 'a <cyan:b>\nc\n')
})

test('star and underscore emphasis, links and task items are rendered; similar text is unchanged', () => {
  const wide = { width: 1000 }
  assert.is(shown('an *italic* and _other_ word', wide), 'an <italic:italic> and <italic:other> word\n')
  assert.is(shown('*two words*', wide), '<italic:two> <italic:words>\n')
  for (const text of [
    '2 * 3 * 4',
    'a*b*c',
    'snake_case_name',
    '*.ts and *.js',
    '[x] is no link',
    'a [b',
    'f(_) and _a',
  ])
    assert.is(shown(text, wide), `${text}\n`, text)
  assert.is(shown('see [the docs](https://x.y/a_(b)) now', wide), 'see the docs <blue:(https://x.y/a_(b))> now\n')
  assert.is(shown('[https://x.y](https://x.y)', wide), '<blue:https://x.y>\n')
  assert.is(shown('[a](javascript:x y)', wide), '[a](javascript:x y)\n')
  assert.is(shown('- [x] done\n- [ ] open\n- [y] other', wide), '☑ done\n☐ open\n• [y] other\n')
})

const TABLE = [
  '| Name | What it does |',
  '|:---|---|',
  '| `a` | one |',
  '| b | **two** and *more* words than fit |',
  '',
].join('\n')

test('a table is aligned and fits the terminal, its cells broken between words', () => {
  const lines = shown(`before\n${TABLE}after`, { width: 30 }).split('\n')
  assert.equal(lines, [
    'before',
    '<bold:Name  What it does>',
    '<dim:────  ────────────────────────>',
    'a     one',
    'b     two and more words than',
    '      fit',
    'after',
    '',
  ])
})

test('a table with too many columns for the terminal is shown row by row', () => {
  const head = Array.from({ length: 9 }, (_, at) => `column ${at}`)
  const text = [head, head.map(() => '-'), head.map((_, at) => `value ${at}`)]
    .map(row => `|${row.join('|')}|`)
    .join('\n')
  const lines = shown(text, { width: 40 }).trimEnd().split('\n')
  assert.is(lines.length, 9)
  assert.is(lines[8], '<bold:column 8>: value 8')
})

test('lines with bars outside a table are text, and a table without colours is unchanged', () => {
  assert.is(shown('| a | b |\nc'), '| a | b |\nc\n')
  assert.is(shown(TABLE, { styled: false, width: 1000 }), TABLE)
})

test('tables, links and emphasis are the same however the text is split into chunks', () => {
  const text = `${TABLE}\n*a b* [c](d) _e_ |\n| f`
  for (const size of [1, 2, 3, 7]) assert.is(shown(text, { size, width: 30 }), shown(text, { width: 30 }), String(size))
})

test('a hostile text takes time proportional to its length', () => {
  const time = (text: string) => processorMs(() => shown(text))
  for (const piece of ['[', '*a', '_b ', '[x](', '|', '| a\n']) {
    time(piece.repeat(2000))
    const small = Math.max(5, time(piece.repeat(5000)))
    assert.ok(time(piece.repeat(40_000)) < small * 80, piece)
  }
})

test.run()
