import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { rowsOf } from '../../cli/run-route.js'
import { Output } from '../../cli/show/output.js'
import { renderFields, renderTable } from '../../cli/show/table.js'
import { cutText, textWidth } from '../../cli/show/text.js'
import { FakeDaemon, type RunOptions, runCli } from './fake-daemon.js'

const test = suite<{ daemon: FakeDaemon }>('output')
test.before.each(async context => {
  context.daemon = await FakeDaemon.start()
})
test.after.each(({ daemon }) => daemon.remove())

const long = 'y'.repeat(300)
const thing = { id: 'thg_1', state: 'open', size: 1, created_at: null, note: long }

test('several paths of a view add their rows up', () => {
  const view = { rows: 'tree.root tree.below', columns: [] }
  const body = { tree: { root: { id: 1 }, below: [{ id: 2 }, { id: 3 }] } }
  assert.equal(rowsOf(body, view), [{ id: 1 }, { id: 2 }, { id: 3 }])
  assert.equal(rowsOf({ tree: {} }, view), [])
})

test('a kind or class, the argument of other commands, is never cut', () => {
  const columns = ['kind', 'name', 'class', 'updated'].map(path => ({ path, header: path }))
  const rows = [{ kind: 'automation.trigger', name: 'n'.repeat(30), class: 'ordinary', updated: '2030-01-01' }]
  const [, line = ''] = renderTable(rows, columns, { width: 40, now: 0 })
  assert.match(line, /^automation\.trigger +n+… +ordinary/)
})

test('the width of a table is COLUMNS, else the terminal, and unlimited without one', async ({ daemon }) => {
  daemon.reply('GET /api/things', 200, { things: [thing] })
  const widest = async (options: RunOptions) => {
    const { stdout } = await runCli(daemon.home, ['thing', 'list'], {
      ...options,
      env: { NO_COLOR: '1', ...options.env },
    })
    return Math.max(...stdout.split('\n').map(line => line.length))
  }
  assert.is(await widest({ tty: true, columns: 72 }), 72)
  assert.is(await widest({ tty: true, columns: 72, env: { COLUMNS: '50' } }), 50)
  assert.is(await widest({ tty: true }), 80)
  assert.is(await widest({ env: { COLUMNS: '50' } }), 50)
  for (const COLUMNS of ['', '0', '-3', 'many']) assert.ok((await widest({ env: { COLUMNS } })) > 300, COLUMNS)
})

test('errors and notes wrap at the width of a terminal, commands and pipes do not', async ({ daemon }) => {
  const error = `there is no thing "x"; ${'the word after this one is another '.repeat(4).trim()}`
  const next = `svc thing list ${'--state open '.repeat(8).trim()}`
  daemon.reply('GET /api/things', 404, { error, code: 'thing_not_found', details: { next } })
  const env = { NO_COLOR: '1' }
  const piped = await runCli(daemon.home, ['thing', 'list'], { env: { ...env, COLUMNS: '60' } })
  const whole = `error: ${error}\n  code: thing_not_found\n  next: ${next}\n`
  assert.is(piped.stderr, whole)
  const shown = await runCli(daemon.home, ['thing', 'list'], { env, tty: true, columns: 60 })
  const lines = shown.stderr.trimEnd().split('\n')
  assert.ok(
    lines.slice(0, -1).every(line => line.length <= 60),
    shown.stderr,
  )
  assert.is(lines.at(-1), `  next: ${next}`)
  assert.is(shown.stderr.replace(/\n {2}(?!code|next)/g, ' '), whole)
  const colored = await runCli(daemon.home, ['thing', 'list'], { tty: true, columns: 60 })
  assert.match(colored.stderr, `\x1b[31merror:\x1b[0m there`)
  assert.match(colored.stderr, `  \x1b[2mnext:\x1b[0m svc thing list`)
  assert.is(colored.stderr.split('\n').length, lines.length + 1)
})

const NO_TERMINAL = 0

