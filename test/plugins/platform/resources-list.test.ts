import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { CommandContext } from '../../../kernel/plugin.js'
import { run as putCommand } from '../../../plugins/platform/resources/commands.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { testCases } from '../../fixtures/cases.js'
import { temporaryFolder } from '../../harness/kernel.js'
import { body, ids, start } from './resource-scene.js'

test('lists filter by kind, scope, owner and source, in order of kind and id, up to a limit', async () => {
  const { host, inside } = await start()
  const put = (kindName: string, id: string, scope = 'global') =>
    host.request('PUT', `/api/resources/${kindName}/${id}`, { scope: { kind: scope }, spec: { text: 'x' } })
  assert.equal((await host.request('GET', '/api/resources')).body, { records: [] })
  await put('zebra', 'z')
  await put('note', 'b', 'user')
  await put('note', 'a')
  await inside.db.tx(t =>
    inside.records.put(t, inside.actor, { kind: 'apple', id: 'w', scope: { kind: 'workspace', id: 'ws_1' }, spec: {} }),
  )
  assert.equal(await ids(host), ['w', 'a', 'b', 'z'])
  assert.equal(await ids(host, '?limit=2'), ['w', 'a'])
  assert.equal(await ids(host, '?limit=0'), ['w', 'a', 'b', 'z'])
  assert.equal(await ids(host, '?kind=note'), ['a', 'b'])
  assert.equal(await ids(host, '/note'), ['a', 'b'])
  assert.equal(await ids(host, '/note?kind=note&limit=1'), ['a'])
  assert.equal(await ids(host, '?scope_kind=user'), ['a', 'b', 'z'], 'user and global mean the same')
  assert.equal(await ids(host, '?scope_kind=global&kind=note'), ['a', 'b'])
  assert.equal(await ids(host, '?scope_kind=workspace&scope_id=ws_1'), ['w'])
  assert.equal(await ids(host, '?scope_kind=workspace&scope_id=ws_2'), [])
  assert.equal(await ids(host, '?owner_kind=daemon&owner_id=notes'), ['w'])
  assert.equal(await ids(host, '?source_kind=daemon&source_id=system'), ['a', 'b', 'z'])
  assert.equal(await ids(host, '/nothing'), [])
  const { body: found } = await host.request('GET', '/api/resources/note/b')
  assert.equal(found.record.scope, { kind: 'user' }, 'as it was written')
  await host.close()
})

test('a list of many records is complete, ordered under every filter, and yields to other work', async () => {
  const { host, inside } = await start()
  const names = Array.from({ length: 1200 }, (_, n) => `n${String(n).padStart(4, '0')}`)
  const workspace = { kind: 'workspace', id: 'ws_1' } as const
  await inside.db.tx(t => {
    for (const id of names)
      inside.records.put(t, inside.actor, { kind: 'note', id, scope: workspace, spec: { text: id } })
    inside.records.put(t, inside.actor, { kind: 'zebra', id: 'a', scope: { kind: 'global' }, spec: {} })
  })
  for (const query of [
    '/note',
    '?kind=note',
    '?scope_kind=workspace&scope_id=ws_1',
    '?kind=note&scope_kind=workspace&scope_id=ws_1',
    '?source_kind=daemon&source_id=notes&kind=note',
  ])
    assert.equal(await ids(host, query), names, query)
  assert.equal(await ids(host, '?owner_kind=daemon&owner_id=notes'), [...names, 'a'])
  assert.equal(await ids(host), [...names, 'a'])
  assert.equal(await ids(host, '?limit=501'), names.slice(0, 501))
  assert.equal(await ids(host, '?limit=1000'), names.slice(0, 1000))
  let turns = 0
  const timer = setInterval(() => turns++, 0)
  await ids(host)
  clearInterval(timer)
  assert.ok(turns >= 2, `${turns} turns`)
  await host.close()
})

