import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { clientTypes } from '../../cli/client-types.js'
import { ApiError, type Client, ConnectionError, createClient, type Target } from '../../client/index.js'
import { daemon, resources } from '../../plugins/index.js'
import { temporaryFolder } from '../harness/kernel.js'
import { type Doors, openDoors, until } from '../kernel/http/doors.js'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..')
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')

/** What a promise rejects with; it must. */
async function thrownBy(work: Promise<unknown>): Promise<unknown> {
  const nothing = Symbol('nothing')
  const thrown = await work.then(
    () => nothing,
    error => error,
  )
  assert.is.not(thrown, nothing)
  return thrown
}

const targets = (doors: Doors): Record<string, Target> => ({
  socket: { socket: doors.socketPath },
  tcp: { baseUrl: `http://localhost:${doors.port}` },
})

test('client/operations.ts matches the document', () => {
  assert.is(clientTypes(JSON.parse(read('schemas/openapi.json'))), read('client/operations.ts'))
})

test('both transports send typed values and return bodies by status', async () => {
  const doors = await openDoors([daemon, resources])
  for (const [name, target] of Object.entries(targets(doors))) {
    const svc: Client = createClient(target)
    const id = `über ${name} #1?&%2F`
    const scope = { kind: 'global' } as const
    const made = await svc.putResourcesByKindById({
      path: { kind: 'test.note', id },
      body: { scope, spec: { text: 'ü\n😀' }, expected_version: 0 },
    })
    assert.is(made.status, 201)
    const got = await svc.getResourcesByKindById({ path: { kind: 'test.note', id } })
    assert.equal(got.body.record, made.body.record)
    assert.equal(got.body.record.spec, { text: 'ü\n😀' })
    const again = await svc.putResourcesByKindById({
      path: { kind: 'test.note', id },
      body: { scope, spec: {}, expected_version: 1 },
    })
    assert.equal([again.status, again.body.record.version], [200, 2])
    const listed = await svc.getResources({ query: { kind: 'test.note', limit: 1 } })
    assert.equal(
      listed.body.records.map(record => record.id),
      [id],
    )
    const removal = await svc.deleteResourcesByKindById({
      path: { kind: 'test.note', id },
      body: { expected_version: 2 },
    })
    assert.equal(removal, { status: 204, body: undefined })
    assert.is((await svc.getStatus()).body.schema_version, '1')
  }
  await doors.close()
})

test('both transports throw an ApiError with status, code and details for an error reply', async () => {
  const doors = await openDoors([daemon, resources])
  for (const target of Object.values(targets(doors))) {
    const svc = createClient(target)
    const missing = await thrownBy(svc.getResourcesByKindById({ path: { kind: 'test.note', id: 'none' } }))
    assert.instance(missing, ApiError)
    const error = missing as ApiError
    assert.equal([error.status, error.code], [404, 'record_not_found'])
    assert.is((error.body as { error: string }).error, error.message)
    const body = { scope: { kind: 'moon' as never }, spec: 1 }
    const wrong = (await thrownBy(svc.putResourcesByKindById({ path: { kind: 'a', id: 'b' }, body }))) as ApiError
    assert.equal([wrong.status, Object.keys(wrong.details)], [422, ['scope.kind', 'next']])
  }
  await doors.close()
})

test('a missing daemon, a broken reply, an abort and a missing parameter have different errors', async () => {
  const home = await temporaryFolder('client')
  const nobody = createClient({ socket: path.join(home, 'none.sock') })
  const unreachable = (await thrownBy(nobody.getStatus())) as ConnectionError
  assert.instance(unreachable, ConnectionError)
  assert.is(unreachable.code, 'unreachable')
  assert.instance(await thrownBy(nobody.getAgentsByName({ path: { name: '' } })), TypeError)
  assert.instance(await thrownBy(createClient({ baseUrl: 'https://localhost' }).getStatus()), TypeError)

  const socket = path.join(home, 'odd.sock')
  const server = http.createServer((request, response) => {
    response.setHeader('x-not-svc', '1')
    if (request.url === '/api/status') response.setHeader('content-type', 'application/json').end('{"a":')
    else if (request.url === '/api/doctor') response.writeHead(502, { 'retry-after': '3' }).end('<html>')
  })
  await new Promise<void>(resolve => server.listen(socket, resolve))
  const odd = createClient({ socket })
  assert.is(((await thrownBy(odd.getStatus())) as ConnectionError).code, 'protocol')
  const foreign = (await thrownBy(odd.getDoctor())) as ApiError
  assert.equal([foreign.status, foreign.code, foreign.retryAfter], [502, 'unknown', 3])
  const abort = new AbortController()
  const hanging = odd.getAgents({ signal: abort.signal })
  setTimeout(() => abort.abort('enough'), 5)
  assert.is(await thrownBy(hanging), 'enough')
  server.closeAllConnections()
  server.close()
  await rm(home, { recursive: true })
})