/** The lines that `print` prints on a terminal of 40 columns, or in a pipe. */
function linesOf(print: (out: Output) => void, columns: number = 40, env = { NO_COLOR: '1' }): string[] {
  let text = ''
  const write = (some: string) => {
    text += some
  }
  const stdout = { isTTY: columns !== NO_TERMINAL, columns, write }
  print(new Output({ stdout, stderr: stdout, env }, 'human'))
  return text.trimEnd().split('\n')
}

test('sentences wrap on a terminal, commands in them and prepared lines do not', () => {
  const sentence = 'created pp; it sends nothing yet: svc notifications preset update pp --targets acme'
  assert.equal(
    linesOf(out => out.line(sentence)),
    ['created pp; it sends nothing yet:', '  svc notifications preset update pp --targets acme'],
  )
  assert.equal(
    linesOf(out => out.line('a thing that is new; to see it (svc thing show "a, b" --all), and one more')),
    ['a thing that is new; to see it', '  (svc thing show "a, b" --all), and one', '  more'],
  )
  const hash = 'f'.repeat(64)
  assert.equal(
    linesOf(out => out.line(`keep this hash: ${hash}`)),
    ['keep this hash:', `  ${hash}`],
  )
  assert.equal(
    linesOf(out => out.line('12:30:00  a text with a label that is longer than the terminal')),
    ['12:30:00  a text with a label that is', '          longer than the terminal'],
  )
  assert.equal(
    linesOf(out => out.line('  1  a choice with a number that is longer than the terminal')),
    ['  1  a choice with a number that is', '     longer than the terminal'],
  )
  const prepared = ['  npm install a-package', '  const a', '+ const added = 1', '{"a": 1}']
  for (const line of prepared.map(start => `${start} and this is much longer than the terminal`))
    assert.equal(
      linesOf(out => out.line(line)),
      [line],
    )
  assert.equal(
    linesOf(out => out.line(sentence), NO_TERMINAL),
    [sentence],
  )
  const colored = { FORCE_COLOR: '1' } as unknown as { NO_COLOR: string }
  const [first = '', second = ''] = linesOf(
    out => out.line(out.color('dim', 'a dim text that is a little longer than the terminal')),
    40,
    colored,
  )
  assert.is(first, '\x1b[2ma dim text that is a little longer')
  assert.is(second, '  than the terminal\x1b[0m')
})

test('a value of a record wraps below its start; a command, a path and a hash stay whole', () => {
  const fields = ['name', 'note', 'text', 'command', 'hash'].map(path => ({ path, header: path }))
  const item = {
    name: 'n',
    note: 'a note that is longer than what is left of the line',
    text: 'a\ntext of several lines, with one that is long',
    command: 'node /some/where/main.js --with many --options',
    hash: 'f'.repeat(64),
  }
  assert.equal(renderFields(item, fields, { width: 40, now: 0 }), [
    'name     n',
    'note     a note that is longer than what',
    '         is left of the line',
    'text',
    '  a',
    '  text of several lines, with one that',
    '  is long',
    `command  ${item.command}`,
    `hash     ${item.hash}`,
  ])
})

test('a long word of a record stays next to its colored name', () => {
  const fields = ['name', 'a-hash'].map(path => ({ path, header: path }))
  const item = { name: 'n', 'a-hash': 'f'.repeat(64) }
  const colored = { FORCE_COLOR: '1' } as unknown as { NO_COLOR: string }
  assert.equal(
    linesOf(out => out.fields(item, fields), 40, colored),
    ['\x1b[1mname  \x1b[0m  n', `\x1b[1ma-hash\x1b[0m  ${item['a-hash']}`],
  )
})

test('the text of an empty table wraps like the table', () => {
  const shown = (columns: number) =>
    linesOf(out => out.table([], [], 'no things yet; make one: svc thing add'), columns)
  assert.equal(shown(30), ['no things yet; make one:', '  svc thing add'])
  assert.equal(shown(NO_TERMINAL), ['no things yet; make one: svc thing add'])
})

