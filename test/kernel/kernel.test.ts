import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createKernel, type Kernel } from '../../kernel/index.js'
import { definePlugin, maybe, operator, token } from '../../kernel/plugin.js'
import { base, configuration, tcp as tcpDoor } from '../../plugins/index.js'
import { boot, temporaryFolder, withBase } from '../harness/kernel.js'
import { until } from '../harness/until.js'
import { ThingKind, Things, things } from './fixtures/things.js'

interface Raw {
  status: number
  body: string
  headers: http.IncomingHttpHeaders
}

function call(
  where: { socketPath: string } | { port: number; host?: string },
  method: string,
  url: string,
  options: { headers?: Record<string, string>; body?: string } = {},
): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { ...where, method, path: url, headers: options.headers ?? {}, agent: false },
      response => {
        let body = ''
        response.on('data', chunk => {
          body += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }))
      },
    )
    request.on('error', reject)
    request.end(options.body)
  })
}

async function listening(): Promise<{ kernel: Kernel; home: string; socketPath: string; port: number }> {
  const home = await temporaryFolder('listen')
  await writeFile(path.join(home, 'config.json'), '{ "http": { "port": 0, "trust_own_user": true } }')
  const kernel = await createKernel({ home, plugins: withBase([things]), listen: ['socket', 'tcp'] })
  const tcp = kernel.host.listeners().find(l => l.door === 'tcp')
  return { kernel, home, socketPath: path.join(home, 'daemon.sock'), port: tcp?.door === 'tcp' ? tcp.port : 0 }
}

test('a plugin serves routes, writes its tables and emits events, and reads them after a restart', async () => {
  const home = await temporaryFolder('restart')
  const first = await boot({ plugins: [things], home })
  assert.equal((await first.request('POST', '/api/things')).body, { n: 1 })
  assert.equal((await first.request('POST', '/api/things')).body, { n: 2 })
  await first.close()
  const second = await boot({ plugins: [things], home })
  assert.equal((await second.request('POST', '/api/things')).body, { n: 3 })
  await second.close()
  await rm(home, { recursive: true })
})

test('refusals have a code, a text and a next step; internals are not sent', async () => {
  const svc = await boot({ plugins: [things] })
  assert.equal((await svc.request('GET', '/api/things/missing')).body, {
    error: 'no such thing',
    code: 'thing_missing',
    details: { next: 'svc thing list' },
  })
  const broken = await svc.request('GET', '/api/things/broken')
  assert.is(broken.status, 500)
  assert.is(broken.body.code, 'internal')
  assert.not.match(JSON.stringify(broken.body), /secret/)
  assert.is(svc.kernel.host.faults().at(-1)?.owner, 'things')
  assert.is((await svc.request('GET', '/api/nothing')).body.code, 'route_not_found')
  assert.is((await svc.request('GET', '/api/things/a?lod=x')).body.code, 'invalid_query')
  assert.is((await svc.request('PUT', '/api/things/a', { size: 1, more: 2 })).body.code, 'invalid_request')
  assert.is((await svc.request('PUT', '/api/things/a')).status, 400)
  assert.is((await svc.request('PUT', '/api/things/a', { size: 1, x: 'y'.repeat(2000) })).status, 413)
  await svc.close()
})

test('both transports serve the same bytes; the socket is private; discovery is written and removed', async () => {
  const { kernel, home, socketPath, port } = await listening()
  assert.is(statSync(socketPath).mode & 0o777, 0o600)
  assert.is(statSync(home).mode & 0o777, 0o700)
  const a = await call({ socketPath }, 'PUT', '/api/things/a', {
    headers: { 'content-type': 'application/json' },
    body: '{"size":3}',
  })
  const b = await call({ port }, 'PUT', '/api/things/a', {
    headers: { 'content-type': 'application/json' },
    body: '{"size":3}',
  })
  assert.is(a.body, b.body)
  assert.is(a.status, 200)
  assert.ok(existsSync(path.join(home, 'daemon.json')))
  await kernel.close()
  assert.not.ok(existsSync(path.join(home, 'daemon.json')))
  assert.not.ok(existsSync(socketPath))
  await rm(home, { recursive: true })
})

