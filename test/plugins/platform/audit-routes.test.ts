import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { audit, auth, inTree, trust } from '../../../plugins/index.js'
import { namesOf } from '../../../plugins/platform/audit/request-names.js'
import type { AuditEntry } from '../../../schemas/daemon/audit.js'
import { openWorld } from '../../fixtures/session-world.js'
import { tokenOf } from '../access/auth/scene.js'

/** Routes whose work events and journals tell of, and those that change nothing. Every other one leaves an entry. */
const UNAUDITED = `
POST /api/agent/notify
POST /api/agent/soul/validate
POST /api/agent/tasks/claim-next
POST /api/agent/tasks/{run_id}/complete
POST /api/agent/tasks/{run_id}/fail
POST /api/agent/tasks/{run_id}/heartbeat
POST /api/agent/tasks/{run_id}/release
POST /api/agent/tasks/{run_id}/start
POST /api/agents/{name}/heartbeat/validate
POST /api/agents/{name}/heartbeat/wake
POST /api/agents/{name}/soul/validate
POST /api/automation/events
POST /api/bridges/{id}/resolve
POST /api/bridges/{id}/test-delivery
POST /api/bundles/preview
POST /api/changes/plan
POST /api/changes/{id}/undo
POST /api/extensions/preview
POST /api/extensions/{name}/verify
POST /api/marketplace/refresh
POST /api/mcp/connections
POST /api/mcp/connections/close
POST /api/mcp/messages
POST /api/model-catalog/models/refresh
POST /api/model-catalog/providers/{provider_id}/models/refresh
POST /api/notifications/attention/acknowledge
POST /api/providers/{provider_id}/auth/probe
POST /api/settings/validate
POST /api/settings/mcp-servers/{name}/auth/begin
POST /api/task-reviews/{id}/cancel
POST /api/task-reviews/{id}/route
POST /api/task-reviews/{id}/start
POST /api/task-reviews/{id}/verdict
POST /api/task-runs/{id}/attach-session
POST /api/task-runs/{id}/cancel
POST /api/task-runs/{id}/complete
POST /api/task-runs/{id}/fail
POST /api/task-runs/{id}/reviews
POST /api/task-runs/{id}/start
POST /api/tasks
DELETE /api/tasks/{id}
PATCH /api/tasks/{id}
POST /api/tasks/{id}/approve
POST /api/tasks/{id}/blocks
POST /api/tasks/{id}/blocks/{block_id}/clear
POST /api/tasks/{id}/cancel
POST /api/tasks/{id}/children
POST /api/tasks/{id}/dependencies
DELETE /api/tasks/{id}/dependencies/{depends_on_id}
POST /api/tasks/{id}/pause
POST /api/tasks/{id}/publish
POST /api/tasks/{id}/recover
POST /api/tasks/{id}/reject
POST /api/tasks/{id}/resume
POST /api/tasks/{id}/runs
POST /api/tasks/{id}/runs/fan-out
POST /api/tasks/{id}/start
POST /api/tasks/{id}/triage/archive
POST /api/tasks/{id}/triage/dismiss
POST /api/tasks/{id}/triage/read
POST /api/tools/search
POST /api/tools/{id}/invoke
POST /api/webhooks/global/{endpoint}
POST /api/webhooks/workspaces/{workspace_id}/{endpoint}
POST /api/workspaces/place
POST /api/workspaces/resolve
POST /api/workspaces/{workspace_id}/automation/suggestions
POST /api/workspaces/{workspace_id}/sessions/{session_id}/attach
POST /api/workspaces/{workspace_id}/sessions/{session_id}/attachments
DELETE /api/workspaces/{workspace_id}/sessions/{session_id}/attachments/{attachment_id}
POST /api/workspaces/{workspace_id}/sessions/{session_id}/clarifications
POST /api/workspaces/{workspace_id}/sessions/{session_id}/clarifications/{request_id}/answer
POST /api/workspaces/{workspace_id}/sessions/{session_id}/presence
POST /api/workspaces/{workspace_id}/sessions/{session_id}/prompt
POST /api/workspaces/{workspace_id}/sessions/{session_id}/prompt/cancel
DELETE /api/workspaces/{workspace_id}/sessions/{session_id}/prompt/queue/{queue_entry_id}
PUT /api/workspaces/{workspace_id}/sessions/{session_id}/prompt/queue/{queue_entry_id}
POST /api/workspaces/{workspace_id}/sessions/{session_id}/prompt/queue/{queue_entry_id}/steer
POST /api/workspaces/{workspace_id}/sessions/{session_id}/soul/refresh
POST /api/workspaces/{workspace_id}/sessions/{session_id}/steer
POST /api/workspaces/{workspace_id}/sessions/{session_id}/tools/search
POST /api/workspaces/{workspace_id}/sessions/{session_id}/wait
POST /api/workspaces/{workspace_id}/window-manager/clients
DELETE /api/workspaces/{workspace_id}/window-manager/clients/{client_id}
POST /api/workspaces/{workspace_id}/window-manager/commands
PUT /api/workspaces/{workspace_id}/window-manager/layout
POST /api/workspaces/{workspace_id}/window-manager/layout/validate
POST /api/workspaces/{workspace_id}/window-manager/preview
`