test('an error of the command line has the form of one of the daemon', async ({ daemon }) => {
  await daemon.stop()
  const { stdout } = await runCli(daemon.home, ['thing', 'list', '--json'])
  const body = JSON.parse(stdout)
  assert.equal(Object.keys(body), ['error', 'code', 'details'])
  assert.equal(body.details, { next: 'svc daemon start' })
})

test('a table that is too wide cuts no id or status and leaves no column empty', () => {
  const columns = [
    { header: 'Level', path: 'level' },
    { header: 'Item', path: 'item' },
    { header: 'Since', path: 'since' },
    { header: 'What', path: 'what', below: true },
    { header: 'Try', path: 'next', below: true },
  ] as const
  const rows = [
    {
      level: 'warning',
      item: 'runtime.things',
      what: 'none of them is there, so nothing starts',
      next: 'svc thing add',
    },
    { level: 'info', item: 'store', what: 'all is well' },
  ]
  assert.equal(renderTable(rows, columns, { width: 40, now: 0 }), [
    'LEVEL    ITEM',
    'warning  runtime.things',
    '    none of them is there, so nothing',
    '    starts',
    '    try: svc thing add',
    'info     store           all is well',
  ])
  assert.equal(
    renderTable(rows, columns, { width: 120, now: 0 })[2],
    'info     store           -      all is well                               -',
  )
  const [, hostile = ''] = renderTable([{ what: 'w'.repeat(1_000_000) }], [{ header: 'a', path: 'a' }, ...columns], {
    width: 40,
    now: 0,
  })
  assert.ok(hostile.length < 2000)
})

test('one very long cell does not widen every other row', () => {
  const columns = [
    { header: 'a', path: 'a' },
    { header: 'b', path: 'b' },
  ]
  const rows = [
    { a: 'x'.repeat(1_000_000), b: 'end' },
    { a: 'short', b: 'end' },
  ]
  const lines = renderTable(rows, columns, { width: Number.POSITIVE_INFINITY, now: 0 })
  for (const line of lines) assert.ok(line.length < 1100, String(line.length))
  assert.match(lines[1] as string, /x… {2}end$/)
})

const WIDTHS = {
  漢字: 4,
  Zoë: 3,
  'Zoe\u0308': 3,
  '👨‍👩‍👧‍👦': 2,
  '🇩🇪': 2,
  '👍🏽': 2,
  '❤️': 2,
  한국: 4,
  '\u1112\u1161\u11ab': 2,
  ﾊﾝ: 2,
  'a\u200bb': 2,
}
for (const [text, width] of Object.entries(WIDTHS))
  test(`the text ${text} takes ${width} columns (${text.length} units)`, () => assert.is(textWidth(text), width))

test('columns align with characters of any width', () => {
  assert.is(cutText('👨‍👩‍👧‍👦👨‍👩‍👧‍👦', 3), '👨‍👩‍👧‍👦…')
  assert.is(cutText('e\u0301e\u0301e\u0301', 2), 'e\u0301…')
  const names = Object.keys(WIDTHS).filter(name => !name.includes('\u200b'))
  const rows = names.map(name => ({ name, end: 'end' }))
  const lines = renderTable(
    rows,
    [
      { header: 'name', path: 'name' },
      { header: 'end', path: 'end' },
    ],
    { width: 40, now: 0 },
  )
  for (const line of lines.slice(1)) assert.is(textWidth(line.slice(0, line.indexOf('end'))), 6, line)
})

test('a one-column list wraps between entries, and is one line without a width', () => {
  const thing = { id: 'one', tools: ['service__alpha', 'service__beta', `service__${'g'.repeat(40)}`, 'd'] }
  const fields = [
    { header: 'Thing', path: 'id' },
    { header: 'Tools', path: 'tools', as: 'list' as const },
  ]
  assert.equal(renderFields(thing, fields, { width: 40, now: 0 }), [
    'Thing  one',
    'Tools  service__alpha, service__beta,',
    `       service__${'g'.repeat(40)},`,
    '       d',
  ])
  const [, whole] = renderFields(thing, fields, { width: Number.POSITIVE_INFINITY, now: 0 })
  assert.is(whole, `Tools  ${thing.tools.join(', ')}`)
})

