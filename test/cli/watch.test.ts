import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { exitCodes } from '../../cli/fault.js'
import { FakeDaemon, runCli } from './fake-daemon.js'

const test = suite<{ daemon: FakeDaemon }>('watch')
test.before.each(async context => {
  context.daemon = await FakeDaemon.start()
})
test.after.each(({ daemon }) => daemon.remove())

/** Answers that change at the third look; `looks` counts them. */
function changing(daemon: FakeDaemon, many = 1) {
  const looks = { count: 0 }
  daemon.answer('GET /api/things', response => {
    const state = ++looks.count < 3 ? 'open' : 'closed'
    const things = Array.from({ length: many }, (_, at) => ({ id: `thing-${at}`, state }))
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ things }))
  })
  return looks
}

/** Watches until the output has this, and interrupts then. */
async function watched(daemon: FakeDaemon, until: string, options: object = {}, ...more: readonly string[]) {
  const controller = new AbortController()
  let all = ''
  const onOutput = (text: string) => {
    all += text
    if (all.includes(until)) controller.abort()
  }
  return runCli(daemon.home, ['thing', 'list', '--watch', ...more], { onOutput, signal: controller.signal, ...options })
}

test('a program gets a line for each changed reply', async ({ daemon }) => {
  const looks = changing(daemon)
  const { code, stdout } = await watched(daemon, 'closed', {}, '-o', 'jsonl')
  assert.is(code, exitCodes.interrupted)
  assert.equal(stdout, '[{"id":"thing-0","state":"open"}]\n[{"id":"thing-0","state":"closed"}]\n'.replace(/[[\]]/g, ''))
  assert.is(looks.count, 3)
})

test('a reply replaces the previous one on a terminal, as far as it fits', async ({ daemon }) => {
  changing(daemon, 100)
  const { code, stdout } = await watched(daemon, 'closed', {
    tty: true,
    columns: 60,
    env: { TERM: 'xterm', NO_COLOR: '1' },
  })
  assert.is(code, exitCodes.interrupted)
  const frames = stdout.split('\x1b[H').slice(2)
  assert.is(frames.length, 3)
  for (const frame of frames) {
    assert.ok(frame.endsWith('\x1b[J'))
    const lines = frame.split('\n').map(line => line.replaceAll('\x1b[K', ''))
    assert.is(lines.length, 24)
    assert.match(lines[0] ?? '', /^ID +STATE/i)
    assert.is(lines[22], '…')
  }
})

test('commands that act once or follow a stream are not watched', async ({ daemon }) => {
  for (const words of ['thing remove x', 'thing make', 'thing parts list x', 'thing text x']) {
    const { code, stderr } = await runCli(daemon.home, [...words.split(' '), '--watch'])
    assert.is(code, exitCodes.usage, words)
    assert.match(stderr, /unknown option --watch/)
  }
})

test('the end of a daemon is reported', async ({ daemon }) => {
  changing(daemon)
  const ended = runCli(daemon.home, ['thing', 'list', '--watch'], { onOutput: () => void daemon.stop() })
  const { code, stderr } = await ended
  assert.is(code, exitCodes.noDaemon, stderr)
})

test.run()
