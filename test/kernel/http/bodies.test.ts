import { createHash } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { describe } from '../../../kernel/kit/annotations/index.js'
import { definePlugin, Fault, noContent, ok, type Plugin, type Route, routeOf } from '../../../kernel/plugin.js'
import { ask, DOORS, type Doors, openDoors, until } from './doors.js'

const MB = 1024 * 1024
const route = routeOf<unknown>(describe('Test'))
const summary = 'Test'

/** What the handlers have seen, told to the tests. */
const seen: string[] = []
let hold: Promise<void> = Promise.resolve()
let produced = 0

const digest = async (source: AsyncIterable<Uint8Array>) => {
  const hash = createHash('sha256')
  let size = 0
  for await (const bytes of source) {
    hash.update(bytes)
    size += bytes.length
  }
  return { size, sha256: hash.digest('hex') }
}

const Digest = v.object({ size: v.number(), sha256: v.string() })
async function* endless(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      produced += 64 * 1024
      yield Buffer.alloc(64 * 1024, 'x')
    }
  } finally {
    seen.push(`the source ended, ${signal.aborted ? 'aborted' : 'not aborted'}`)
  }
}

const routes = [
  route({
    method: 'POST',
    path: '/api/raw',
    summary,
    body: { as: 'raw', types: ['application/json', 'text/*'] },
    bodyLimit: 1000,
    replies: { 200: Digest },
    handle: async (_self, { body }) => ok(await digest(Readable.from([body]))),
  }),
  route({
    method: 'PUT',
    path: '/api/stream',
    summary,
    body: { as: 'stream', types: ['*/*'] },
    bodyLimit: 4 * MB,
    replies: { 200: Digest },
    handle: async (_self, { body }) => {
      seen.push('began')
      await hold
      try {
        return ok(await digest(body))
      } catch (error) {
        seen.push(`failed: ${(error as Fault).code}`)
        throw error
      }
    },
  }),
  route({
    method: 'PUT',
    path: '/api/deaf',
    summary,
    body: { as: 'stream', types: ['*/*'] },
    bodyLimit: 4 * MB,
    replies: { 204: null },
    handle: () => noContent(),
  }),
  route({
    method: 'PUT',
    path: '/api/echo',
    summary,
    body: { as: 'stream', types: ['application/octet-stream'] },
    bodyLimit: 40 * MB,
    replies: { 200: { as: 'bytes', types: ['application/octet-stream'] } },
    handle: (_self, { body }) => ok(body),
  }),
  route({
    method: 'GET',
    path: '/api/page',
    summary,
    query: v.object({ say: v.optional(v.string()) }),
    replies: { 200: { as: 'bytes', types: ['text/html; charset=utf-8'] } },
    faults: {
      reply: { as: 'bytes', types: ['text/html; charset=utf-8'] },
      body: ({ status, code }) => `<h1>${status} ${code}</h1>`,
    },
    handle: (_self, { query: { say } }) => {
      if (say === undefined) throw new Fault('say_something', 422, 'say something')
      return ok(`<p>${say}`)
    },
  }),
  route({
    method: 'GET',
    path: '/api/other-words',
    summary,
    replies: { 204: null },
    faults: {
      reply: v.object({ ok: v.boolean(), why: v.string() }),
      body: ({ code, message }) => {
        if (message === 'worse') throw new Error('hunter2')
        return { ok: false, why: code }
      },
    },
    query: v.object({ say: v.optional(v.string()) }),
    handle: (_self, { query: { say } }) => {
      throw new Fault('nothing_here', 404, say ?? 'nothing here')
    },
  }),
  route({
    method: 'GET',
    path: '/api/file',
    summary,
    replies: { 200: { as: 'bytes', types: ['application/gzip', 'image/*'] } },
    query: v.object({ type: v.optional(v.string()) }),
    handle: (_self, { query: { type } }) =>
      ok(new Uint8Array([0, 1, 254, 255]), {
        'content-disposition': 'attachment; filename="a.gz"',
        ...(type ? { 'Content-Type': type } : {}),
      }),
  }),
  route({
    method: 'GET',
    path: '/api/endless',
    summary,
    replies: { 200: { as: 'bytes', types: ['application/octet-stream'] } },
    handle: (_self, { signal }) => ok(endless(signal)),
  }),
  route({
    method: 'GET',
    path: '/api/breaks',
    summary,
    query: v.object({ after: v.string() }),
    replies: { 200: { as: 'bytes', types: ['application/octet-stream'] } },
    handle: (_self, { query: { after } }) =>
      ok(
        (async function* () {
          for (let n = 0; n < Number(after); n++) yield Buffer.alloc(1000)
          throw new Error('hunter2: the file is gone')
        })(),
      ),
  }),
] as Route[]

