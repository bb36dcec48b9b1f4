import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { TextUnit } from '../../../../plugins/reach/bridges/adapter.js'
import { quiet } from '../../../../plugins/reach/bridges/delivery/mentions.js'
import { sizeOf, split, textsOf } from '../../../../plugins/reach/bridges/delivery/split.js'

const UNITS: readonly TextUnit[] = ['bytes', 'utf16', 'code_points']

/** A generator of numbers from 0 up to but not 1, the same for each seed. */
function chance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0
    return (state ^ (state >>> 13)) / 0x1_0000_0000 >= 1 ? 0 : ((state ^ (state >>> 13)) >>> 0) / 0x1_0000_0000
  }
}

const WORDS = [
  'a',
  'word',
  'Ünïcode',
  '日本語',
  '👩‍👩‍👧',
  'e\u0301',
  '😀',
  'x'.repeat(50),
  '| a | b |',
  'end.',
  '`code`',
  'ﷺ',
]
const LINES = ['```ts', '```', '~~~', '', '| a | b |', '|---|---|', '# Head', '- item']

function textOf(random: () => number): string {
  const lines: string[] = []
  const count = 1 + Math.floor(random() * 60)
  for (let n = 0; n < count; n++) {
    if (random() < 0.3) lines.push(LINES[Math.floor(random() * LINES.length)] as string)
    else {
      const words = Array.from(
        { length: Math.floor(random() * 20) },
        () => WORDS[Math.floor(random() * WORDS.length)] as string,
      )
      lines.push(words.join(' '))
    }
  }
  return lines.join('\n')
}

test('parts contain the whole text, fit their unit, and split no surrogate pair', () => {
  for (let seed = 1; seed <= 600; seed++) {
    const random = chance(seed)
    const text = textOf(random)
    const textUnit = UNITS[seed % 3] as TextUnit
    const rules = { textLimit: 8 + Math.floor(random() * 300), textUnit, fences: random() < 0.6 }
    const pieces = split(text, rules)
    assert.is(pieces.map(({ raw }) => raw).join(''), text, `seed ${seed}`)
    for (const piece of pieces) {
      assert.ok(sizeOf(piece.text, textUnit) <= rules.textLimit, `seed ${seed}: ${sizeOf(piece.text, textUnit)}`)
      assert.not.match(
        piece.text,
        /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/,
        `seed ${seed}`,
      )
      assert.ok(piece.text.includes(piece.raw), `seed ${seed}: only fences are added`)
      assert.ok(piece.raw.length > 0)
    }
    for (const part of textsOf(text, rules)) assert.ok(part.trim() !== '')
  }
})

test('parts of a growing text stay, except the last one', () => {
  for (let seed = 1; seed <= 80; seed++) {
    const random = chance(seed)
    const text = textOf(random)
    const rules = { textLimit: 80 + Math.floor(random() * 200), textUnit: 'code_points' as const, fences: true }
    let before: string[] = []
    for (let end = 0; end < text.length; end += 1 + Math.floor(random() * 40)) {
      const now = split(text.slice(0, end), rules).map(piece => piece.text)
      // The last two may change: one that was the last part by just fitting ends earlier when more comes.
      const stays = before.slice(0, -1)
      assert.equal(now.slice(0, stays.length), stays, `seed ${seed} at ${end}`)
      before = now
    }
  }
})

test('a text is split at a paragraph, a line, a sentence or a word, in this order', () => {
  const rules = { textLimit: 40, textUnit: 'code_points' as const, fences: true }
  assert.equal(textsOf('One paragraph here it is.\n\nAnother one that is longer.', rules), [
    'One paragraph here it is.',
    'Another one that is longer.',
  ])
  assert.equal(textsOf('First line of the text\nsecond line of the text here', rules), [
    'First line of the text',
    'second line of the text here',
  ])
  assert.equal(textsOf('One sentence that ends. Another one that goes on', rules), [
    'One sentence that ends.',
    'Another one that goes on',
  ])
  assert.equal(textsOf('words and words and words and words and words', rules), [
    'words and words and words and words and',
    'words',
  ])
  assert.equal(
    textsOf('x'.repeat(50), rules).map(({ length }) => length),
    [40, 10],
  )
})

test('a split fence is closed and reopened, and a table stays whole where it fits', () => {
  const rules = { textLimit: 80, textUnit: 'code_points' as const, fences: true }
  const code = Array.from({ length: 12 }, (_, n) => `const line${n} = ${n}`).join('\n')
  const parts = textsOf(`Look:\n\n\`\`\`ts\n${code}\n\`\`\``, rules)
  assert.ok(parts.length > 2)
  for (const part of parts) assert.is((part.match(/^```/gm) ?? []).length % 2, 0, part)
  assert.is(parts.filter(part => part.includes('```ts')).length, 1)
  const table = '| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |'
  const around = textsOf(`${'Some words before the table. '.repeat(2)}\n${table}`, rules)
  assert.is(around.at(-1), table)
})

test('the size of a text is counted in the unit of the platform', () => {
  assert.equal(
    UNITS.map(unit => sizeOf('a😀ü', unit)),
    [7, 4, 3],
  )
  const emoji = '👩‍👩‍👧'
  for (const part of textsOf(emoji.repeat(20), { textLimit: 30, textUnit: 'utf16', fences: false }))
    assert.is(part.length % emoji.length, 0, 'a character that people see as one is not cut')
})

test('a text of a megabyte is split', () => {
  const text = 'lorem ipsum dolor sit amet '.repeat(40_000)
  assert.ok(split(text, { textLimit: 400, textUnit: 'bytes', fences: true }).length > 2000)
})

for (const text of [
  '@everyone',
  'hi @here!',
  '@Channel',
  '<!everyone>',
  '<!here|here>',
  '<!subteam^S1>',
  '<@&42>',
  '@room',
])
  test(`the text ${text} mentions no group of users`, () =>
    assert.not.match(quiet(text), /@(everyone|here|channel|room)\b|<[!@][a-z&^]/i))

test('a mention of one user stays, and quieting is idempotent', () => {
  assert.is(quiet('@ada and me@example.org, <@U12>'), '@ada and me@example.org, <@U12>')
  assert.is(quiet(quiet('@everyone')), quiet('@everyone'))
})

test.run()