test('a daemon that lost its home keeps the socket and daemon.json of its successor', async () => {
  const { kernel, home, socketPath } = await listening()
  const lockFile = path.join(home, 'daemon.lock')
  const found = path.join(home, 'daemon.json')
  await writeFile(lockFile, readFileSync(lockFile, 'utf8').replace(/owner [0-9a-f]+/, `owner ${'f'.repeat(16)}`))
  await rm(socketPath)
  const successor = http.createServer((_, response) => response.end('successor'))
  await once(successor.listen({ path: socketPath }), 'listening')
  const text = '{"pid":17,"port":0,"started_at":"2026-01-01T00:00:00Z"}\n'
  await writeFile(found, text)
  await kernel.close()
  assert.is(readFileSync(found, 'utf8'), text)
  assert.is((await call({ socketPath }, 'GET', '/')).body, 'successor')
  successor.close()
  await once(successor, 'close')
  await rm(home, { recursive: true })
})

test('a daemon.json of another owner is kept when the daemon ends', async () => {
  for (const text of ['', 'not JSON', '[]', '{"pid":17}']) {
    const { kernel, home } = await listening()
    const found = path.join(home, 'daemon.json')
    await writeFile(found, text)
    assert.equal(await kernel.close(), [])
    assert.is(readFileSync(found, 'utf8'), text)
    await rm(home, { recursive: true })
  }
})

test('TCP refuses other hosts, other sites and form bodies', async () => {
  const { kernel, home, socketPath, port } = await listening()
  const get = (headers: Record<string, string>) => call({ port }, 'GET', '/api/things/a', { headers })
  assert.is((await get({ host: `evil.example:${port}` })).status, 421)
  assert.is((await get({ host: 'localhost' })).status, 421)
  assert.is((await get({ origin: 'https://evil.example' })).status, 403)
  assert.is((await get({ 'sec-fetch-site': 'cross-site' })).status, 403)
  assert.is((await get({ origin: `http://localhost:${port}`, 'sec-fetch-site': 'same-origin' })).status, 200)
  const form = { headers: { 'content-type': 'text/plain' }, body: '{"size":1}' }
  assert.is((await call({ port }, 'PUT', '/api/things/a', form)).status, 415)
  assert.is((await call({ socketPath }, 'PUT', '/api/things/a', form)).status, 415)
  const broken = await call({ socketPath }, 'PUT', '/api/things/a', {
    headers: { 'content-type': 'application/json' },
    body: '{"size":',
  })
  assert.is(JSON.parse(broken.body).code, 'malformed_json')
  const huge = await call({ port }, 'GET', '/api/things/a', { headers: { big: 'x'.repeat(20_000) } })
  assert.is(huge.status, 431)
  await kernel.close()
  await rm(home, { recursive: true })
})

test('a stream is delivered as frames and ends with the kernel', async () => {
  const { kernel, home, socketPath } = await listening()
  const done = await call({ socketPath }, 'GET', '/api/things/a/stream')
  assert.match(done.body, /id: 1\nevent: tick\ndata: {"n":1}\n\n/)
  const endless = call({ socketPath }, 'GET', '/api/things/endless/stream')
  await until(() => Object.keys(kernel.host.streams()).length > 0, 'a stream')
  await kernel.close()
  assert.match((await endless).body, /event: closing/)
  await rm(home, { recursive: true })
})

test('a second kernel on the same home is refused and names the first', async () => {
  const svc = await boot({ plugins: [] })
  try {
    await createKernel({ home: svc.home, plugins: [] })
    assert.unreachable()
  } catch (error) {
    assert.is((error as Error).message, `daemon: already running with pid ${process.pid}`)
  }
  await svc.close()
})

test('a plugin that fails, waits or closes a cycle reports why and leaves the others running', async () => {
  const plain = (name: string, requires = {}, provides?: string, apply = () => ({})) => ({
    name,
    version: '1',
    requires,
    ...(provides ? { provides: token<unknown>(provides) } : {}),
    surface: {},
    apply,
  })
  const svc = await boot({
    plugins: [
      things,
      plain('bad', {}, 'bad@1', () => {
        throw new Error('boom')
      }),
      plain('needs-bad', { bad: token('bad@1') }),
      plain('needs-absent', { absent: token('absent@1') }),
      plain('optional', { absent: maybe(token('absent@1')) }),
      plain('round', { square: token('square@1') }, 'round@1'),
      plain('square', { round: token('round@1') }, 'square@1'),
      plain('thief', {}, 'things@1'),
    ],
  })
  const states = Object.fromEntries(svc.kernel.host.plugins().map(p => [p.name, p.state]))
  assert.equal(states.bad, { status: 'failed', error: 'boom' })
  assert.equal(states['needs-bad'], { status: 'waiting', missing: ['needs-bad', 'bad@1 of bad, which failed'] })
  assert.equal(states['needs-absent'], { status: 'waiting', missing: ['needs-absent', 'absent@1'] })
  assert.equal(states.optional, { status: 'active' })
  assert.match((states.round as { error: string }).error, /round → square → round/)
  assert.match((states.thief as { error: string }).error, /things@1 is provided by things already/)
  assert.equal(states.things, { status: 'active' })
  assert.is((await svc.request('POST', '/api/things')).status, 201)
  await svc.close()
})