const bodies: Plugin = definePlugin({ name: 'bodies', version: '1.0.0' }).surface({ routes: routes as never })

async function during(work: (doors: Doors) => Promise<void>): Promise<void> {
  seen.length = 0
  hold = Promise.resolve()
  produced = 0
  const doors = await openDoors([bodies])
  try {
    await work(doors)
  } finally {
    await doors.close()
  }
}

/** Sends what a source gives; the answer as bytes. */
async function upload(
  where: object,
  url: string,
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  headers = {},
) {
  const request = http.request({
    ...where,
    method: url === '/api/raw' ? 'POST' : 'PUT',
    path: url,
    headers: { 'content-type': 'application/octet-stream', ...headers },
    agent: false,
  })
  const answered = once(request, 'response') as Promise<[http.IncomingMessage]>
  // What is refused midway ends the sending.
  const from = Readable.from(source)
  from.pipe(request).on('error', () => from.destroy())
  const [response] = await answered
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  from.destroy()
  const bytes = Buffer.concat(chunks)
  return { status: response.statusCode, headers: response.headers, bytes, code: codeIn(bytes) }
}
const codeIn = (bytes: Buffer) => /"code":"(\w+)"/.exec(bytes.toString())?.[1]

function* megabytes(count: number): Generator<Buffer> {
  for (let n = 0; n < count; n++) yield Buffer.alloc(MB, n)
}

for (const door of DOORS) {
  test(`${door}: raw bytes are delivered unchanged`, () =>
    during(async ({ where }) => {
      const text = Buffer.from('{ "a": 1,\r\n  "a": 2 } \xff', 'latin1')
      for (const type of ['application/json', 'text/plain; charset=latin1']) {
        const reply = await upload(where[door], '/api/raw', [text], { 'content-type': type })
        assert.equal(JSON.parse(reply.bytes.toString()), await digest(Readable.from([text])))
      }
      const empty = await ask(where[door], '/api/raw', { method: 'POST' })
      assert.is(empty.body.size, 0)
      const wrong = await upload(where[door], '/api/raw', [text], { 'content-type': 'image/png' })
      assert.equal([wrong.status, wrong.code], [415, 'unsupported_media_type'])
      const packed = { 'content-type': 'text/plain', 'content-encoding': 'gzip' }
      assert.is((await upload(where[door], '/api/raw', [text], packed)).status, 415)
      const large = await upload(where[door], '/api/raw', [Buffer.alloc(1001)], { 'content-type': 'text/plain' })
      assert.equal([large.status, large.code], [413, 'payload_too_large'])
    }))

  test(`${door}: a stream is limited by the announced length and by the bytes that arrive`, () =>
    during(async ({ where }) => {
      const whole = await upload(where[door], '/api/stream', megabytes(4))
      assert.equal(JSON.parse(whole.bytes.toString()), await digest(Readable.from(megabytes(4))))
      seen.length = 0
      const large = await upload(where[door], '/api/stream', megabytes(5))
      assert.equal([large.status, large.code], [413, 'payload_too_large'])
      assert.equal(seen, ['began', 'failed: payload_too_large'])
      const announced = await upload(where[door], '/api/stream', [Buffer.alloc(1)], { 'content-length': 5 * MB })
      assert.equal([announced.status, announced.code], [413, 'payload_too_large'])
      assert.equal(seen.length, 2, 'its handler is not asked')
      const empty = await ask(where[door], '/api/stream', { method: 'PUT' })
      assert.is(empty.body.size, 0)
    }))
}

