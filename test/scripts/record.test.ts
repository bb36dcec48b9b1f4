import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { TerminalScreen } from '../../scripts/record/screen.js'
import { svgOf } from '../../scripts/record/svg.js'

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')
const textOf = (screen: TerminalScreen) => screen.shown.map(line => line.map(({ char }) => char).join(''))
const esc = String.fromCharCode(27)

test('a screen shows the result of erased and rewritten lines', () => {
  const screen = new TerminalScreen(10, 3)
  screen.write(`one\r\n> typed${esc}[1G${esc}[0J`)
  assert.equal(textOf(screen), ['one', ''])
  screen.write(`two\r\nthree${esc}[1A\r${esc}[J`)
  assert.equal(textOf(screen), ['one', ''])
  screen.write('0123456789ab\r\nx\r\ny')
  assert.equal(textOf(screen), ['ab', 'x', 'y'])
  screen.write(`${esc}[31mz${esc}[0m`)
  assert.equal(screen.shown.at(-1), [
    { char: 'y', style: '' },
    { char: 'z', style: '31' },
  ])
})

test('a recording is one file without scripts, fonts or addresses, with each line once', () => {
  const lines = [[...'<a>'].map(char => ({ char, style: '' }))]
  const svg = svgOf(
    [
      { lines, ms: 100 },
      { lines: [...lines, ...lines], ms: 100 },
    ],
    80,
    24,
    'svc run',
  )
  assert.is(svg.split('<text id=').length - 1, 1)
  assert.is(svg.split('<use ').length - 1, 3)
  assert.match(svg, '&lt;a&gt;')
})

test('the board picture in README has a running, a waiting and a blocked task', () => {
  assert.match(read('README.md'), '](docs/board.svg)')
  const text = read('docs/board.svg').replace(/<[^>]*>/g, '')
  for (const shown of ['$ svc task board', 'running', 'queued', 'waiting for', 'blocked']) assert.match(text, shown)
})

test('the recording in README shows a whole `svc run` at 80 columns', () => {
  assert.match(read('README.md'), '](docs/run.svg)')
  const svg = read('docs/run.svg')
  assert.not.match(svg.replace('http://www.w3.org/2000/svg', ''), /https?:|<script|@font-face|@import/)
  const lines = [...svg.matchAll(/<text id="\w+"[^>]*>(.*)<\/text>/g)].map(([, text = '']) =>
    text.replace(/<[^>]*>/g, ''),
  )
  for (const shown of [
    '$ svc run --agent report',
    'started the daemon',
    'Allow?',
    '1 file changed:',
    'Continue: svc session',
  ])
    assert.ok(
      lines.some(line => line.includes(shown)),
      shown,
    )
})

test.run()
