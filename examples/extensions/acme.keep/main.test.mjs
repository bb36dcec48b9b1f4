import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { startExtension } from 'svc/testing'

let extension
before(async () => {
  extension = await startExtension(import.meta.dirname)
})
after(() => extension.close())

test('a workspace that is kept is not deleted', async context => {
  const { request } = extension
  // No folder of the daemon's home can be a workspace.
  const root = await mkdtemp(path.join(tmpdir(), 'shop-'))
  context.after(() => rm(root, { recursive: true }))
  const { body } = await request('POST', '/api/workspaces', { root_dir: root, name: 'shop' })
  const { id } = body.workspace
  const keep = { scope: { kind: 'global' }, spec: { workspace: 'shop', why: 'it earns' }, expected_version: 0 }
  await request('PUT', '/api/resources/acme.keep/shop', keep)
  assert.deepEqual((await request('GET', '/api/ext/acme.keep/kept')).body.kept, [
    { workspace: 'shop', why: 'it earns' },
  ])

  const refused = await request('DELETE', `/api/workspaces/${id}`)
  assert.deepEqual([refused.status, refused.body.code], [409, 'acme_workspace_kept'])

  await request('DELETE', '/api/resources/acme.keep/shop', { expected_version: 1 })
  assert.equal((await request('DELETE', `/api/workspaces/${id}`)).status, 204)
})

test('its route is a tool', async () => {
  const { status, body } = await extension.request('POST', '/api/tools/ext__acme_keep__kept/invoke', { input: {} })
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual(body.result.structured, { kept: [] })
})