test('a body that its handler does not read is not accepted, and the reply is sent', () =>
  during(async ({ where }) => {
    const reply = await upload(where.socket, '/api/deaf', megabytes(1))
    assert.equal([reply.status, reply.headers.connection], [204, 'close'])
  }))

test('a sender is slowed to the pace of the reader', () =>
  during(async ({ where }) => {
    let go = (): void => {}
    hold = new Promise(resolve => {
      go = resolve
    })
    let sent = 0
    const counted = function* () {
      for (const bytes of megabytes(4))
        for (let at = 0; at < MB; at += 65_536) {
          sent += 65_536
          yield bytes.subarray(at, at + 65_536)
        }
    }
    const reply = upload(where.socket, '/api/stream', counted())
    await until(() => seen.includes('began'))
    // As much as sockets and buffers on both sides take, and no more however long nobody reads.
    let before = -1
    while (before !== sent) {
      before = sent
      await new Promise(resolve => setTimeout(resolve, 100))
    }
    assert.ok(sent < 3 * MB, `${sent} bytes were taken before anybody read`)
    go()
    assert.is((await reply).status, 200)
  }))

test('a disconnect of the caller ends the streams of both directions', () =>
  during(async ({ where, kernel }) => {
    const sending = http.request({ ...where.socket, method: 'PUT', path: '/api/stream', agent: false })
    sending.setHeader('content-type', 'application/zip')
    sending.on('error', () => {})
    sending.write(Buffer.alloc(1000))
    await until(() => seen.includes('began'))
    sending.destroy()
    await until(() => seen.includes('failed: unavailable'))

    const [response] = (await once(http.get({ ...where.socket, path: '/api/endless', agent: false }), 'response')) as [
      http.IncomingMessage,
    ]
    await once(response, 'data')
    response.destroy()
    await until(() => seen.includes('the source ended, aborted'))
    assert.equal(kernel.host.faults(), [])
  }))

test('a reply is produced at the pace of its reader', () =>
  during(async ({ where }) => {
    const [response] = (await once(http.get({ ...where.socket, path: '/api/endless', agent: false }), 'response')) as [
      http.IncomingMessage,
    ]
    response.pause()
    let before = -1
    while (before !== produced) {
      before = produced
      await new Promise(resolve => setTimeout(resolve, 100))
    }
    assert.ok(produced < 4 * MB, `${produced} bytes were made for nobody`)
    response.destroy()
    await until(() => seen.includes('the source ended, aborted'))
  }))

test('a request stream and a reply stream run at once', () =>
  during(async ({ where }) => {
    const { status, bytes } = await upload(where.tcp, '/api/echo', megabytes(20))
    assert.is(status, 200)
    assert.equal(await digest(Readable.from([bytes])), await digest(Readable.from(megabytes(20))))
  }))

test('a replaced plugin waits for its streams for a limited time, then ends them', () =>
  during(async ({ where, kernel }) => {
    const get = async (url: string) =>
      ((await once(http.get({ ...where.socket, path: url, agent: false }), 'response')) as [http.IncomingMessage])[0]
    const endless = await get('/api/endless')
    endless.on('error', () => {}).resume()
    let end = (): void => {}
    hold = new Promise(resolve => {
      end = resolve
    })
    const finishing = upload(where.socket, '/api/stream', megabytes(1))
    await until(() => seen.includes('began'))
    let reloaded = false
    const reload = kernel.host.reload(bodies).then(() => {
      reloaded = true
    })
    await new Promise(resolve => setTimeout(resolve, 200))
    assert.not.ok(reloaded)
    assert.not.ok(endless.closed)
    end()
    assert.is((await finishing).status, 200)
    await finished(endless).catch(() => {})
    assert.not.ok(endless.complete, 'it is cut off, not ended as if it were whole')
    await reload
    await until(() => seen.includes('the source ended, aborted'))
    assert.equal(kernel.host.faults(), [])
  }))

