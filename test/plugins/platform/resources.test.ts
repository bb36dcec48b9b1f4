import { rm } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import daemon from '../../../plugins/desk/daemon/index.js'
import resources from '../../../plugins/platform/resources/index.js'
import { testCases } from '../../fixtures/cases.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'
import { body, global, ids, Note, notes, Owned, outcome, start } from './resource-scene.js'

test('a record is created, read, changed and removed, with its version increasing by one', async () => {
  const { host } = await start()
  const created = await host.request('PUT', '/api/resources/note/a', { ...body('one'), expected_version: 0 })
  assert.is(created.status, 201)
  const { record } = created.body
  assert.equal([record.kind, record.id, record.version], ['note', 'a', 1])
  assert.equal(record.owner, { kind: 'daemon', id: 'daemon-control' })
  assert.equal(record.source, { kind: 'daemon', id: 'system' })
  assert.is(record.created_at, record.updated_at)
  const changed = await host.request('PUT', '/api/resources/note/a', body('two', 1))
  assert.is(changed.status, 200)
  assert.equal([changed.body.record.version, changed.body.record.spec], [2, { text: 'two' }])
  assert.is(changed.body.record.created_at, record.created_at)
  const again = await host.request('PUT', '/api/resources/note/a', body('two', 2))
  assert.is(again.body.record.version, 3, 'a write of the same makes a new version too')
  assert.equal((await host.request('GET', '/api/resources/note/a')).body, again.body)
  assert.is((await host.request('DELETE', '/api/resources/note/a', { expected_version: 3 })).status, 204)
  assert.is(await outcome(host, 'GET', '/api/resources/note/a'), '404 record_not_found')
  await host.close()
})

const huge = 'x'.repeat(300_000)
const REFUSED: readonly [string, string, unknown, string][] = [
  ['kind', '/api/resources/No-Kind/a', { nonsense: true }, '422 invalid_kind'],
  ['kind too long', `/api/resources/${'k'.repeat(65)}/a`, {}, '422 invalid_kind'],
  ['id with a slash', '/api/resources/note/a%2Fb', {}, '422 invalid_id'],
  ['id with a control character', '/api/resources/note/a%00b', {}, '422 invalid_id'],
  ['writer before the body', '/api/resources/note.owned/a', { nonsense: true }, '403 owner_only'],
  ['service absent', '/api/resources/bundle.activation/a', body('x'), '403 owner_only'],
  ['unknown member', '/api/resources/note/a', { ...body('x', 1), extra: 1 }, '400 invalid_request'],
  [
    'unknown member of the scope',
    '/api/resources/note/a',
    { scope: { kind: 'global', of: 1 }, spec: {} },
    '400 invalid_request',
  ],
  ['no object', '/api/resources/note/a', 'text', '400 invalid_request'],
  ['version as text', '/api/resources/note/a', { ...body('x'), expected_version: '1' }, '422 unprocessable'],
  ['version with a fraction', '/api/resources/note/a', body('x', 1.5), '422 unprocessable'],
  ['negative version', '/api/resources/note/a', body('x', -1), '422 invalid_version'],
  ['no scope', '/api/resources/note/a', { spec: { text: 'x' } }, '422 unprocessable'],
  ['no spec', '/api/resources/note/a', { scope: global }, '422 unprocessable'],
  ['strange scope', '/api/resources/note/a', { scope: { kind: 'galaxy' }, spec: {} }, '422 unprocessable'],
  [
    'global with an id',
    '/api/resources/note/a',
    { ...body('x', 1), scope: { kind: 'global', id: 'w' } },
    '422 invalid_scope',
  ],
  [
    'workspace without id',
    '/api/resources/note/a',
    { ...body('x', 1), scope: { kind: 'workspace' } },
    '422 invalid_scope',
  ],
  ['spec against its codec', '/api/resources/note/a', body('', 1), '422 invalid_spec'],
  ['too large for the kind', '/api/resources/note/a', body('x'.repeat(2000), 1), '413 payload_too_large'],
  ['too large for any direct write', '/api/resources/raw.kind/a', body(huge), '413 payload_too_large'],
  ['exists, no version', '/api/resources/note/a', body('x'), '409 record_exists'],
  ['exists, version 0', '/api/resources/note/a', body('x', 0), '409 record_exists'],
  ['missing at a version', '/api/resources/note/b', body('x', 2), '404 record_not_found'],
  ['stale version', '/api/resources/note/a', body('x', 7), '409 version_conflict'],
]

testCases({
  open: async () => {
    const { host } = await start()
    await host.request('PUT', '/api/resources/note/a', body('one'))
    return host
  },
  close: host => host.close(),
  cases: REFUSED,
  name: ([what, , , refusal]) => `a PUT is refused in the documented order: ${what} (${refusal})`,
  run: async (host, [, url, sent, refusal]) => assert.is(await outcome(host, 'PUT', url, sent), refusal),
  after: [
    'a refused PUT changes nothing',
    async host => {
      const { records } = (await host.request('GET', '/api/resources')).body
      assert.equal(
        records.map((record: { id: string; version: number; spec: unknown }) => [
          record.id,
          record.version,
          record.spec,
        ]),
        [['a', 1, { text: 'one' }]],
      )
    },
  ],
})

