import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { LIMITS, Listener } from '../../../kernel/http/listeners.js'
import { ask, DOORS, type Doors, openDoors, parseReply, pause, send } from './doors.js'
import { faults } from './fault-plugin.js'

const test = suite<{ doors: Doors }>('hostile')
test.before(async context => {
  context.doors = await openDoors([faults])
})
test.after(({ doors }) => doors.close())

const GET = 'GET /api/faults/a HTTP/1.1'
const PUT = 'PUT /api/faults/a HTTP/1.1'
const JSON_HEAD = 'content-type: application/json'
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

/** Lines of a head and a body; the status and code that both doors answer with. `HOST` is replaced by a good one. */
const CASES: readonly (readonly [what: string, head: readonly string[], body: string, status: number, code: string])[] =
  [
    ['a line of another protocol', ['hello'], '', 400, 'invalid_request'],
    ['TLS', ['\x16\x03\x01\x02\x00\x01\x00'], '', 400, 'invalid_request'],
    ['an unknown method', ['BREW /api/faults/a HTTP/1.1', 'HOST'], '', 400, 'invalid_request'],
    ['another version', ['GET /api/faults/a HTTP/3.7', 'HOST'], '', 400, 'invalid_request'],
    ['an absolute address', ['GET http://evil.example/api/faults/a HTTP/1.1', 'HOST'], '', 400, 'invalid_request'],
    ['an asterisk', ['OPTIONS * HTTP/1.1', 'HOST'], '', 400, 'invalid_request'],
    ['a space in the path', ['GET /api/faults/a b HTTP/1.1', 'HOST'], '', 400, 'invalid_request'],
    ['a NUL in a header', [GET, 'HOST', 'x: a\0b'], '', 400, 'invalid_request'],
    ['a folded header', [GET, 'HOST', 'x: a', ' b'], '', 400, 'invalid_request'],
    ['two lengths', [PUT, 'HOST', JSON_HEAD, 'content-length: 2', 'content-length: 3'], '{}', 400, 'invalid_request'],
    ['an invalid length', [PUT, 'HOST', JSON_HEAD, 'content-length: -1'], '{}', 400, 'invalid_request'],
    [
      'length and chunks at once',
      [PUT, 'HOST', JSON_HEAD, 'content-length: 2', 'transfer-encoding: chunked'],
      chunk('{}'),
      400,
      'invalid_request',
    ],
    ['a broken chunk', [PUT, 'HOST', JSON_HEAD, 'transfer-encoding: chunked'], 'zz\r\n{}', 400, 'invalid_request'],
    [
      'chunks over the limit',
      [PUT, 'HOST', JSON_HEAD, 'transfer-encoding: chunked'],
      chunk('x'.repeat(70_000)),
      413,
      'payload_too_large',
    ],
    [
      'an announced length over the limit',
      [PUT, 'HOST', JSON_HEAD, 'content-length: 99999999999'],
      '',
      413,
      'payload_too_large',
    ],
    ['an endless head', [GET, 'HOST', `x: ${'y'.repeat(20_000)}`], '', 431, 'headers_too_large'],
    [
      'bytes that are not UTF-8',
      [PUT, 'HOST', JSON_HEAD, 'content-length: 11'],
      '{"token":"\xff',
      400,
      'malformed_json',
    ],
  ]

for (const door of DOORS) {
  for (const [what, lines, body, status, code] of CASES)
    test(`${door}: ${status} ${code} for ${what}`, async ({ doors }) => {
      const head = lines.map(line => (line === 'HOST' ? `host: localhost:${doors.port}` : line)).join('\r\n')
      const bytes = Buffer.from(`${head}\r\nconnection: close\r\n\r\n${body}`, 'latin1')
      const reply = parseReply(await send(doors.where[door], bytes))
      assert.equal([reply.status, (reply.body as { code?: string }).code], [status, code], reply.head)
      assert.match(reply.head, 'content-type: application/json')
    })

  test(`${door}: a malformed request is no fault of a plugin`, async ({ doors }) => {
    assert.is((await ask(doors.where[door], '/api/faults/a')).status, 200)
    assert.equal(doors.kernel.host.faults(), [])
  })
}

test('TCP needs exactly one Host header, the socket none', async ({ doors }) => {
  const codeOf = async (door: 'socket' | 'tcp', ...hosts: string[]) => {
    const text = await send(doors.where[door], `${[GET, ...hosts, 'connection: close'].join('\r\n')}\r\n\r\n`)
    const { status, body } = parseReply(text)
    return status === 200 ? 200 : `${status} ${(body as { code: string }).code}`
  }
  const good = `host: localhost:${doors.port}`
  assert.is(await codeOf('tcp', good), 200)
  assert.is(await codeOf('tcp'), '421 misdirected')
  assert.is(await codeOf('tcp', 'host:'), '421 misdirected')
  assert.is(await codeOf('tcp', good, 'host: evil.example'), '400 invalid_request')
  assert.is(await codeOf('tcp', good, good), '400 invalid_request')
  assert.is(await codeOf('socket'), 200)
})