test('a plugin with a taken route fails, and the first keeps it', async () => {
  const { surface, ...head } = things
  const late = definePlugin({
    name: 'zz-late',
    version: '1',
    requires: { things: Things },
    service: async () => class {},
  }).surface({
    routes: surface.routes ?? [],
  })
  void head
  const svc = await boot({ plugins: [things, late] })
  const state = svc.kernel.host.plugins().find(p => p.name === 'zz-late')?.state
  assert.match((state as { error: string }).error, /route .* is already registered by things/)
  assert.is((await svc.request('GET', '/api/things/a')).status, 200)
  await svc.close()
})

test('unload removes everything of a plugin, load restores it, and dependents wait meanwhile', async () => {
  const user = definePlugin({
    name: 'user',
    version: '1',
    requires: { things: Things },
    service: async () => class {},
  }).surface({})
  const svc = await boot({ plugins: [things, user] })
  const own = () => svc.kernel.host.plugins().filter(({ name }) => !base.some(one => one.name === name))
  const before = own()
  await svc.kernel.host.unload('things')
  assert.is((await svc.request('GET', '/api/things/a')).status, 404)
  assert.equal(
    own().map(p => p.state.status),
    ['waiting'],
  )
  assert.equal(await svc.kernel.host.load(things), { status: 'active' })
  assert.is((await svc.request('GET', '/api/things/a')).status, 200)
  assert.equal(own(), before)
  await svc.close()
})

test('records have versions, source, codec, size limit, events and reconciliation', async () => {
  let service: Things | undefined
  type Things = import('./fixtures/things.js').ThingsService
  const spy = definePlugin({
    name: 'spy',
    version: '1',
    requires: { things: Things },
    service: async () =>
      class {
        constructor(kernel: { needs: { things: Things } }) {
          service = kernel.needs.things
        }
      },
  }).surface({})
  const svc = await boot({ plugins: [things, spy] })
  const { kernel } = service!
  const put = (id: string, spec: unknown, expectedVersion?: number) =>
    kernel.db.tx(t =>
      kernel.records.put(t, operator, {
        kind: ThingKind,
        id,
        scope: { kind: 'global' },
        spec,
        expectedVersion,
        direct: true,
      }),
    )
  const code = async (work: Promise<unknown>) =>
    work.then(
      () => 'none',
      error => error.code,
    )

  const first = await put('a', { size: 1, unknown: true }, 0)
  assert.equal(first.record.spec, { size: 1 })
  assert.is(first.record.version, 1)
  assert.ok(await kernel.needs.reconcile.settled([{ kind: 'test.thing', id: 'a' }]))
  assert.is(service!.projected.get('a'), 1)
  assert.is(await code(put('a', { size: 2 }, 0)), 'record_exists')
  assert.is(await code(put('b', { size: 2 }, 4)), 'record_not_found')
  assert.is(await code(put('a', { size: 2 }, 4)), 'version_conflict')
  assert.is(await code(put('a', { size: 'x' }, 1)), 'invalid_spec')
  assert.is(await code(put('a', { size: 2 }, -1)), 'invalid_version')
  assert.is(await code(put('a/b', { size: 2 }, 0)), 'invalid_id')
  assert.is((await put('a', { size: 1 }, 1)).record.version, 2)
  const other = { ...operator, source: { kind: 'extension', id: 'x' } }
  assert.is(
    await code(kernel.db.tx(t => kernel.records.delete(t, other, { kind: ThingKind, id: 'a', expectedVersion: 2 }))),
    'source_mismatch',
  )
  assert.is(
    await code(
      kernel.db.tx(t =>
        kernel.records.put(t, operator, {
          kind: 'test.owned',
          id: 'o',
          scope: { kind: 'global' },
          spec: {},
          direct: true,
        }),
      ),
    ),
    'owner_only',
  )
  assert.is(
    await code(
      kernel.db.tx(t =>
        kernel.records.put(t, operator, {
          kind: 'raw.kind',
          id: 'o',
          scope: { kind: 'global' },
          spec: 'x'.repeat(300_000),
        }),
      ),
    ),
    'payload_too_large',
  )

  const poisoned = Promise.all([
    put('p', { size: 1, poison: true }, 0),
    put('q', { size: 9 }, 0),
    put('r', { size: 8 }, 0),
  ])
  await poisoned
  await kernel.needs.reconcile.settled(['p', 'q', 'r'].map(id => ({ kind: 'test.thing', id })))
  assert.is(service!.projected.get('q'), 9)
  assert.is(service!.projected.get('r'), 8)
  const health = kernel.needs.reconcile.health().find(h => h.kind === 'test.thing')
  assert.is(health?.status, 'failing')
  assert.equal(
    health?.quarantined.map(q => q.id),
    ['p'],
  )
  await put('p', { size: 5 }, 1)
  await kernel.needs.reconcile.settled([{ kind: 'test.thing', id: 'p' }])
  assert.is(kernel.needs.reconcile.health().find(h => h.kind === 'test.thing')?.status, 'healthy')

  await kernel.db.tx(t =>
    kernel.records.delete(t, operator, { kind: ThingKind, id: 'a', expectedVersion: 2, direct: true }),
  )
  await kernel.needs.reconcile.settled([{ kind: 'test.thing', id: 'a' }])
  assert.not.ok(service!.projected.has('a'))
  const names = (await kernel.needs.events.list({})).filter(e => e.subject === 'test.thing/a').map(e => e.name)
  assert.equal(names, ['record.put', 'record.put', 'record.deleted'])
  await svc.close()
})