test('replies have their declared type and headers, and run no script in a page by default', () =>
  during(async ({ where }) => {
    const page = await ask(where.tcp, '/api/page?say=hello')
    assert.equal([page.status, page.text, page.headers['content-type']], [200, '<p>hello', 'text/html; charset=utf-8'])
    assert.match(page.headers['content-security-policy'] as string, "default-src 'none'")
    assert.is(page.headers['x-content-type-options'], 'nosniff')
    const file = await upload({ ...where.socket, method: 'GET' }, '/api/file', [])
    assert.is(file.status, 404, 'PUT is no way to read it')
    const got = await ask(where.socket, '/api/file')
    assert.equal(
      [got.headers['content-type'], got.headers['content-disposition'], got.headers['content-length']],
      ['application/gzip', 'attachment; filename="a.gz"', '4'],
    )
    assert.is((await ask(where.socket, '/api/file?type=image/png')).headers['content-type'], 'image/png')
    assert.is((await ask(where.socket, '/api/file?type=text/plain')).body.code, 'reply_invalid')
    const broken = await ask(where.socket, '/api/file?type=image/png%0d%0ax-evil:%201')
    assert.equal([broken.status, broken.body.code, broken.headers['x-evil']], [500, 'internal', undefined])
  }))

test('inject sends and receives bytes', () =>
  during(async ({ kernel }) => {
    const file = await kernel.inject({ method: 'GET', url: '/api/file' })
    assert.equal([...file.bytes], [0, 1, 254, 255])
    const headers = { 'content-type': 'text/plain' }
    const raw = await kernel.inject({ method: 'POST', url: '/api/raw', headers, body: Buffer.from([255]) })
    assert.is(JSON.parse(raw.body).size, 1)
    const url = '/api/stream'
    const streamed = await kernel.inject({ method: 'PUT', url, headers, body: Buffer.alloc(300_000) })
    assert.is(JSON.parse(streamed.body).size, 300_000)
  }))

test('a route formats its own faults; internal failures have the common form', () =>
  during(async ({ where, kernel }) => {
    const page = await ask(where.tcp, '/api/page')
    assert.equal([page.status, page.text], [422, '<h1>422 say_something</h1>'])
    assert.match(page.headers['content-type'] as string, 'text/html')
    const refused = await ask(where.tcp, '/api/page?what=1')
    assert.equal([refused.status, refused.text], [400, '<h1>400 invalid_query</h1>'])
    const other = await ask(where.tcp, '/api/other-words')
    assert.equal([other.status, other.body], [404, { ok: false, why: 'nothing_here' }])
    const worse = await ask(where.tcp, '/api/other-words?say=worse')
    assert.equal([worse.status, worse.body], [404, { error: 'worse', code: 'nothing_here' }])
    assert.is(kernel.host.faults()[0]?.owner, 'bodies')
  }))

test('a source that fails before its first byte gives 500 without internals, later it cuts the reply; both are logged', () =>
  during(async ({ where, kernel }) => {
    const first = await ask(where.socket, '/api/breaks?after=0')
    assert.equal([first.status, first.body.code], [500, 'internal'])
    assert.not.match(first.text, 'hunter2')
    const later = await ask(where.socket, '/api/breaks?after=5').catch(error => error.code)
    assert.is(later, 'ECONNRESET')
    assert.match(JSON.stringify(kernel.host.faults()), 'the file is gone')
  }))

test('the document describes byte bodies and the shape of errors', async () => {
  await during(async ({ kernel }) => {
    // biome-ignore lint/suspicious/noExplicitAny: a document of any shape
    const { paths } = JSON.parse((await kernel.inject({ method: 'GET', url: '/api/openapi.json' })).body) as any
    const binary = { schema: { type: 'string', format: 'binary' } }
    assert.equal(paths['/api/stream'].put.requestBody, { required: true, content: { '*/*': binary } })
    assert.equal(Object.keys(paths['/api/raw'].post.requestBody.content), ['application/json', 'text/*'])
    assert.equal(paths['/api/file'].get.responses[200].content, { 'application/gzip': binary, 'image/*': binary })
    const html = { 'text/html': { schema: { type: 'string' } } }
    assert.equal(paths['/api/page'].get.responses[200].content, html)
    assert.equal(paths['/api/page'].get.responses[404].content, html)
    assert.equal(
      Object.keys(paths['/api/other-words'].get.responses[500].content['application/json'].schema.properties),
      ['ok', 'why'],
    )
  })
})

test.run()
