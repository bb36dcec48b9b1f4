import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { cellText, durationText, pick } from '../../cli/show/cells.js'
import { fitWidths, renderTable } from '../../cli/show/table.js'
import { cleanLine, cleanText, closeColors, cutText, jsonText, markedLine, textWidth } from '../../cli/show/text.js'
import { toToon } from '../../cli/show/toon.js'
import { visible } from '../../kernel/kit/text.js'

const now = Date.parse('2030-01-31T09:00:00.000Z')

test('external text cannot control the terminal', () => {
  const hostile = 'a\x1b[2Jb\x1b]0;title\x07c\x1b]52;c;aGk=\x1b\\d\x1b[31me\x1b[0m\rf\x07g\x9b31mh\u202ei'
  assert.is(cleanText(hostile), 'abcdefg31mhi')
  assert.is(cleanText(hostile, true), 'abcd\x1b[31me\x1b[0mfg31mhi')
  assert.is(cleanText('two\nlines\tand a tab'), 'two\nlines\tand a tab')
  assert.is(cleanLine('two\n  lines\x1bc '), 'two   lines')
  assert.is(cleanText('\x1b'), '')
  assert.is(cleanText('a\x1b['), 'a')
})

test('invisible characters do not reach the terminal, and are marked within a value', () => {
  const hidden = 'a\u200bb\u2066c\u00add\ufeffe\u{e0041}f\u061cg'
  assert.is(cleanText(hidden), 'abcdefg')
  assert.is(markedLine(`${hidden}\x1b[8m`), 'a\\u{200b}b\\u{2066}c\\u{ad}d\\u{feff}e\\u{e0041}f\\u{61c}g␛[8m')
  assert.is(visible('rm \x07\x7f\x9b\r\t.'), 'rm ␇␡\\u{9b}␍\t.')
  assert.is(cleanText('👩‍👧 می‌خواهم a\u200db'), '👩‍👧 می‌خواهم ab')
  assert.is(JSON.parse(jsonText(hidden) ?? ''), hidden)
  assert.match(jsonText(hidden) ?? '', /^[ -~]+$/)
})

test('colours end with their chunk of text and resume with the next', () => {
  assert.equal(closeColors('plain'), { text: 'plain', open: '' })
  assert.equal(closeColors('a\x1b[8mb'), { text: 'a\x1b[8mb\x1b[0m', open: '\x1b[8m' })
  assert.equal(closeColors('c', '\x1b[8m'), { text: '\x1b[8mc\x1b[0m', open: '\x1b[8m' })
  assert.equal(closeColors('c\x1b[md', '\x1b[8m'), { text: '\x1b[8mc\x1b[md', open: '' })
  assert.equal(closeColors('\x1b[30m\x1b[40m').open, '\x1b[30m\x1b[40m')
})

test('widths count terminal columns', () => {
  assert.is(textWidth('abc'), 3)
  assert.is(textWidth('漢字'), 4)
  assert.is(textWidth('e\u0301'), 1)
  assert.is(textWidth('🚀'), 2)
  assert.is(cutText('abcdef', 4), 'abc…')
  assert.is(cutText('漢字漢字', 6), '漢字…')
  assert.is(cutText('漢字漢', 6), '漢字漢')
  assert.is(cutText('abc', 0), '')
})

test('a table fits its width with any content and keeps the first column longest', () => {
  const rows = [
    { id: 'run_0123456789abcdef', text: 'x'.repeat(300), more: 'y\n'.repeat(100) },
    { id: 'run_fedcba9876543210', text: '', more: null },
  ]
  const columns = [
    { header: 'id', path: 'id' },
    { header: 'text', path: 'text' },
    { header: 'more', path: 'more' },
  ]
  for (const width of [20, 40, 80, 200]) {
    const lines = renderTable(rows, columns, { width, now })
    assert.is(lines.length, width < 40 ? 5 : 3)
    for (const line of lines) assert.ok(textWidth(line) <= width, `${width}: ${line}`)
    assert.match(lines[1] as string, /^run_0123456789abcdef(?: |$)/)
  }
  assert.equal(renderTable([{ id: 'a', text: 'b', more: 'c' }], columns, { width: 80, now }), [
    'ID  TEXT  MORE',
    'a   b     c',
  ])
})