test('the body of a refused request is not read as another request', async ({ doors }) => {
  const inner = `${GET}\r\nhost: localhost:${doors.port}\r\n\r\n`
  const head = [PUT, `host: localhost:${doors.port}`, 'content-type: text/plain', `content-length: ${inner.length}`]
  const text = await send(doors.where.tcp, `${head.join('\r\n')}\r\nconnection: close\r\n\r\n${inner}`)
  assert.equal(text.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 415'])
})

test('garbage after a request does not enter the middle of its reply', async ({ doors }) => {
  const text = await send(doors.where.socket, `${GET}\r\nhost: x\r\n\r\nrubbish\r\n\r\n`)
  assert.match(text, /^HTTP\/1\.1 (200|400)/)
  for (const reply of text.split(/(?=HTTP\/1\.1 )/)) {
    const { body } = parseReply(reply)
    assert.type(body, 'object', reply)
  }
})

/** A head with `count` header fields in all, the last of which says that the request comes from another site. */
const manyFields = (first: string, host: string, count: number, ...more: string[]) => {
  const lines = [first, host, 'connection: close', ...more]
  while (lines.length < count) lines.push('a:')
  return `${[...lines, 'origin: http://evil.example'].join('\r\n')}\r\n\r\n`
}
const UPGRADE = [
  'connection: upgrade',
  'upgrade: websocket',
  'sec-websocket-version: 13',
  'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
]

for (const door of DOORS) {
  test(`${door}: a request with too many header fields is refused`, async ({ doors }) => {
    const host = `host: localhost:${doors.port}`
    const crossSite = door === 'tcp' ? '403 cross_site' : '200'
    const answer = async (first: string, count: number, ...more: string[]) => {
      const { status, body } = parseReply(await send(doors.where[door], manyFields(first, host, count, ...more)))
      return status === 200 ? '200' : `${status} ${(body as { code?: string }).code}`
    }
    assert.is(await answer(GET, 200), crossSite)
    for (const count of [201, 217, 999, 1000, 1023, 2100, 3500])
      assert.is(await answer(GET, count), '431 headers_too_large', `${count} fields`)
    for (const count of [201, 1000, 3500]) {
      assert.is(await answer(GET, count, ...UPGRADE), '431 headers_too_large', `a WebSocket with ${count} fields`)
      assert.is(await answer(GET, count, 'upgrade: h2c'), '431 headers_too_large', `an upgrade with ${count} fields`)
    }
  })

  for (const line of [
    'host: HOST',
    'origin: http://HOST',
    'sec-fetch-site: none',
    'content-type: application/json',
    'content-encoding: identity',
    'authorization: Bearer a',
    'sec-websocket-version: 13',
  ])
    test(`${door}: a repeated header field is refused: ${line}`, async ({ doors }) => {
      const [host, field] = ['host: HOST', line].map(text => text.replace('HOST', `localhost:${doors.port}`))
      const lines = [GET, ...(field === host ? [] : [host]), field, field, 'connection: close']
      const { status, body } = parseReply(await send(doors.where[door], `${lines.join('\r\n')}\r\n\r\n`))
      assert.equal([status, (body as { code?: string }).code], [400, 'invalid_request'])
    })

  test(`${door}: a repeated header field of a handshake is refused`, async ({ doors }) => {
    const host = `host: localhost:${doors.port}`
    const own = `http://localhost:${doors.port}`
    const handshake = [GET, host, ...UPGRADE, `origin: ${own}`, `origin: ${own}`, '', ''].join('\r\n')
    assert.is(parseReply(await send(doors.where[door], handshake)).status, 400)
  })
}

test('a slow head or body gets 408 and blocks no other request', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'svc-slow-'))
  const where = { socketPath: path.join(folder, 'slow.sock') }
  const limits = {
    ...LIMITS,
    // Longer than a request takes that is sent at once, on a busy machine too.
    headersTimeout: 1500,
    requestTimeout: 2000,
    connectionsCheckingInterval: 50,
  }
  const listener = await Listener.socket(
    where.socketPath,
    (_door, request, response) => {
      request.resume().on('end', () => response.end('{"ok":true}'))
    },
    limits,
  )
  const dripping = async (head: string) => {
    const socket = net.connect(where.socketPath)
    let text = ''
    socket.on('data', data => {
      text += data
    })
    socket.on('error', () => {})
    socket.write(head)
    const drip = setInterval(() => socket.write('x'), 15)
    await new Promise(resolve => socket.once('close', resolve))
    clearInterval(drip)
    return parseReply(text)
  }
  const slow = Promise.all([
    dripping(`${GET}\r\nx: `),
    dripping(`${PUT}\r\n${JSON_HEAD}\r\nhost: x\r\ncontent-length: 100000\r\n\r\n`),
  ])
  await pause(20)
  assert.equal((await ask(where, '/')).body, { ok: true })
  for (const { status, head, body } of await slow) {
    assert.is(status, 408)
    assert.is((body as { code: string }).code, 'request_timeout')
    assert.match(head, 'content-type: application/json')
  }
  await listener.close(Promise.resolve())
  rmSync(folder, { recursive: true })
})

test.run()
