import type { ServerResponse } from 'node:http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SseParser } from '../../client/sse.js'
import { FakeDaemon, runCli } from './fake-daemon.js'

const text =
  ': hello\r\n\r\nid: 1\nevent: note\ndata: {"a":\ndata: 1}\n\ndata: plain text\n\nevent: only\n\nid: 2\n\nretry: 5\ndata:{"b":"ü"}\n\n'
const events = [{ id: '1', event: 'note', data: { a: 1 } }, { data: 'plain text' }, { data: { b: 'ü' } }]

test('events are the same however the text is split into chunks', () => {
  for (const newline of ['\n', '\r\n']) {
    const whole = text.replaceAll(/\r?\n/g, newline)
    for (let size = 1; size < whole.length; size++) {
      const parser = new SseParser()
      const found: unknown[] = []
      for (let at = 0; at < whole.length; at += size) found.push(...parser.push(whole.slice(at, at + size)))
      assert.equal(found, events, `${JSON.stringify(newline)} in pieces of ${size}`)
    }
  }
})

test('a frame without end is refused', () => {
  const parser = new SseParser()
  const piece = 'x'.repeat(8 * 1024 * 1024)
  assert.throws(() => {
    parser.push('data: ')
    for (let pieces = 0; pieces < 9; pieces++) parser.push(piece)
  }, /a frame of the stream is too long/)
})

const streamRoute = 'GET /api/places/plc_1/things/t1/stream'

async function withStream(
  answer: (response: ServerResponse, lastEventId: string | undefined, daemon: FakeDaemon) => void,
) {
  const daemon = await FakeDaemon.start()
  daemon.reply('GET /api/things/t1/owner', 200, { owner: { place_id: 'plc_1' } })
  daemon.answer(streamRoute, (response, { headers }) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    answer(response, headers['last-event-id'] as string | undefined, daemon)
  })
  return daemon
}

const frame = (n: number) => `id: ${n}\nevent: part\ndata: ${JSON.stringify({ sequence: n, text: `part ${n}` })}\n\n`

test('a cut stream resumes after the last id, without gap or repetition', async () => {
  const daemon = await withStream((response, lastEventId) => {
    const from = Number(lastEventId ?? 0)
    if (from === 0) {
      response.write(frame(1) + frame(2) + frame(3).slice(0, 20))
      setTimeout(() => response.destroy(), 20)
    } else if (from === 2) response.end(`${frame(3)}event: closing\ndata: {}\n\n`)
    else response.end(frame(4))
  })
  try {
    const ran = await runCli(daemon.home, ['thing', 'parts', 'list', 't1', '--follow', '-o', 'jsonl'])
    assert.is(ran.code, 0)
    assert.equal(
      ran.stdout
        .trim()
        .split('\n')
        .map(line => JSON.parse(line).sequence),
      [1, 2, 3, 4],
    )
    const requests = daemon.asked.filter(({ url }) => url.includes('/stream'))
    assert.equal(
      requests.map(({ headers }) => headers['last-event-id']),
      [undefined, '2', '3'],
    )
    assert.ok(requests.every(({ url }) => url.endsWith('?frames=raw')))
  } finally {
    await daemon.remove()
  }
})

test('a stream survives a restart of the daemon', async () => {
  const daemon = await withStream((response, lastEventId) => {
    if (lastEventId === undefined) {
      response.write(frame(1))
      setTimeout(() => daemon.stop(), 20)
    } else response.end(frame(2))
  })
  let isBack = false
  try {
    const ran = await runCli(daemon.home, ['thing', 'parts', 'list', 't1', '--follow'], {
      onOutput: text => {
        if (isBack || !text.includes('waiting for the daemon')) return
        isBack = true
        void daemon.listen()
      },
    })
    assert.is(ran.code, 0)
    assert.is(ran.stdout, '1  part 1\n2  part 2\n')
    assert.match(ran.stderr, 'waiting for the daemon')
  } finally {
    await daemon.remove()
  }
})

test('an error frame ends the command with its code', async () => {
  const daemon = await withStream(response => {
    response.end(`${frame(1)}event: error\ndata: {"error":"the journal is damaged","code":"journal_damaged"}\n\n`)
  })
  try {
    const ran = await runCli(daemon.home, ['thing', 'parts', 'list', 't1', '--follow'])
    assert.is(ran.code, 1)
    assert.is(ran.stderr, 'error: the journal is damaged\n  code: journal_damaged\n')
  } finally {
    await daemon.remove()
  }
})

test('Ctrl-C ends a stream with 130', async () => {
  const daemon = await withStream(response => response.write(frame(1)))
  const controller = new AbortController()
  try {
    const ran = await runCli(daemon.home, ['thing', 'parts', 'list', 't1', '--follow'], {
      signal: controller.signal,
      onOutput: () => controller.abort(),
    })
    assert.is(ran.code, 130)
    assert.is(ran.stdout, '1  part 1\n')
    assert.is(ran.stderr, '')
  } finally {
    await daemon.remove()
  }
})

test.run()