test('a configuration with an unknown key stops the start with line and key', async () => {
  const home = await temporaryFolder('config')
  const start = async (text: string) => {
    await writeFile(path.join(home, 'config.json'), text)
    const svc = await boot({ plugins: [], home })
    await svc.close()
    return 'started'
  }
  const failure = (text: string) => start(text).catch(error => error.message as string)
  assert.match(await failure('{\n  // comment\n  "http": { "prot": 1 }\n}'), /config.json:3: unknown key http.prot/)
  assert.match(await failure('{ "http": { "port": "x" } }'), /config.json:1: http.port/)
  assert.match(await failure('{ "http": '), /not valid JSON/)
  assert.match(await failure('{ "later": { "x": 1 } }'), /config.json:1: unknown key later/)
  assert.is(await start('{ "http": { "port": 0 }, }'), 'started')
  await rm(home, { recursive: true })
})

test('the error of a taken port names the port', async () => {
  const server = http.createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  const home = await temporaryFolder('port')
  await writeFile(path.join(home, 'config.json'), JSON.stringify({ http: { port } }))
  const error = await createKernel({ home, plugins: [configuration, tcpDoor], listen: ['tcp', 'socket'] }).then(
    () => undefined,
    e => e,
  )
  assert.is(error?.code, 'http_port_in_use')
  server.close()
  const again = await createKernel({ home, plugins: [], ports: {} })
  await again.close()
  await rm(home, { recursive: true })
})

test('two kernels run in one process', async () => {
  const [a, b] = await Promise.all([boot({ plugins: [things] }), boot({ plugins: [things] })])
  await Promise.all([
    a.request('POST', '/api/things'),
    a.request('POST', '/api/things'),
    b.request('POST', '/api/things'),
  ])
  assert.is((await a.request('POST', '/api/things')).body.n, 3)
  assert.is((await b.request('POST', '/api/things')).body.n, 2)
  await Promise.all([a.close(), b.close()])
})

test('the document of the routes has stable operation ids, parameters and errors', async () => {
  const svc = await boot({ plugins: [things] })
  const document = (await svc.request('GET', '/api/openapi.json')).body as {
    paths: Record<string, Record<string, { operationId: string; parameters: unknown[]; responses: object }>>
  }
  const operation = document.paths['/api/things/{id}']?.get
  assert.is(operation?.operationId, 'getThingsById')
  assert.equal(operation?.parameters.map(p => (p as { name: string }).name).sort(), ['id', 'loud'])
  assert.ok(Object.keys(operation?.responses ?? {}).includes('404'))
  await svc.close()
})

test.run()
