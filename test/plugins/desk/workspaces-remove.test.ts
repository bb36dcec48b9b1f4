import { rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { temporaryFolder } from '../../harness/kernel.js'
import { add, encoded, names, outcome, scene } from './workspace-scene.js'

test('records in workspace scope need the workspace', async () => {
  const { host, root, end } = await scene()
  const { id } = await add(host, await root('app'))
  const put = (scopeId: string) =>
    outcome(host, 'PUT', '/api/resources/note/a', { scope: { kind: 'workspace', id: scopeId }, spec: {} })
  assert.is(await put('ws_0000000000000000'), '422 invalid_scope')
  assert.is(await put('app'), '422 invalid_scope')
  assert.is(await put(id), '201')
  await end()
})

test('removal deletes the records of the scope by any author and emits an event', async () => {
  const { host, root, inside, end } = await scene()
  const { id } = await add(host, await root('app'))
  const scope = { kind: 'workspace' as const, id }
  await host.request('PUT', '/api/resources/note/mine', { scope, spec: {} })
  await host.request('PUT', '/api/resources/note/elsewhere', { scope: { kind: 'global' }, spec: {} })
  await inside.db.tx(t => inside.records.put(t, inside.actor, { kind: 'note', id: 'theirs', scope, spec: {} }))
  assert.is(await outcome(host, 'DELETE', `/api/workspaces/${id}`), '204')
  assert.equal(
    inside.records.list({}).map(record => record.id),
    ['elsewhere'],
  )
  const events = (await inside.needs.events.list({ subject: id })).map(event => event.name)
  assert.equal(events, ['workspace.created', 'workspace.deleted'])
  assert.is(await outcome(host, 'DELETE', `/api/workspaces/${id}`), '404 workspace_not_found')
  await end()
})

test('removal is refused while an activation owns records of the scope or a plugin objects; nothing is deleted', async () => {
  const { host, root, inside, end } = await scene({}, [[], ['busy']])
  const { id } = await add(host, await root('app'))
  const scope = { kind: 'workspace' as const, id }
  await host.request('PUT', '/api/resources/note/mine', { scope, spec: {} })
  const owner = { kind: 'bundle.activation', id: 'act_1' }
  await inside.db.tx(t =>
    inside.records.put(t, inside.actor, { kind: 'note', id: 'projected', scope, spec: {}, owner }),
  )
  const refused = await host.request('DELETE', `/api/workspaces/${id}`)
  assert.equal([refused.status, refused.body.code], [409, 'workspace_in_use'])
  assert.match(refused.body.error, 'act_1')
  await add(host, await root('busy'))
  assert.is(await outcome(host, 'DELETE', '/api/workspaces/busy'), '409 workspace_in_use')
  assert.equal(await names(host), ['app', 'busy'])
  assert.equal(
    inside.records.list({}).map(record => record.id),
    ['mine', 'projected'],
  )
  await end()
})

test('a path inside a workspace removes nothing', async () => {
  const { host, root, end } = await scene()
  const { root_dir } = await add(host, await root('app'))
  await root('app/src')
  assert.is(await outcome(host, 'DELETE', encoded(path.join(root_dir, 'src'))), '404 workspace_not_found')
  assert.is(await outcome(host, 'DELETE', encoded(root_dir)), '204')
  await end()
})

test('workspaces survive a restart', async () => {
  const home = await temporaryFolder('restart')
  const first = await scene({ home })
  const { id } = await add(first.host, await first.root('app'), { default_agent: 'coder' })
  await first.host.close()
  const second = await scene({ home })
  const { body } = await second.host.request('GET', `/api/workspaces/${id}`)
  assert.equal([body.workspace.name, body.workspace.default_agent], ['app', 'coder'])
  await second.end()
  await rm(first.folder, { recursive: true })
  await rm(home, { recursive: true })
})

test.run()
