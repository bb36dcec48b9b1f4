import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startExtension } from 'svc/testing'

test('an activation brings all of a profile, and takes exactly that away', async t => {
  const extension = await startExtension(import.meta.dirname)
  t.after(() => extension.close())
  const { request } = extension
  const profile = { extension_name: 'release-kit', bundle_name: 'release', profile_name: 'default', scope: 'global' }
  const { status, body } = await request('POST', '/api/bundles/activations', profile)
  assert.equal(status, 201, body.error)
  const { id, inventory } = body.activation
  const kinds = ['window_layout', 'agent', 'agent.soul', 'agent.heartbeat', 'automation.job', 'automation.trigger']
  assert.deepEqual(
    inventory.map(item => item.resource_kind),
    kinds,
  )
  assert.equal((await request('GET', '/api/agents/planner')).status, 200)

  assert.equal((await request('DELETE', `/api/bundles/activations/${id}`)).status, 204)
  assert.equal((await request('GET', '/api/agents/planner')).status, 404)
})
