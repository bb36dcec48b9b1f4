import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { FakeDaemon, runCli } from './fake-daemon.js'

const test = suite<{ daemon: FakeDaemon }>('faults')
test.before.each(async context => {
  context.daemon = await FakeDaemon.start()
})
test.after.each(({ daemon }) => daemon.remove())

const probe = { everyMs: 30, withinMs: 60 }

test('an unresponsive daemon is reported with exit code 3, as text and as a body', async ({ daemon }) => {
  daemon.answer('GET /api/things', () => {}).answer('GET /api/status/identity', () => {})
  const { code, stdout, stderr } = await runCli(daemon.home, ['thing', 'list'], { probe })
  assert.is(code, 3)
  assert.is(stdout, '')
  assert.match(
    stderr,
    /^error: the daemon takes connections on .*daemon\.sock and has not answered for \d+ s; it is unresponsive\n/,
  )
  assert.match(stderr, 'code: daemon_unresponsive\n  next: svc daemon stop\n')
  const json = await runCli(daemon.home, ['thing', 'list', '--json'], { probe })
  assert.equal([json.code, JSON.parse(json.stdout).code, json.stderr], [3, 'daemon_unresponsive', ''])
})

test('a command whose route is gone names the list of plugins', async ({ daemon }) => {
  const { code, stderr } = await runCli(daemon.home, ['thing', 'list'])
  assert.is(code, 4)
  assert.is(stderr, 'error: no route GET /api/things\n  code: route_not_found\n  next: svc plugin list\n')
})

test('a request has no time limit while the daemon is responsive', async ({ daemon }) => {
  daemon.answer('GET /api/things', response => {
    setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{"things":[]}'), 400)
  })
  // It answers that it lives, however long a loaded machine takes over that.
  const patient = { everyMs: 30, withinMs: 5000 }
  const { code, stdout } = await runCli(daemon.home, ['thing', 'list'], { probe: patient })
  assert.equal([code, stdout], [0, 'no things yet\n'])
})

test('a stream of a daemon that is unresponsive before the first event fails with exit code 3', async ({ daemon }) => {
  daemon.reply('GET /api/things/t1/owner', 200, { owner: { place_id: 'plc_1' } })
  daemon.answer('GET /api/places/plc_1/things/t1/stream', () => {}).answer('GET /api/status/identity', () => {})
  const { code, stderr } = await runCli(daemon.home, ['thing', 'parts', 'list', 't1', '--follow'], { probe })
  assert.is(code, 3, stderr)
})

test('a peer that speaks no HTTP and a truncated reply are reported as such', async ({ daemon }) => {
  const { home } = daemon
  await daemon.stop()
  const answers: readonly (readonly [string, number, string])[] = [
    ['SSH-2.0-OpenSSH_9.2\r\n', 3, 'socket_foreign'],
    ['', 1, 'connection'],
    ['HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"things":', 1, 'connection'],
    ['HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 3\r\n\r\n{"t', 1, 'protocol'],
  ]
  for (const [text, code, name] of answers) {
    const server = await listen(join(home, 'daemon.sock'), text)
    const ran = await runCli(home, ['thing', 'list'])
    await new Promise(resolve => server.close(resolve))
    assert.is(ran.code, code, ran.stderr)
    assert.match(ran.stderr, `code: ${name}\n`)
    if (name === 'connection')
      assert.match(ran.stderr, /; the request may or may not have taken effect\n.*\n {2}next: svc status\n$/)
    assert.not.match(ran.stderr, /\n +at /)
  }
})

test('a daemon that exits before its reply and a lost connection have different errors', async ({ daemon }) => {
  const { home } = daemon
  await daemon.stop()
  const server = createServer(socket => {
    socket.on('error', () => {}).once('data', () => server.close(() => {}) && socket.destroy())
  })
  await new Promise<void>(resolve => server.listen(join(home, 'daemon.sock'), resolve))
  const { code, stderr } = await runCli(home, ['thing', 'list'])
  assert.is(code, 3, stderr)
  assert.match(stderr, 'ended before it answered')
  assert.match(stderr, /code: daemon_ended\n( {2}.*\n)* {2}next: svc daemon start\n/)
})

test('a daemon that is being killed has ended, although its socket still takes connections', async ({ daemon }) => {
  await daemon.stop()
  const sockets: Socket[] = []
  const server = createServer(socket => {
    sockets.push(socket.on('error', () => {}))
    socket.once('data', () => socket.destroy())
    if (sockets.length > 1) setTimeout(() => server.close(() => {}) && sockets.map(one => one.destroy()), 30)
  })
  await new Promise<void>(resolve => server.listen(join(daemon.home, 'daemon.sock'), resolve))
  const { code, stderr } = await runCli(daemon.home, ['thing', 'list'])
  assert.is(code, 3, stderr)
  assert.match(stderr, 'code: daemon_ended\n')
})

function listen(path: string, text: string): Promise<Server> {
  const server = createServer(socket => {
    socket.on('error', () => {}).once('data', () => socket.end(text))
  })
  return new Promise(resolve => server.listen(path, () => resolve(server)))
}

test('the version warning is printed once, on standard error, in every output form', async ({ daemon }) => {
  daemon.version = '9.9.9\x1b[2J'
  daemon.reply('GET /api/things/t1/owner', 200, { owner: { place_id: 'plc_1' } })
  daemon.reply('GET /api/places/plc_1/things/t1/parts', 200, { parts: [] })
  for (const options of [[], ['--json']]) {
    const { code, stdout, stderr } = await runCli(daemon.home, ['thing', 'parts', 'list', 't1', ...options])
    assert.is(code, 0)
    assert.not.match(stdout, '9.9.9')
    assert.is(
      stderr,
      'note: the daemon is version 9.9.9, but this command line is 1.2.3; restart the daemon: svc daemon restart\n',
    )
  }
  daemon.version = '1.2.3'
  assert.is((await runCli(daemon.home, ['thing', 'parts', 'list', 't1'])).stderr, '')
})

test('Ctrl-C during a slow request exits with 130 and prints nothing', async ({ daemon }) => {
  const controller = new AbortController()
  daemon.answer('GET /api/things', () => controller.abort())
  const ran = await runCli(daemon.home, ['thing', 'list'], { signal: controller.signal })
  assert.equal(ran, { code: 130, stdout: '', stderr: '' })
})

test('a wait of over a second is shown on a terminal, only on standard error, and erased', async ({ daemon }) => {
  daemon.answer('GET /api/things', response => {
    setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{"things":[]}'), 1300)
  })
  const [terminal, pipe, json] = await Promise.all([
    runCli(daemon.home, ['thing', 'list'], { tty: true, columns: 20, env: { NO_COLOR: '1' } }),
    runCli(daemon.home, ['thing', 'list']),
    runCli(daemon.home, ['thing', 'list', '--json'], { tty: true }),
  ])
  assert.is(terminal.stdout, 'no things yet\n')
  const drawn = terminal.stderr.split('\r\x1b[K')
  assert.match(drawn[1] as string, /^. waiting for the d/)
  assert.ok(drawn.every(text => text.length < 20))
  assert.is(drawn.at(-1), '')
  assert.is(pipe.stderr + json.stderr, '')
})

test.run()
