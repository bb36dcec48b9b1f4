import { PassThrough } from 'node:stream'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type EditOptions, Screen } from '../../cli/show/screen.js'
import { eventually } from '../fixtures/session-world.js'

/** A screen that somebody types on. */
function open(options: Partial<EditOptions> = {}) {
  const input = new PassThrough()
  const output = Object.assign(new PassThrough(), { columns: 80 })
  let shown = ''
  output.setEncoding('utf8').on('data', text => {
    shown += text
  })
  const taken: (string | undefined)[] = []
  const echoed: string[] = []
  const screen = new Screen(input, output, () => {})
  const close = screen.edit({
    prompt: '> ',
    take: (text, line) => {
      taken.push(text)
      echoed.push(line)
    },
    ...options,
  })
  const type = (text: string) => void input.write(text)
  const takes = (count = 1) => eventually(async () => taken.length >= count && taken, `${count} texts`)
  return { screen, type, taken, takes, echoed, close, shown: () => shown }
}

const pasted = (text: string) => `\x1b[200~${text}\x1b[201~`

test('a paste of several lines is one text, submitted only by Enter', async () => {
  const { type, takes, close } = open()
  type(`see: ${pasted('one\rtwo\r\nthree\x1b[31m!')}`)
  type('\r')
  assert.equal(await takes(), ['see: one\ntwo\nthree!'])
  close()
})

test('a long paste is shown by its size and kept whole in the text', async () => {
  const { type, takes, echoed, close } = open()
  const trace = Array.from({ length: 40 }, (_, at) => `at line ${at}`).join('\n')
  type(`why? ${pasted(trace)}\r`)
  assert.equal(await takes(), [`why? ${trace}`])
  assert.equal(echoed, ['why? [pasted 40 lines #1]'])
  close()
})

test('Alt-Enter, Ctrl-J and a backslash before Enter start a new line', async () => {
  const { type, takes, close } = open()
  type('a\x1b\r')
  await new Promise(resolve => setTimeout(resolve, 300))
  type('b\nc\\\rd\r')
  assert.equal(await takes(), ['a\nb\nc\nd'])
  close()
})

test('the arrow keys bring back earlier texts, also of several lines, that begin with what is typed', async () => {
  const { type, taken, takes, close } = open({ history: ['older', 'oldest'] })
  type('one\x1b\r')
  await new Promise(resolve => setTimeout(resolve, 300))
  type('two\r')
  type('three\r')
  type('one\x1b[A\r')
  type('\x1b[A\x1b[A\x1b[A\r')
  type('o\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[B\r')
  type('\x10\x10\x0e\x0e\x0enew\r')
  type('   \r')
  await takes(7)
  assert.equal(taken, ['one\ntwo', 'three', 'one\ntwo', 'older', 'one\ntwo', 'new', '   '])
  close()
})

test('a text of several lines is drawn without marks when its middle changes', async () => {
  const { type, takes, close, shown } = open()
  type(pasted('ab\ncd'))
  type('\x1b[D\x1b[D\x1b[D\x1b[DX')
  await eventually(async () => shown().includes('aXb'), 'the inserted letter')
  type('\x05Y\r')
  assert.equal(await takes(), ['aXb\ncdY'])
  assert.not.match(shown(), '| ')
  close()
})

test('a line typed before the screen started is submitted', async () => {
  const { type, takes, close } = open()
  type('typed ahead\n')
  assert.equal(await takes(), ['typed ahead'])
  close()
})

test('bracketed paste is on only while a line is typed', () => {
  const { close, shown } = open()
  close()
  assert.ok(shown().indexOf('\x1b[?2004h') < shown().indexOf('\x1b[?2004l'))
  assert.ok(shown().includes('\x1b[?2004l'))
})

test('typed text is set aside during a question and restored after it', async () => {
  let isAsking = false
  const keys: string[] = []
  const key = (name: string) => {
    if (!isAsking) return 'edit' as const
    keys.push(name)
    return name === 'y' ? ('taken' as const) : ('aside' as const)
  }
  const { screen, type, takes, close, shown } = open({ key })
  type('half')
  await eventually(async () => shown().includes('half'), 'what was typed')
  isAsking = true
  screen.ask('Allow? ', { aside: true })
  assert.ok(screen.isTyping)
  type('! y')
  await eventually(async () => keys.includes('y'), 'the answer')
  isAsking = false
  screen.ask('> ')
  type(' more\r')
  assert.equal(await takes(), ['half!  more'])
  close()
})

test('Tab inserts the completion at the cursor', async () => {
  const requests: string[] = []
  const complete = async (before: string) => {
    requests.push(before)
    return before === 'see @ma' ? 'see @src/main.ts ' : undefined
  }
  const { type, takes, close, shown } = open({ complete })
  type('see @ma\t')
  await eventually(async () => shown().includes('src/main.ts'), 'the file')
  type('now\t\r')
  assert.equal(await takes(), ['see @src/main.ts now'])
  assert.equal(requests, ['see @ma', 'see @src/main.ts now'])
  close()
})

test('an editor opens the text with its pastes; output during editing is shown afterwards', async () => {
  let open_: (text: string | undefined) => void = () => {}
  let given: string | undefined
  const compose = (text: string) => {
    given = text
    return new Promise<string | undefined>(resolve => {
      open_ = resolve
    })
  }
  const { screen, type, takes, close, shown } = open({ compose })
  type(`a ${pasted('1\r2\r3\r4\r5\r6\r7\r8\r9')}\x07`)
  await eventually(async () => given !== undefined, 'the editor')
  assert.is(given, 'a 1\n2\n3\n4\n5\n6\n7\n8\n9')
  const before = shown()
  screen.write('of the stream\n')
  assert.is(shown(), before)
  open_('b\nc')
  await eventually(async () => shown().includes('of the stream'), 'the stream')
  type('\r')
  assert.equal(await takes(), ['b\nc'])
  close()
})

test('progress lines take one row each, are sanitized and are removed', () => {
  const { screen, shown, close } = open()
  screen.live([`\x1b]0;evil\x07${'x'.repeat(200)}`])
  const from = shown().length
  screen.live([])
  assert.not.match(shown(), 'evil')
  assert.ok(!shown().includes('x'.repeat(80)))
  assert.ok(shown().includes('x'.repeat(78)))
  assert.ok(shown().slice(from).includes('\x1b[J'))
  close()
})

test.run()