test('an id and a status are whole at any width with room for one of them', () => {
  const row = {
    job: { id: 'job_0123456789abcdef' },
    name: 'n'.repeat(30),
    agent: 'claude-code',
    session_id: 'ses_0123456789abcdef',
    status: 'completed',
  }
  const columns = [
    { header: 'ID', path: 'job.id' },
    { header: 'NAME', path: 'name' },
    { header: 'AGENT', path: 'agent' },
    { header: 'SESSION', path: 'session_id' },
    { header: 'STATUS', path: 'status' },
    { header: 'WHY', path: 'why', below: true },
  ] as const
  for (let width = 34; width <= 100; width++) {
    const text = renderTable([{ ...row, why: 'because' }], columns, { width, now }).join('\n')
    for (const whole of [row.job.id, row.session_id, row.status]) assert.ok(text.includes(whole), `${width}:\n${text}`)
    for (const line of text.split('\n')) assert.ok(textWidth(line) <= width, `${width}: ${line}`)
  }
  assert.equal(renderTable([row], columns, { width: 60, now }), [
    'ID                    SESSION               STATUS',
    'job_0123456789abcdef  ses_0123456789abcdef  completed',
    '    name: nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn',
    '    agent: claude-code',
  ])
})

test('the widest columns shrink first', () => {
  assert.equal(fitWidths([10, 50, 30], 94), [10, 50, 30])
  assert.equal(fitWidths([10, 50, 30], 74), [10, 30, 30])
  assert.equal(fitWidths([10, 50, 30], 54), [10, 20, 20])
  assert.equal(fitWidths([40, 6, 6], 40), [24, 6, 6])
  assert.equal(fitWidths([6, 6], 3), [6, 6])
})

test('cells format each type of value', () => {
  const cell = (value: unknown, as?: 'time' | 'ago' | 'duration' | 'bytes' | 'list', path = 'a') =>
    cellText({ [path]: value }, { header: '', path, ...(as && { as }) }, now)
  assert.is(cell('2030-01-31T08:57:00.000Z', 'ago'), '3m ago')
  assert.is(cell('2030-01-31T10:30:00.000Z', 'ago'), 'in 1h')
  assert.is(cell('2030-01-31T09:00:00.000Z', 'ago'), 'now')
  assert.is(cell('never', 'ago'), 'never')
  assert.is(cell(65_000, 'duration'), '1m 5s')
  assert.is(cell(65, 'duration', 'uptime_seconds'), '1m 5s')
  assert.is(cell(1536, 'bytes'), '1.5 KiB')
  assert.is(cell(12, 'bytes'), '12 B')
  assert.is(cell(['a', 'b'], 'list'), 'a, b')
  assert.is(cell(true), 'yes')
  assert.is(cell(0), '0')
  assert.is(cell({ b: 1 }), '{"b":1}')
  assert.is(cell(undefined), '-')
  assert.match(cell('2030-01-31T09:00:00.000Z', 'time'), /^2030-\d\d-\d\d \d\d:\d\d:\d\d$/)
  assert.is(durationText(350), '350ms')
  assert.is(durationText(90_000_000), '1d 1h')
  assert.is(pick({ a: { b: [1] } }, 'a.b.0'), 1)
  assert.is(pick({ a: 1 }, 'a.toString'), undefined)
  assert.is(pick({}, '__proto__.x'), undefined)
})

for (const [text, columns] of [
  ['plain', 5],
  ['日本', 4],
  ['ｆ', 2],
  ['한글', 4],
  ['é', 1],
  ['e\u0301', 1],
  ['👩‍👩‍👧', 2],
  ['🇩🇪', 2],
  ['☰', 2],
  ['㉈', 1],
] as const)
  test(`the text ${text} takes ${columns} columns (${text.length} units)`, () => assert.is(textWidth(text), columns))

test('toon encodes lists and objects', () => {
  const value = {
    name: 'demo',
    count: 2,
    on: true,
    none: null,
    text: 'a: b, c',
    number: '42',
    empty: '',
    lines: 'a\n"b"\\',
    tags: ['x', 'y z', ''],
    nothing: [],
    rows: [
      { id: 'a', n: 1 },
      { id: 'b,c', n: null },
    ],
    mixed: [1, { id: 'a', deep: { b: 1 } }, ['x', 'y'], {}],
    deep: { a: { b: 'c' } },
    'odd key': 1,
  }
  assert.equal(toToon(value).split('\n'), [
    'name: demo',
    'count: 2',
    'on: true',
    'none: null',
    'text: "a: b, c"',
    'number: "42"',
    'empty: ""',
    'lines: "a\\n\\"b\\"\\\\"',
    'tags[3]: x,y z,""',
    'nothing: []',
    'rows[2]{id,n}:',
    '  a,1',
    '  "b,c",null',
    'mixed[4]:',
    '  - 1',
    '  - id: a',
    '    deep:',
    '      b: 1',
    '  - [2]: x,y',
    '  -',
    'deep:',
    '  a:',
    '    b: c',
    '"odd key": 1',
  ])
  assert.is(toToon([{ a: 1 }]), '[1]{a}:\n  1')
  assert.is(toToon('x'), 'x')
  const hostile = toToon({ a: '\x1b[31m', b: 'x\x9b\u202ey', '\x9bk': ['\x1b]0;t\x07', '\x7f'] })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  assert.not(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/.test(hostile), hostile)
})

test.run()