testCases({
  open: () => start(),
  close: ({ host }) => host.close(),
  cases: [
    '?scope_id=ws_1',
    '?scope_kind=workspace',
    '?scope_kind=global&scope_id=ws_1',
    '?scope_kind=galaxy',
    '?owner_kind=daemon',
    '?owner_id=x',
    '?source_id=x',
    '?source_kind=x&source_id=',
    '?limit=-1',
    '?limit=many',
    '?limit=1.5',
    '?kind=No%20Kind',
    '?misspelt=1',
    '/note?kind=other',
    '/note?owner_kind=daemon',
    '/No-Kind',
    '/No-Kind/x',
  ],
  name: query => `a contradictory or invalid filter is 422: ${query}`,
  run: async ({ host }, query) => assert.is((await host.request('GET', `/api/resources${query}`)).status, 422),
})

test('writes over the rate limit are queued, then refused; reads never are', async () => {
  const home = await temporaryFolder('rate')
  const limit = { requests: 2, window: '10s', queue: 1 }
  await writeFile(
    path.join(home, 'config.json'),
    JSON.stringify({ extensions: { resources: { operator_write_rate_limit: limit } } }),
  )
  const clock = new VirtualClock()
  const { host } = await start({ clock, home })
  const put = (id: string) => host.request('PUT', `/api/resources/note/${id}`, body('x'))
  assert.is((await put('a')).status, 201)
  assert.is((await put('b')).status, 201)
  let ended = false
  const waiting = put('c').finally(() => {
    ended = true
  })
  // Let the third write reach the queue.
  for (let i = 0; i < 20; i++) await clock.advance(0)
  const refused = await put('d')
  assert.equal([refused.status, refused.body.code], [429, 'write_rate_limited'])
  assert.ok(Number(refused.headers['retry-after']) > 0)
  assert.equal(await ids(host), ['a', 'b'])
  await clock.advance(4900)
  assert.is(ended, false)
  await clock.advance(200)
  assert.is((await waiting).status, 201)
  await host.close()
  await rm(home, { recursive: true })
})

test('an incomplete rate limit stops the start with the key', async () => {
  const home = await temporaryFolder('rate')
  await writeFile(
    path.join(home, 'config.json'),
    JSON.stringify({ extensions: { resources: { operator_write_rate_limit: { requests: 5 } } } }),
  )
  const error = await start({ home }).catch(problem => problem)
  assert.is(error.code, 'config_invalid')
  assert.match(error.message, 'extensions.resources.operator_write_rate_limit')
  await rm(home, { recursive: true })
})

test('svc resource put sends the spec of a file or an option, and reports its errors', async () => {
  const { host } = await start()
  const said: string[] = []
  const call = (options: CommandContext['options'], file = '') =>
    putCommand({
      path: 'resource put',
      args: { kind: 'note', id: 'a b' },
      options,
      client: {
        request: async (method, url, sent) => {
          const reply = await host.request(method, url, sent)
          if (reply.status >= 400) throw new Error(reply.body.code)
          return reply.body
        },
        stream: () => {
          throw new Error('no stream here')
        },
      },
      out: {
        json: false,
        line: text => said.push(text),
        text: () => {},
        id: () => {},
        value: () => {},
        table: () => {},
        color: (_, text) => text,
      },
      cwd: '/',
      home: host.home,
      readFile: async () => file,
      stdin: async () => file,
      signal: new AbortController().signal,
      onInterrupt: () => () => {},
      fault: (code, text) => {
        throw new Error(`${code}: ${text}`)
      },
    })
  await call({ file: 'note.json' }, '{"text": "from a file"}')
  await call({ spec: '{"text": "inline"}', 'expected-version': 1, 'scope-kind': 'user' })
  assert.equal(said, ['stored note a b at version 1', 'stored note a b at version 2'])
  const { body: found } = await host.request('GET', '/api/resources/note/a%20b')
  assert.equal([found.record.spec, found.record.scope], [{ text: 'inline' }, { kind: 'user' }])
  for (const [options, wrong] of [
    [{}, 'usage: give the spec with either'],
    [{ file: 'x', spec: '{}' }, 'usage: give the spec with either'],
    [{ spec: '{' }, 'usage: the spec is not valid JSON'],
    [{ spec: '{"text":"x"}' }, 'record_exists'],
    [{ spec: '{"text":"x"}', 'scope-id': '' }, 'invalid_scope'],
  ] as const) {
    const error = await call(options).catch(problem => problem)
    assert.match(error.message, wrong)
  }
  await host.close()
})

test.run()
