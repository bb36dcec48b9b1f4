import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { changes, configuration, daemon, models, providers, settings, workspaces } from '../../../../plugins/index.js'
import { boot, type Reply, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

// Models from what an agent says, an endpoint lists and the configuration has, over the API.
let kernel: TestKernel
let server: Server
let home: string
let answer: (response: ServerResponse, url: string, key: string | undefined) => void
const calls: (string | undefined)[] = []

const list = (...ids: string[]) =>
  JSON.stringify({ object: 'list', data: ids.map(id => ({ id, context_window: 1000 })) })
const sends =
  (text: string, status = 200) =>
  (response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(text)
  }

/** An agent that answers `session/new` with this. */
const agent = (opened: object) => `#!${process.execPath}
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
require('readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize') return send({ id, result: { protocolVersion: 1 } })
  if (method === 'session/new') send({ id, result: ${JSON.stringify(opened)} })
})
`

const OFFERED = {
  sessionId: 's',
  configOptions: [
    {
      id: 'model',
      category: 'model',
      type: 'select',
      options: [
        { value: 'agent-small', name: 'Small' },
        { group: 'g', name: 'Group', options: [{ value: 'agent-large', name: 'Large' }] },
      ],
    },
    {
      id: 'thinking',
      category: 'thought_level',
      type: 'select',
      options: [{ value: 'low' }, { value: 'high' }, { value: 'on' }],
    },
  ],
}

test.before(async () => {
  server = createServer((request, response) => {
    calls.push(request.headers.authorization)
    answer(response, request.url ?? '', request.headers.authorization)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  home = await temporaryFolder('models')
  const bin = path.join(home, 'bin')
  await mkdir(bin)
  const program = async (name: string, text: string) => {
    await writeFile(path.join(bin, name), text)
    await chmod(path.join(bin, name), 0o755)
  }
  await program('offering', agent(OFFERED))
  await program('broken', '#!/bin/sh\necho no protocol; exit 3\n')
  await writeFile(
    path.join(home, 'config.json'),
    JSON.stringify({
      providers: {
        offering: { command: path.join(bin, 'offering') },
        broken: { command: path.join(bin, 'broken') },
        hosted: {
          command: 'not-installed',
          base_url: base,
          credential_slots: [{ name: 'key', secret_ref: 'env:HOSTED', target_env: 'HOSTED_KEY', required: true }],
          models: { default: 'preferred', discovery: { timeout: '4s' } },
        },
      },
    }),
  )
  kernel = await start()
})
test.after(async () => {
  await kernel.close()
  server.close()
  server.closeAllConnections()
})

const start = () =>
  boot({
    home,
    plugins: [changes, configuration, daemon, workspaces, providers, settings, models],
    env: { PATH: process.env.PATH, HOSTED: 'key-of-mine' },
  })

const catalog = '/api/model-catalog'
const refresh = (provider: string, body: object = { force: true }) =>
  kernel.request('POST', `${catalog}/providers/${provider}/models/refresh`, body)
const modelsOf = async (provider: string, query = '?view=all'): Promise<Reply[]> =>
  (await kernel.request('GET', `${catalog}/providers/${provider}/models${query}`)).body.models
const idsOf = async (provider: string, query?: string) =>
  (await modelsOf(provider, query)).map(({ model_id: id }) => id)

test('an agent offers its models, grouped or not, with thinking levels', async () => {
  const { status, body } = await refresh('offering')
  assert.equal([status, body.sources[0].refresh_state, body.sources[0].row_count], [200, 'ok', 2])
  const [large, small] = await modelsOf('offering')
  assert.equal([large?.model_id, large?.display_name, small?.model_id], ['agent-large', 'Large', 'agent-small'])
  assert.equal([large?.reasoning_efforts, large?.reasoning_source], [['low', 'high'], 'acp'])
  assert.equal([large?.available, large?.availability_state, large?.stale], [true, 'available', false])
})

test('an invalid agent gives 503 with the reason; an uninstalled one is not asked', async () => {
  const { status, body } = await refresh('broken')
  assert.is(status, 503)
  assert.match(body.error, /acp:broken: its agent: it ended \(3\)/)
  const [source] = (await kernel.request('GET', `${catalog}/providers/broken/models/status`)).body.sources
  assert.equal([source.refresh_state, source.stale], ['failed', true])
})

test('an endpoint is listed with the key of the provider, and its default before the first request', async () => {
  assert.equal(await idsOf('hosted'), ['preferred'])
  assert.is((await modelsOf('hosted'))[0]?.availability_state, 'unknown')
  answer = sends(list('m1', 'm2', 'preferred'))
  assert.is((await refresh('hosted')).status, 200)
  assert.is(calls.at(-1), 'Bearer key-of-mine')
  assert.equal(await idsOf('hosted'), ['preferred', 'm1', 'm2'])
  const [preferred] = await modelsOf('hosted')
  assert.equal([preferred?.available, preferred?.context_window], [true, 1000])
  assert.not.match(JSON.stringify((await kernel.request('GET', `${catalog}/sources/status`)).body), /key-of-mine/)
})

test('a slow, wrong, missing, unauthorized or lying endpoint gives the reason, and its last list stays', async () => {
  const fails = async (reason: RegExp, with_: typeof answer) => {
    answer = with_
    const { status, body } = await refresh('hosted')
    assert.is(status, 503, String(reason))
    assert.match(body.error, reason)
    assert.equal(await idsOf('hosted'), ['preferred', 'm1', 'm2'])
  }
  await fails(/no answer within 4000 ms/, () => {})
  await fails(/not valid JSON/, sends('<html>'))
  await fails(/not a list of models/, sends('{"data":5}'))
  await fails(/unauthorized \(401\)/, sends('{}', 401))
  await fails(/it answered 500/, sends('{}', 500))
  await fails(/larger than/, response => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('[')
    const more = () => {
      while (!response.destroyed && response.write(' '.repeat(65_536)));
    }
    response.on('drain', more)
    more()
  })
  await fails(/./, response => {
    response.writeHead(200, { 'content-length': '100000' })
    response.write('{"data":[')
    response.destroy()
  })
  await fails(/redirect/, response => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end())
  const [m1] = (await modelsOf('hosted')).filter(({ model_id: id }) => id === 'm1')
  assert.equal([m1?.stale, m1?.available, m1?.availability_state], [true, null, 'stale'])
  assert.ok(m1?.last_error)
  assert.equal(await idsOf('hosted', '?view=all&include_stale=false'), [])
})

test('invalid entries are skipped, and a list has at most 2,000', async () => {
  const odd = [{ id: '' }, { id: 'x'.repeat(300) }, { id: 'a\u001bb' }, null, 5, { name: 'models/named' }, { id: 'ok' }]
  answer = sends(JSON.stringify({ models: [...odd, ...Array.from({ length: 3000 }, (_, i) => ({ id: `n${i}` }))] }))
  assert.is(
    (await refresh('hosted')).body.sources.find((one: Reply) => one.source_id === 'endpoint:hosted').row_count,
    1995,
  )
  const ids = await idsOf('hosted')
  assert.ok(ids.includes('named') && ids.includes('ok') && !ids.some(id => id.length > 256))
  answer = sends(list('m1', 'm2', 'preferred'))
  await refresh('hosted')
})

test('a source is cached for a minute unless forced', async () => {
  const before = calls.length
  await refresh('hosted', {})
  assert.is(calls.length, before)
  await refresh('hosted', { source_id: 'endpoint:hosted', force: true })
  assert.is(calls.length, before + 1)
  assert.is((await refresh('hosted', { source_id: 'endpoint:nobody' })).status, 400)
  assert.is((await refresh('nobody')).status, 404)
})

test('a model is featured, hidden and given a default effort, stored in the configuration', async () => {
  const curate = (body: object) => kernel.request('POST', `${catalog}/providers/hosted/models/curate`, body)
  assert.is((await curate({ model_id: 'nothing' })).body.code, 'model_not_found')
  const { status, body } = await curate({ model_id: 'm2', featured: true, default_effort: 'high' })
  assert.is(status, 200, JSON.stringify(body))
  assert.equal([body.model.featured, body.model.default_reasoning_effort, body.apply.skipped], [true, 'high', false])
  await Promise.all([curate({ model_id: 'm1', hidden: true }), curate({ model_id: 'preferred', deprecated: true })])
  assert.equal(await idsOf('hosted', ''), ['m2', 'preferred'], 'the curated view')
  assert.equal(await idsOf('hosted'), ['m2', 'preferred', 'm1'])
  assert.is((await curate({ model_id: 'm1', hidden: false })).status, 200)
  assert.equal(await idsOf('hosted', ''), ['m2', 'preferred', 'm1'])
})

test('the undo of a model choice restores the previous one', async () => {
  const before = await idsOf('offering', '')
  const choice = { model_id: before[0], hidden: true }
  await kernel.request('POST', `${catalog}/providers/offering/models/curate`, choice)
  assert.equal(await idsOf('offering', ''), before.slice(1))
  const { changes: all } = (await kernel.request('GET', '/api/changes')).body
  const requests = all.map(({ request }: Reply) => request)
  assert.equal(
    requests.filter((request: string) => request.startsWith('PUT /api/settings')),
    [],
    'one act is one change',
  )
  const undone = await kernel.request('POST', '/api/changes/last/undo', {})
  assert.equal([undone.status, undone.body.differs], [200, []], JSON.stringify(undone.body))
  assert.equal(await idsOf('offering', ''), before)
})

test('the chat API has its own shape of lists and errors', async () => {
  const { body } = await kernel.request('GET', '/api/openai/v1/models?provider_id=hosted')
  assert.equal([body.object, body.data[0].id, body.data[0].object], ['list', 'hosted/m2', 'model'])
  assert.equal(body.data[0].service.sources.includes('endpoint:hosted'), true)
  const refused = await kernel.request('GET', '/api/openai/v1/models?provider_id=nobody')
  assert.equal([refused.status, refused.body.error.code], [404, 'provider_not_found'])
})

test('known models survive a restart', async () => {
  await kernel.close()
  kernel = await start()
  assert.equal(await idsOf('hosted'), ['m2', 'preferred', 'm1'])
  assert.equal(await idsOf('offering'), ['agent-large', 'agent-small'])
  const all = (await kernel.request('GET', `${catalog}/models?view=all`)).body.models
  assert.ok(all.some(({ provider_id: id }: Reply) => id === 'offering'))
})

test.run()
