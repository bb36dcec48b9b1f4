import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type LookupFunction } from 'node:net'
import { gzipSync } from 'node:zlib'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../../../kernel/clock.js'
import { download, exchange } from '../../../../plugins/delivery/extensions/downloads/download.js'

const servers: { close(): unknown; closeAllConnections?(): void }[] = []
test.after(() => {
  for (const server of servers) {
    server.closeAllConnections?.()
    server.close()
  }
})

async function serve(listener: RequestListener): Promise<number> {
  const server: Server = createServer(listener)
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

/** Names of this test; of one with several addresses the last is answered for ever. */
function names(all: Record<string, readonly string[]>) {
  const requests: string[] = []
  const lookup: LookupFunction = (host, options, callback) => {
    const addresses = all[host] ?? []
    const address = addresses[Math.min(requests.filter(one => one === host).length, addresses.length - 1)]
    requests.push(host)
    if (address === undefined) return callback(new Error('ENOTFOUND'), '', 0)
    const family = address.includes(':') ? 6 : 4
    if (options.all) callback(null, [{ address, family }])
    else callback(null, address, family)
  }
  return { lookup, asked: requests }
}

const rules = { clock: systemClock(), maxBytes: 1000, timeoutMs: 20_000 }
const problemOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'none',
    error => `${error.problem}: ${error.message}`,
  )

test('a public host leads to no internal address by redirect, name, number or a second answer', async () => {
  let reached = 0
  const inside = createSocketServer(socket => {
    reached++
    socket.destroy()
  })
  servers.push(inside)
  await new Promise<void>(resolve => inside.listen(0, '127.0.0.1', resolve))
  const { port: innerPort } = inside.address() as AddressInfo
  const { lookup, asked: requests } = names({
    'catalog.example': ['127.0.0.1'],
    'inner.example': ['127.0.0.1'],
    localhost: ['127.0.0.1'],
    'private.example': ['10.1.2.3'],
    'six.example': ['::ffff:7f00:1'],
    'rebinding.example': ['203.0.113.7', '127.0.0.1'],
  })
  const port = await serve((request, response) => {
    const to = decodeURIComponent(request.url?.slice(1) ?? '')
    response.writeHead(302, { location: to }).end()
  })
  // The host that a person named may be where it is.
  const named = new URL(`http://catalog.example:${port}/`)
  for (const host of [
    'inner.example',
    'private.example',
    'six.example',
    'localhost',
    '127.0.0.1',
    '2130706433',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '169.254.169.254',
    'rebinding.example',
  ]) {
    const to = `http://${host}:${innerPort}/secret`
    // The same over https, so that nothing but where it leads speaks against it.
    const leading = new URL(encodeURIComponent(to.replace('http:', 'https:')), named)
    assert.match(await problemOf(download(leading, { ...rules, named, lookup })), /^private/, host)
    assert.match(await problemOf(exchange(new URL(to), {}, { ...rules, named, lookup })), /^private/, host)
  }
  assert.is(reached, 0)
  assert.is(requests.filter(host => host === 'rebinding.example').length >= 2, true)
})

test('an address of this machine named by the user leads to others of this machine', async () => {
  const other = await serve((_, response) => void response.end('there'))
  const port = await serve(
    (_, response) => void response.writeHead(307, { location: `http://localhost:${other}/` }).end(),
  )
  const named = new URL(`http://127.0.0.1:${port}/`)
  assert.is(String(await download(named, { ...rules, named })), 'there')
  const public_ = new URL('https://catalog.example/')
  assert.match(await problemOf(download(named, { ...rules, named: public_ })), /^private/)
})

test('limits count uncompressed bytes, and time from the first address', async () => {
  const packed = gzipSync(Buffer.alloc(100_000))
  const port = await serve((request, response) => {
    if (request.url === '/packed') return void response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed)
    if (request.url === '/endless') {
      response.write('x'.repeat(900))
      return void response.write('x'.repeat(900))
    }
    if (request.url === '/said') return void response.writeHead(200, { 'content-length': 5000 }).flushHeaders()
    if (request.url === '/round') return void response.writeHead(302, { location: '/round' }).end()
    if (request.url === '/gone') return void response.writeHead(410).end()
    if (request.url === '/odd') return void response.writeHead(302, { location: 'http://[' }).end()
    if (request.url === '/file') return void response.writeHead(302, { location: 'file:///etc/passwd' }).end()
  })
  const get = (path: string, timeoutMs = 20_000) => {
    const named = new URL(path, `http://127.0.0.1:${port}`)
    return problemOf(download(named, { ...rules, named, timeoutMs }))
  }
  assert.ok(packed.length < rules.maxBytes)
  assert.match(await get('/packed'), /^too_large/)
  assert.match(await get('/endless'), /^too_large/)
  assert.match(await get('/said'), /^too_large/)
  assert.match(await get('/round'), /^unreachable: .*redirects too often/)
  assert.match(await get('/gone'), /^not_found/)
  assert.match(await get('/odd'), /^insecure/)
  assert.match(await get('/file'), /^insecure/)
  assert.match(await get('/silent', 50), /^timeout/)
})

test.run()
