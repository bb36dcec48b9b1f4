import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import daemon from '../../../../plugins/desk/daemon/index.js'
import resources from '../../../../plugins/platform/resources/index.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { scene } from './agents-scene.js'

const url = (id: string) => `/api/resources/agent/${id}`
const put = (spec: object, scope: object = { kind: 'global' }, expected_version = 0) => ({
  scope,
  spec,
  expected_version,
})

test('records are agents: after files, and workspace records before global ones', async () => {
  const s = await scene()
  const model = async (query = '') => (await s.request('GET', `/api/agents/packed${query}`)).body.agent?.model
  const spec = { name: 'packed', prompt: 'Do.', model: 'global' }
  assert.is((await s.request('PUT', url('r1'), put({ ...spec, unknown: 1 }))).status, 201)
  assert.is(await model(), 'global')
  const shown = (await s.request('GET', '/api/agents/packed')).body.agent
  assert.equal([shown.origin, shown.workspace_id], ['global', undefined])
  assert.match(shown.definition_digest, /^sha256:[0-9a-f]{64}$/)
  const scope = { kind: 'workspace', id: s.workspaceId }
  await s.request('PUT', url('r0'), put({ ...spec, model: 'workspace' }, scope))
  assert.equal([await model('?workspace=w'), await model()], ['workspace', 'global'])
  await s.request('PUT', url('r0'), put({ ...spec, model: 'workspace 2' }, scope, 1))
  assert.is(await model('?workspace=w'), 'workspace 2')
  assert.is(await s.outcome('DELETE', '/api/agents/packed?workspace=w'), '409 agent_read_only')
  const body = { agent: { name: 'packed', prompt: 'x' }, expected_digest: shown.definition_digest }
  assert.is(await s.outcome('PUT', '/api/agents/packed', body), '409 agent_read_only')
  await s.write(s.homeAgents, 'packed', ['model: file'])
  assert.equal([await model('?workspace=w'), await model()], ['file', 'file'])
  const removed = (await s.request('DELETE', '/api/agents/packed')).body
  assert.equal(removed, { name: 'packed', origin: 'global', unshadowed_origin: 'global' })
  await s.request('DELETE', url('r1'), { expected_version: 1 })
  assert.equal([await model('?workspace=w'), await model()], ['workspace 2', undefined])
  await s.end()
})

test('an invalid agent record is refused', async () => {
  const s = await scene()
  for (const spec of [
    {},
    { name: 'Big', prompt: 'x' },
    { name: 'coordinator', prompt: 'x' },
    { name: 'a', prompt: ' ' },
  ]) {
    assert.is(await s.outcome('PUT', url('r'), put(spec)), '422 invalid_spec', JSON.stringify(spec))
  }
  assert.is(await s.outcome('PUT', url('r'), put({ name: 'a', prompt: 'x', command: 'a | b' })), '422 invalid_spec')
  await s.end()
})

test('an invalid record from before the plugin is quarantined and named by doctor; others are agents', async () => {
  const home = await temporaryFolder('agents-records')
  const before = await boot({ home, plugins: [daemon, resources] })
  assert.is((await before.request('PUT', url('bad'), put({ name: 'Not A Name' }))).status, 201)
  assert.is((await before.request('PUT', url('good'), put({ name: 'good', prompt: 'x' }))).status, 201)
  await before.close()
  const s = await scene({ home })
  assert.is((await s.request('GET', '/api/agents/good')).status, 200)
  const { items } = (await s.request('GET', '/api/doctor?only=resources')).body
  const item = items.find((one: { code: string }) => one.code === 'record_quarantined')
  assert.is(item.suggested_command, 'svc resource get agent bad')
  assert.is((await s.request('GET', url('bad'))).body.record.spec.name, 'Not A Name')
  await s.end()
  await rm(home, { recursive: true, force: true })
})

test.run()