test('a DELETE needs the current version', async () => {
  const { host } = await start()
  await host.request('PUT', '/api/resources/note/a', body('one'))
  const url = '/api/resources/note/a'
  assert.is(await outcome(host, 'DELETE', url), '422 invalid_version')
  assert.is(await outcome(host, 'DELETE', url, {}), '422 unprocessable')
  assert.is(await outcome(host, 'DELETE', url, { expected_version: 0 }), '422 invalid_version')
  assert.is(await outcome(host, 'DELETE', url, { expected_version: -1 }), '422 invalid_version')
  assert.is(await outcome(host, 'DELETE', url, { expected_version: 9 }), '409 version_conflict')
  assert.is(await outcome(host, 'DELETE', url, { expected_version: 1, force: true }), '400 invalid_request')
  assert.is(await outcome(host, 'DELETE', '/api/resources/note/b', { expected_version: 1 }), '404 record_not_found')
  assert.is(await outcome(host, 'DELETE', '/api/resources/note.owned/a'), '403 owner_only')
  assert.is(
    await outcome(host, 'DELETE', '/api/resources/bundle.activation/a', { expected_version: 1 }),
    '403 owner_only',
  )
  assert.is(await outcome(host, 'GET', '/api/resources/bundle.activation'), '200')
  assert.is(await outcome(host, 'DELETE', '/api/resources/NOTE/a', { expected_version: 1 }), '422 invalid_kind')
  assert.is(await outcome(host, 'DELETE', url, { expected_version: 1 }), '204')
  await host.close()
})

test('an invalid JSON body is 400, and no record is created', async () => {
  const home = await temporaryFolder('json')
  const { plugin } = notes()
  const host = await boot({ plugins: [daemon, resources, plugin], home, listen: ['socket'] })
  const send = (method: string, text: string, type = 'application/json') =>
    new Promise<string>((resolve, reject) => {
      const request = http.request(
        {
          socketPath: path.join(home, 'daemon.sock'),
          method,
          path: '/api/resources/note/a',
          headers: { 'content-type': type, 'content-length': Buffer.byteLength(text) },
        },
        async response => {
          let reply = ''
          for await (const chunk of response) reply += chunk
          resolve(`${response.statusCode} ${reply === '' ? '' : JSON.parse(reply).code}`)
        },
      )
      request.on('error', reject).end(text)
    })
  assert.is(await send('PUT', '{"scope":'), '400 malformed_json')
  assert.is(await send('PUT', ''), '400 invalid_request')
  assert.is(await send('DELETE', 'no json'), '400 malformed_json')
  assert.is(await send('DELETE', ''), '422 invalid_version')
  assert.is(await send('PUT', 'a=b', 'text/plain'), '415 unsupported_media_type')
  assert.is(await send('PUT', `{"spec":"${'x'.repeat(6 * 1024 * 1024)}"}`), '413 payload_too_large')
  assert.equal(await ids(host), [])
  await host.close()
  await rm(home, { recursive: true })
})

test('a record of another source is readable and read-only, whatever its version', async () => {
  const { host, inside } = await start()
  await inside.db.tx(t =>
    inside.records.put(t, inside.actor, { kind: Note, id: 'mine', scope: { kind: 'global' }, spec: { text: 'x' } }),
  )
  assert.is(await outcome(host, 'PUT', '/api/resources/note/mine', body('y', 1)), '403 source_mismatch')
  assert.is(await outcome(host, 'DELETE', '/api/resources/note/mine', { expected_version: 1 }), '403 source_mismatch')
  const { body: found } = await host.request('GET', '/api/resources/note/mine')
  assert.equal([found.record.source.id, found.record.spec], ['notes', { text: 'x' }])
  await host.close()
})

test('records of a service kind are readable', async () => {
  const { host, inside } = await start()
  await inside.db.tx(t =>
    inside.records.put(t, inside.actor, { kind: Owned, id: 'o', scope: { kind: 'global' }, spec: {} }),
  )
  assert.is(await outcome(host, 'GET', '/api/resources/note.owned/o'), '200')
  assert.equal(await ids(host, '/note.owned'), ['o'])
  await host.close()
})

test('a record of an unregistered kind is stored unchanged', async () => {
  const { host } = await start()
  const spec = { b: [1, null, { deep: true }], a: 'x' }
  const { status, body: reply } = await host.request('PUT', '/api/resources/some.thing/x', { scope: global, spec })
  assert.equal([status, reply.record.spec], [201, spec])
  for (const [id, odd] of [
    ['null', null],
    ['text', 'just text'],
    ['number', 4.5],
  ] as const) {
    assert.is(await outcome(host, 'PUT', `/api/resources/some.thing/${id}`, { scope: global, spec: odd }), '201', id)
    assert.is((await host.request('GET', `/api/resources/some.thing/${id}`)).body.record.spec, odd)
  }
  await host.close()
})

test.run()