test('a stream resumes after its last id, without gap or repetition, and ends with the daemon', async () => {
  const home = await temporaryFolder('client')
  const socket = path.join(home, 'stream.sock')
  const requests: (string | undefined)[] = []
  const server = http.createServer((request, response) => {
    const after = request.headers['last-event-id'] as string | undefined
    requests.push(after)
    const event = (n: number) => `id: ${n}\nevent: part\ndata: {"n":${n}}\n\n`
    if (requests.length === 3)
      return response.writeHead(503, { 'content-type': 'application/json' }).end('{"error":"no"}')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const from = Number(after ?? 0)
    response.write(`${event(from + 1)}${event(from + 2)}`)
    if (requests.length === 1) response.write('event: closing\ndata: {}\n\n')
    else if (requests.length === 2) setTimeout(() => response.destroy(), 20)
    else response.end(event(from + 3))
  })
  await new Promise<void>(resolve => server.listen(socket, resolve))
  const ids: (string | undefined)[] = []
  const events = createClient({ socket }).getWorkspacesByWorkspaceIdSessionsBySessionIdStream({
    path: { workspace_id: 'w', session_id: 's' },
    lastEventId: '10',
  })
  for await (const event of events) ids.push(event.id)
  assert.equal(ids, ['11', '12', '13', '14', '15', '16', '17'])
  assert.equal(requests, ['10', '12', '14', '14'])

  const abort = new AbortController()
  const endless = createClient({ socket }).getWorkspacesByWorkspaceIdSessionsBySessionIdStream({
    path: { workspace_id: 'w', session_id: 's' },
    signal: abort.signal,
  })
  assert.is((await endless.next()).value?.id, '1')
  await endless.return(undefined)
  let open = -1
  server.getConnections((_error, count) => {
    open = count
  })
  await until(() => open >= 0)
  server.closeAllConnections()
  server.close()
  await rm(home, { recursive: true })
})

/** Never run: each line has to be refused by the compiler. */
export function mustNotCompile(svc: Client): void {
  // @ts-expect-error no such operation
  svc.getNothing()
  // @ts-expect-error the path parameters are missing
  svc.getAgentsByName()
  // @ts-expect-error a path parameter has another name
  svc.getAgentsByName({ path: { id: 'a' } })
  // @ts-expect-error a path parameter is a text
  svc.getAgentsByName({ path: { name: 1 } })
  // @ts-expect-error no such query parameter
  svc.getResources({ query: { kin: 'a' } })
  // @ts-expect-error the body is missing
  svc.putResourcesByKindById({ path: { kind: 'a', id: 'b' } })
  // @ts-expect-error a member of the body is missing
  svc.putResourcesByKindById({ path: { kind: 'a', id: 'b' }, body: { spec: {} } })
  // @ts-expect-error no such scope
  svc.putResourcesByKindById({ path: { kind: 'a', id: 'b' }, body: { scope: { kind: 'moon' }, spec: {} } })
  // @ts-expect-error a call gives no stream
  svc.getStatus()[Symbol.asyncIterator]
  // @ts-expect-error a target is a socket or a base URL
  createClient({ port: 1 })
  void svc
    .putResourcesByKindById({ path: { kind: 'a', id: 'b' }, body: { scope: { kind: 'user' }, spec: 1 } })
    .then(r => {
      // @ts-expect-error no such status
      if (r.status === 202) return
      // @ts-expect-error no such member
      return r.body.recod
    })
}

test.run()