test('every changing route leaves an entry, except the listed ones', () => {
  const routes = inTree.flatMap(plugin => plugin.surface.routes ?? [])
  const unaudited = routes.filter(({ audited }) => audited === false)
  assert.equal(unaudited.map(({ method, path }) => `${method} ${path}`).sort(), UNAUDITED.trim().split('\n').sort())
  for (const { method, path } of unaudited) assert.is.not(method, 'GET', path)
})

test('a path that is resolved leaves an entry if it is registered, and none if it is found', async () => {
  const world = await openWorld({ plugins: [audit] })
  try {
    const entries = async () => (await world.kernel.request('GET', '/api/audit')).body.entries as AuditEntry[]
    for (const verb of ['resolve', 'place']) {
      const url = `/api/workspaces/${verb}`
      const folder = path.join(path.dirname(world.root), `entry-of-${verb}`)
      await mkdir(folder)
      const { id } = (await world.kernel.request('POST', url, { path: folder })).body.workspace
      const [newest] = await entries()
      assert.equal([newest?.action, newest?.subject, newest?.request], ['workspace.created', id, `POST ${url}`])
      assert.is((await world.kernel.request('POST', url, { path: folder })).body.workspace.id, id)
      assert.is((await entries())[0]?.seq, newest?.seq)
    }
  } finally {
    await world.close()
  }
})

test('trust, agents, keys, tokens and stops leave entries with their subject, and a prompt leaves none', async () => {
  const world = await openWorld({ plugins: [audit, auth, trust] })
  try {
    const { request } = world.kernel
    const { workspaceId, home } = world
    const bearer = async () => ({ headers: { authorization: `Bearer ${await tokenOf(home)}` } })
    await world.agent('plain')
    const act = async (method: string, url: string, body?: unknown, more = {}) => {
      const reply = await world.kernel.kernel.inject({ method, url, ...more, ...(body === undefined ? {} : { body }) })
      assert.ok(reply.status < 300, `${method} ${url}: ${reply.status} ${reply.body}`)
      return reply.body === '' ? undefined : JSON.parse(reply.body)
    }
    const { trust: files } = (await request('GET', `/api/workspaces/${workspaceId}/trust`)).body
    await act('PUT', `/api/workspaces/${workspaceId}/trust`, { digest: files.digest })
    const { id, at } = await world.session('plain')
    await world.prompt(at, 'say hello')
    await act('POST', `${at}/stop`)
    await act('DELETE', `/api/workspaces/${workspaceId}/trust`)
    const made = await act('POST', '/api/agents', { scope: 'global', agent: { name: 'toy', prompt: 'Play.' } })
    await act('DELETE', '/api/agents/toy', { scope: 'global', expected_digest: made.agent.definition_digest })
    const key = await act('POST', '/api/v0/auth/generate', undefined, await bearer())
    await act('DELETE', `/api/v0/auth/keys/${key.data.id}`, undefined, await bearer())
    await act('POST', '/api/v0/auth/rotate', undefined, await bearer())
    const { entries } = (await request('GET', '/api/audit?limit=200')).body as { entries: AuditEntry[] }
    const told = entries.map(({ action, subject }) => `${action} ${subject}`).reverse()
    for (const wanted of [
      `sessions.stop sessions/${workspaceId}/${id}`,
      `workspaces.trust.put workspaces/${workspaceId}`,
      `workspaces.trust.deleted workspaces/${workspaceId}`,
      'agents.created agents/toy',
      'agents.deleted agents/toy',
      `auth.generate auth/${key.data.id}`,
      `keys.deleted keys/${key.data.id}`,
      'auth.rotate auth',
    ])
      assert.ok(told.includes(wanted), `${wanted} in\n${told.join('\n')}`)
    assert.not.match(told.join('\n'), 'prompt')
    const stop = entries.find(({ action }) => action === 'sessions.stop')
    assert.is(stop?.request, 'POST /api/workspaces/{workspace_id}/sessions/{session_id}/stop')
    assert.match(stop?.cause ?? '', /^req_/)
    assert.is(told.filter(line => line.startsWith('agents.')).length, 2, 'one entry for each request')
  } finally {
    await world.close()
  }
})

test('a failed request leaves no entry', async () => {
  const world = await openWorld({ plugins: [audit] })
  try {
    const before = (await world.kernel.request('GET', '/api/audit')).body.page.total
    assert.is((await world.kernel.request('DELETE', '/api/agents/nobody', { scope: 'global' })).status >= 400, true)
    assert.is((await world.kernel.request('GET', '/api/audit')).body.page.total, before)
  } finally {
    await world.close()
  }
})

test('an entry is named after the last words of its path and its names', () => {
  const named = (method: string, path: string, params = {}, reply = {}) => {
    const { action, subject } = namesOf({ method, path } as never, params, reply)
    return `${action} ${subject}`
  }
  assert.is(named('DELETE', '/api/agents/{name}', { name: 'toy' }), 'agents.deleted agents/toy')
  assert.is(named('POST', '/api/drain'), 'drain drain')
  assert.is(named('PATCH', '/api/settings/general'), 'settings.general.changed settings')
  assert.is(named('POST', '/api/sessions', {}, { session: { id: 'ses_1' } }), 'sessions.created sessions/ses_1')
})

test.run()
