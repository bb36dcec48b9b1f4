import assert from 'node:assert/strict'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { startExtension } from 'svc/testing'

test('workspaces are registered by it, and others find them', async t => {
  const extension = await startExtension(import.meta.dirname)
  const root = await realpath(await mkdtemp(path.join(os.tmpdir(), 'workspaces-')))
  t.after(() => rm(root, { recursive: true }))
  t.after(() => extension.close())
  const { request } = extension
  assert.equal((await request('GET', '/api/plugins/workspaces')).body.plugin.replaced_by, 'acme.workspaces')
  const { workspace } = (await request('POST', '/api/workspaces', { root_dir: root })).body
  assert.equal((await request('GET', `/api/agents?workspace=${workspace.id}`)).status, 200)
  assert.deepEqual((await request('GET', '/api/ext/acme.workspaces/roots')).body, { roots: [{ root_dir: root }] })
})