test('a partial list says so outside of the rows', async ({ daemon }) => {
  daemon.reply('GET /api/things', 200, {
    things: [thing],
    page: { has_more: true, limit: 1, total: 12, next_cursor: 'c' },
  })
  const part = await runCli(daemon.home, ['thing', 'list'])
  assert.is(part.stderr, 'note: 1 of 12 shown; next page: --limit <more>\n')
  assert.is(part.stdout.trimEnd().split('\n').length, 2)
  for (const option of ['--json', '--quiet'])
    assert.is((await runCli(daemon.home, ['thing', 'list', option])).stderr, '', option)
  // A total that leaves out what is in the archive.
  daemon.reply('GET /api/things', 200, {
    things: [thing],
    page: { has_more: true, limit: 1, total: 0, next_cursor: 'c' },
  })
  const archived = await runCli(daemon.home, ['thing', 'list'])
  assert.is(archived.stderr, 'note: 1 shown, more follow; next page: --limit <more>\n')
  // As `Paging.cut` gives it to the routes of an extension.
  daemon.reply('GET /api/things', 200, { things: [thing], has_more: true, next_cursor: 'c' })
  assert.is(
    (await runCli(daemon.home, ['thing', 'list'])).stderr,
    'note: 1 shown, more follow; next page: --limit <more>\n',
  )
  daemon.reply('GET /api/things', 200, { things: [thing], page: { has_more: false, limit: 1, total: 1 } })
  assert.is((await runCli(daemon.home, ['thing', 'list'])).stderr, '')
})

test('colours follow the environment, only in text for people', async ({ daemon }) => {
  daemon.reply('GET /api/things', 200, { things: [thing] })
  const colored = async (options: RunOptions, ...argv: string[]) => {
    const { stdout, stderr } = await runCli(daemon.home, ['thing', ...argv], options)
    return (stdout + stderr).includes('\x1b')
  }
  assert.is(await colored({ env: { FORCE_COLOR: '1' } }, 'list'), true)
  assert.is(await colored({ env: { FORCE_COLOR: '0' }, tty: true }, 'list'), false)
  assert.is(await colored({ env: { FORCE_COLOR: '1', NO_COLOR: '1' }, tty: true }, 'list'), false)
  assert.is(await colored({ env: { FORCE_COLOR: '1' } }, 'list', '--json'), false)
  assert.is(await colored({ env: { FORCE_COLOR: '1' } }, 'remove', 'nope'), true)
  assert.is(await colored({}, 'remove', 'nope'), false)
})

test('no output form passes control sequences to the terminal; only toon and text alter the value', async ({
  daemon,
}) => {
  const hostile = 'a\x1b[2Jb\x9b2Jc\u202ed\x7fe\rf\x07'
  daemon.reply('GET /api/things', 200, { things: [{ ...thing, note: hostile }] })
  daemon.reply('DELETE /api/things/t', 404, {
    error: hostile,
    code: hostile,
    details: { [hostile]: hostile, next: hostile },
  })
  for (const mode of ['human', 'json', 'jsonl', 'toon']) {
    for (const argv of [
      ['thing', 'list'],
      ['thing', 'remove', 't'],
    ]) {
      const { stdout, stderr } = await runCli(daemon.home, [...argv, '-o', mode])
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
      assert.not.match(stdout + stderr, /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]/, `${argv} ${mode}`)
    }
  }
  const { stdout } = await runCli(daemon.home, ['thing', 'list', '--json'])
  assert.is(JSON.parse(stdout).things[0].note, hostile)
})

test('quiet prints only ids in every form', async ({ daemon }) => {
  daemon.reply('GET /api/things', 200, { things: [] })
  assert.equal(await runCli(daemon.home, ['thing', 'list', '--quiet']), { code: 0, stdout: '', stderr: '' })
})

test.run()
