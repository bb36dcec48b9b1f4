// One daemon for all rules; what a test activates it takes away again.
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { REQUEST, type Scene, scene } from './bundles-scene.js'
import { agentFile, bridge, job, profile, trigger } from './kit.js'

const URL = '/api/bundles/activations'
let s: Scene
test.before(async () => {
  s = await scene()
})
test.before.each(async () => {
  await s.kit()
})
test.after.each(async () => {
  for (const { id } of (await s.request('GET', URL)).body.activations) await s.request('DELETE', `${URL}/${id}`)
  for (const { name } of s.extensions.installed()) await s.extensions.unload(name)
  for (const { kind, id, version, source } of (await s.request('GET', '/api/resources')).body.records)
    if (source.id === 'system') await s.request('DELETE', `/api/resources/${kind}/${id}`, { expected_version: version })
})
test.after(() => s.end())

const refused = async (status: number, code: string, more: Record<string, unknown> = {}, url = URL) => {
  const before = (await s.request('GET', '/api/resources')).body
  const reply = await s.request('POST', url, { ...REQUEST, ...more })
  assert.equal([reply.status, reply.body.code], [status, code], JSON.stringify(reply.body))
  assert.equal((await s.request('GET', '/api/resources')).body, before, 'a refusal changes nothing')
  return reply.body
}
const inWorkspace = (workspace: string) => ({ scope: 'workspace', workspace })
const agentRecord = (name: string, scope: unknown) =>
  s.request('PUT', `/api/resources/agent/own-${name}`, { scope, spec: { name, prompt: 'x' }, expected_version: 0 })

test('Global activation: applies without a workspace; scope is global when omitted', async () => {
  const activation = await s.activate()
  assert.equal([activation.scope, activation.workspace_id, activation.version], ['global', undefined, 1])
  assert.equal((await s.record('agent', activation.agents[0].id)).scope, { kind: 'global' })
  await refused(422, 'bundle_scope_invalid', { scope: 'global', workspace: s.one })
})

test('Workspace activation: the workspace is resolved by id, name or path; a missing one is 404, none is 422', async () => {
  for (const reference of [s.one, 'one', s.roots[0] as string]) {
    const activation = await s.activate(inWorkspace(reference))
    assert.equal([activation.scope, activation.workspace_id], ['workspace', s.one])
    const spec = (await s.record('automation.job', activation.jobs[0].id)).spec
    assert.equal([spec.scope, spec.workspace_id], ['workspace', s.one])
    await s.request('DELETE', `${URL}/${activation.id}`)
  }
  await refused(404, 'workspace_not_found', inWorkspace('nowhere'))
  await refused(422, 'bundle_scope_invalid', { scope: 'workspace' })
})

test('Declared channels: an inventory by extension, bundle, profile and name, with the primary one marked', async () => {
  await s.kit({
    name: 'another',
    agents: { a: agentFile('a') },
    profiles: [{ name: 'p', channels: { primary: 'z', items: [{ name: 'z' }, { name: 'b' }] } }],
  })
  await s.activate()
  await s.activate({ extension_name: 'another', profile_name: 'p', ...inWorkspace(s.one) })
  const { network } = (await s.request('GET', '/api/bundles/network/settings')).body
  const rows = network.declared_channels
  assert.equal(
    rows.map((row: Record<string, unknown>) => [row.extension_name, row.name, row.primary, row.workspace_id]),
    [
      ['another', 'b', false, s.one],
      ['another', 'z', true, s.one],
      ['demo-kit', 'aside', false, undefined],
      ['demo-kit', 'release', true, undefined],
    ],
  )
  assert.is(rows[3].description, 'Release room')
})

const LIVE = { required: true, mode: 'live', channel_scopes: ['builders'] }

test('Live requirement confirmation: 409 without it, before names are resolved; with it the operator is recorded', async () => {
  await s.kit({
    manifest: { network_participation: LIVE },
    profiles: [profile({ jobs: [job('x', { agent: 'nobody' })] })],
  })
  const body = await refused(409, 'bundle_confirmation_required')
  assert.match(body.details.next, /^svc bundle activate --extension demo-kit .* --confirm-network-requirement$/)
  assert.is(body.details.network_requirement_digest.length, 64)
  await s.kit({ manifest: { network_participation: LIVE } })
  const shown = (await s.request('POST', '/api/bundles/preview', REQUEST)).body.activation
  assert.equal(
    [shown.network_requirement_digest, shown.network_requirement_confirmed_by],
    [body.details.network_requirement_digest, undefined],
  )
  const activation = await s.activate({ confirm_network_requirement: true })
  assert.equal(
    [activation.network_requirement_confirmed_by, activation.network_requirement_digest],
    ['operator', body.details.network_requirement_digest],
  )
  assert.match(activation.network_requirement_confirmed_at, /^\d{4}-\d\d-\d\dT.*Z$/)
})

test('Extension dependency: 409 with the ids of the activations in any case; without any it can be removed', async () => {
  const ids = [await s.activate(inWorkspace(s.one)), await s.activate(inWorkspace(s.two))].map(({ id }) => id).sort()
  const fault = await s.extensions.disable('demo-kit')
  assert.equal([fault?.status, fault?.code, fault?.details?.activations], [409, 'bundle_in_use', ids.join(', ')])
  for (const id of ids) await s.request('DELETE', `${URL}/${id}`)
  assert.is(await s.extensions.disable('demo-kit'), undefined)
  assert.equal((await s.request('GET', '/api/bundles/catalog')).body, { bundles: [] })
  assert.equal((await s.request('GET', '/api/resources/bundle')).body.records, [])
  await refused(404, 'bundle_extension_not_found')
})

test('Extension, bundle and profile: a missing one is 404; names are case-insensitive', async () => {
  await refused(404, 'bundle_extension_not_found', { extension_name: 'nope' })
  await refused(404, 'bundle_not_found', { bundle_name: 'nope' })
  const body = await refused(404, 'bundle_profile_not_found', { profile_name: 'nope' })
  assert.match(body.error, /it has default/)
  const activation = await s.activate({
    extension_name: 'DEMO-Kit',
    bundle_name: 'Release-KIT',
    profile_name: 'Default',
  })
  assert.is(activation.id, 'act_c159f9064f396f4b')
})

test('Agent conflict: a global record, a workspace record or file, a home file, a built-in agent', async () => {
  await agentRecord('planner', { kind: 'global' })
  for (const more of [{}, inWorkspace(s.one)]) await refused(409, 'bundle_agent_conflict', more)
  await s.request('DELETE', '/api/resources/agent/own-planner', { expected_version: 1 })

  await agentRecord('planner', { kind: 'workspace', id: s.one })
  assert.match((await refused(409, 'bundle_agent_conflict', inWorkspace(s.one))).details.agent, /planner/)
  await s.activate(inWorkspace(s.two))
  await s.request('DELETE', '/api/resources/agent/own-planner', { expected_version: 1 })

  const file = path.join(s.roots[0] as string, '.svc/agents/planner/AGENT.md')
  await mkdir(path.dirname(file), { recursive: true })
  for (const text of [agentFile('planner'), 'not a definition']) {
    await writeFile(file, text)
    await refused(409, 'bundle_agent_conflict', inWorkspace(s.one))
    await refused(409, 'bundle_agent_conflict', inWorkspace(s.one), '/api/bundles/preview')
  }
  await rm(path.dirname(file), { recursive: true })

  const atHome = path.join(s.home, 'agents/planner/AGENT.md')
  await mkdir(path.dirname(atHome), { recursive: true })
  await writeFile(atHome, agentFile('planner'))
  await refused(409, 'bundle_agent_conflict', inWorkspace(s.one))
  await refused(409, 'bundle_agent_conflict')
  await rm(path.dirname(atHome), { recursive: true })

  await s.kit({
    agents: { planner: agentFile('general') },
    profiles: [{ name: 'default', agents: [{ path: 'agents/planner' }] }],
  })
  await refused(409, 'bundle_agent_conflict')
})

test('Agent conflict: two activations in overlapping scopes; two workspaces do not overlap', async () => {
  await s.kit({ name: 'other-kit' })
  const other = { extension_name: 'other-kit' }
  const first = await s.activate(inWorkspace(s.one))
  await refused(409, 'bundle_agent_conflict', { ...other, ...inWorkspace(s.one) })
  await refused(409, 'bundle_agent_conflict', other)
  const second = await s.activate({ ...other, ...inWorkspace(s.two) })
  assert.not.equal(first.id, second.id)
  const seen = async (query: string) => (await s.request('GET', `/api/agents/planner?workspace=${query}`)).status
  assert.equal([await seen('one'), await seen('two')], [200, 200])
  await s.request('DELETE', `${URL}/${first.id}`)
  assert.equal([await seen('one'), await seen('two')], [404, 200])
})

test('Agent references: jobs and triggers name packaged or visible agents, else 422', async () => {
  await s.kit({ profiles: [profile({ jobs: [job('a', { agent: 'nobody' })] })] })
  assert.match((await refused(422, 'bundle_agent_missing')).error, /nobody/)
  await refused(422, 'bundle_agent_missing', {}, '/api/bundles/preview')
  await s.kit({ profiles: [profile({ triggers: [trigger('a', { agent: 'helper' })] })] })
  await refused(422, 'bundle_agent_missing')
  await agentRecord('helper', { kind: 'workspace', id: s.one })
  await refused(422, 'bundle_agent_missing')
  await s.quiet()
  const activation = await s.activate(inWorkspace(s.one))
  assert.is(activation.triggers[0].agent_name, 'helper')
})

test('Agent references: a reserved agent name is 422', async () => {
  await s.kit({
    agents: { planner: agentFile('coordinator') },
    profiles: [{ name: 'default', agents: [{ path: 'agents/planner' }] }],
  })
  await refused(422, 'bundle_agent_reserved')
  await refused(422, 'bundle_agent_reserved', {}, '/api/bundles/preview')
})

test('Sidecars are paired by agent id, owner and scope, and come from a package path', async () => {
  const { id } = await s.activate(inWorkspace(s.one))
  const [agent, soul, heartbeat] = await Promise.all([
    s.record('agent', `agt_${(await s.owned(id)).find(key => key.startsWith('agent '))?.slice('agent agt_'.length)}`),
    ...['agent.soul', 'agent.heartbeat'].map(async kind =>
      s.record(kind, (await s.owned(id)).find(key => key.startsWith(`${kind} `))?.split(' ')[1] ?? ''),
    ),
  ])
  for (const sidecar of [soul, heartbeat]) {
    assert.equal([sidecar.owner, sidecar.scope, sidecar.spec.agent_id], [agent.owner, agent.scope, agent.id])
  }
  assert.is(agent.spec.source_path, `.svc/bundles/${id}/agents/planner/AGENT.md`)
  assert.is(soul.spec.source_path, `.svc/bundles/${id}/agents/planner/SOUL.md`)
  assert.is(heartbeat.spec.source_path, `.svc/bundles/${id}/agents/planner/HEARTBEAT.md`)
})

test('Create replies 201 with id, version and inventory: layouts, agent by agent, jobs, triggers, bridges', async () => {
  await s.kit({
    agents: { zoe: agentFile('zoe'), amy: agentFile('amy') },
    files: { 'agents/zoe/SOUL.md': 'Calm.', 'agents/amy/HEARTBEAT.md': 'Look.' },
    profiles: [
      profile({
        agents: [{ path: 'agents/zoe' }, { path: 'agents/amy' }],
        jobs: [job('j', { agent: 'amy' })],
        triggers: [trigger('t', { agent: 'zoe' })],
      }),
    ],
  })
  const { id, inventory, created_at } = await s.activate()
  assert.equal(
    inventory.map((item: Record<string, string>) => `${item.resource_kind} ${item.resource_name}`),
    [
      'window_layout Layout two-up',
      'agent amy',
      'agent.heartbeat amy',
      'agent zoe',
      'agent.soul zoe',
      'automation.job demo-kit/release-kit/default/j',
      'automation.trigger demo-kit/release-kit/default/t',
      'bridge.instance Chat room',
    ],
  )
  assert.equal(
    [...(await s.owned(id))].sort(),
    inventory.map((item: Record<string, string>) => `${item.resource_kind} ${item.resource_id}`).sort(),
  )
  const got = (await s.request('GET', `${URL}/${id}`)).body.activation
  assert.equal([got.inventory, got.created_at], [inventory, created_at])
  assert.equal((await s.request('GET', URL)).body.activations, [got])
})

test('A profile and scope exist once: a second activation is 409 with the id', async () => {
  const { id } = await s.activate()
  const body = await refused(409, 'bundle_activation_exists')
  assert.equal([body.details.activation, body.details.next], [id, `svc bundle get ${id}`])
})

test('Preview changes nothing and equals the later activation', async () => {
  const before = await s.request('GET', '/api/resources')
  const preview = await s.request('POST', '/api/bundles/preview', REQUEST)
  assert.is(preview.status, 200)
  assert.equal((await s.request('GET', '/api/resources')).body, before.body)
  const { created_at: _, updated_at: __, ...made } = await s.activate()
  const { created_at: ___, updated_at: ____, ...shown } = preview.body.activation
  assert.equal(shown, made)
  const again = (await s.request('POST', '/api/bundles/preview', REQUEST)).body.activation
  assert.is(again.id, made.id)
  for (const url of ['bundle_extension_not_found', 'bundle_not_found']) {
    const more = url === 'bundle_not_found' ? { bundle_name: 'x' } : { extension_name: 'x' }
    await refused(404, url, more, '/api/bundles/preview')
  }
})

test('Update: the version is positive (422) and current (409); it takes the current profile', async () => {
  const { id } = await s.activate()
  const patch = (expected_version: number) => s.request('PATCH', `${URL}/${id}`, { expected_version })
  assert.equal((await patch(0)).status, 422)
  assert.equal([(await patch(7)).status, (await patch(7)).body.code], [409, 'bundle_version_conflict'])
  assert.is(await s.outcome('PATCH', `${URL}/${id}`, {}), '400 invalid_request')
  assert.is(await s.outcome('PATCH', `${URL}/act_nope`, { expected_version: 1 }), '404 bundle_activation_not_found')
  await s.kit({ profiles: [profile({ jobs: [job('weekly')] })] })
  assert.is((await s.request('GET', `${URL}/${id}`)).body.activation.spec_drift, true)
  const { activation } = (await patch(1)).body
  assert.equal([activation.version, activation.spec_drift], [2, false])
  assert.equal(
    activation.jobs.map((one: { name: string }) => one.name),
    ['demo-kit/release-kit/default/weekly'],
  )
})

test('DELETE removes exactly the parts of the activation; parts of others stay', async () => {
  await s.kit({
    name: 'other-kit',
    agents: { amy: agentFile('amy') },
    profiles: [profile({ agents: [{ path: 'agents/amy' }], jobs: [], triggers: [] })],
  })
  const other = await s.activate({ extension_name: 'other-kit' })
  await agentRecord('mine', { kind: 'global' })
  const before = (await s.request('GET', '/api/resources')).body
  const { id } = await s.activate()
  assert.is(await s.outcome('DELETE', `${URL}/${id}`), '204')
  assert.equal((await s.request('GET', '/api/resources')).body, before)
  assert.is((await s.owned(other.id)).length, other.inventory.length)
  assert.is(await s.outcome('DELETE', `${URL}/${id}`), '404 bundle_activation_not_found')
  assert.is(await s.outcome('GET', `${URL}/${id}`), '404 bundle_activation_not_found')
  assert.is((await s.request('GET', '/api/automation/jobs')).body.jobs.length, 0)
})

test('Direct PUT and DELETE of activations are 403, of projections 403 for their source; a job keeps its switch', async () => {
  const activation = await s.activate()
  const own = await s.record('bundle.activation', activation.id)
  const put = { scope: own.scope, spec: own.spec, expected_version: own.version }
  assert.is(await s.outcome('PUT', `/api/resources/bundle.activation/${activation.id}`, put), '403 owner_only')
  const gone = { expected_version: own.version }
  assert.is(await s.outcome('DELETE', `/api/resources/bundle.activation/${activation.id}`, gone), '403 owner_only')
  for (const { resource_kind: kind, resource_id: id } of activation.inventory) {
    const { scope, spec, version } = await s.record(kind, id)
    const url = `/api/resources/${kind}/${id}`
    assert.is(await s.outcome('PUT', url, { scope, spec, expected_version: version }), '403 source_mismatch', kind)
    assert.is(await s.outcome('DELETE', url, { expected_version: version }), '403 source_mismatch', kind)
  }
  const url = `/api/automation/jobs/${activation.jobs[0].id}`
  assert.is(await s.outcome('PATCH', url, { prompt: 'Other.' }), '409 job_read_only')
  assert.is((await s.request('PATCH', url, { enabled: false })).body.job.enabled, false)
  assert.is((await s.request('GET', url)).body.job.source, 'package')
  assert.is(await s.outcome('DELETE', url), '409 job_read_only')
})

test('Sidecars: writes, deletes and rollbacks of package sidecars are 409 in every scope; reads show them', async () => {
  for (const where of [{}, inWorkspace(s.one)]) {
    await s.activate(where)
    for (const [which, text] of [
      ['soul', 'Calm.'],
      ['heartbeat', 'Inspect your inbox.'],
    ] as const) {
      const url = `/api/agents/planner/${which}`
      const read = async () => (await s.request('GET', `${url}?workspace_id=${s.one}`)).body
      const shown = await read()
      assert.equal([shown.validation_status, shown.body ?? shown.guidance_markdown], ['valid', text])
      assert.match(shown.source_path, /^\.svc\/bundles\/act_[0-9a-f]{16}\/agents\/planner\/(?:SOUL|HEARTBEAT)\.md$/)
      const change = { workspace_id: s.one, expected_digest: shown.digest }
      assert.is(await s.outcome('PUT', url, { ...change, body: 'Mine.' }), '409 sidecar_read_only')
      assert.is(await s.outcome('DELETE', url, change), '409 sidecar_read_only')
      const back = { ...change, revision_id: 'rev_1' }
      assert.is(await s.outcome('POST', `${url}/rollback`, back), '409 sidecar_read_only')
      assert.equal(await read(), shown)
    }
    for (const { id } of (await s.request('GET', URL)).body.activations) await s.request('DELETE', `${URL}/${id}`)
  }
})

test('A trigger of event webhook is refused when it is projected (422)', async () => {
  await s.kit({ profiles: [profile({ triggers: [trigger('hook', { event: 'webhook', endpoint_slug: 'x' })] })] })
  await refused(422, 'bundle_trigger_webhook')
  await refused(422, 'bundle_trigger_webhook', {}, '/api/bundles/preview')
})

test('Bridges are projected disabled; layouts have the derived id and the workspace in their document', async () => {
  const activation = await s.activate(inWorkspace(s.one))
  const { spec } = await s.record('bridge.instance', activation.bridges[0].id)
  assert.equal(
    [spec.enabled, spec.status, spec.source, spec.extension_name],
    [false, 'disabled', 'package', 'demo-kit'],
  )
  const [{ id }] = activation.layouts
  const shown = (await s.record('window_layout', id)).spec
  assert.equal([shown.id, shown.document.workspace_id], [id, s.one])
  const everywhere = await s.activate(inWorkspace(s.two))
  assert.is((await s.record('window_layout', everywhere.layouts[0].id)).spec.document.workspace_id, s.two)
})

test('A bridge defaults to the platform of its extension', async () => {
  const adapter = {
    capabilities: { provides: ['bridge.adapter'] },
    subprocess: { command: './x' },
    bridge: { platform: 'matrix', display_name: 'M' },
  }
  await s.kit({ manifest: adapter, profiles: [profile({ bridges: [bridge('chat', { platform: undefined })] })] })
  assert.is((await s.activate()).bridges[0].platform, 'matrix')
})

test('A foreign record under a derived id refuses the whole activation', async () => {
  const { activation } = (await s.request('POST', '/api/bundles/preview', REQUEST)).body
  const url = `/api/resources/automation.job/${activation.jobs[0].id}`
  const spec = { name: 'mine', agent_name: 'planner', prompt: 'x' }
  assert.is((await s.request('PUT', url, { scope: { kind: 'global' }, spec })).status, 201)
  await refused(409, 'bundle_record_taken')
})

test('Jobs and triggers are enabled by default and named by extension, bundle, profile and name', async () => {
  await s.kit({ profiles: [profile({ jobs: [job('a'), job('b', { enabled: false })] })] })
  const { jobs } = await s.activate()
  const byName = new Map(jobs.map((one: { name: string; enabled: boolean }) => [one.name, one.enabled]))
  assert.equal(
    [byName.get('demo-kit/release-kit/default/a'), byName.get('demo-kit/release-kit/default/b')],
    [true, false],
  )
})

test('A workspace with an activation is not deleted', async () => {
  await s.activate(inWorkspace(s.two))
  assert.is(await s.outcome('DELETE', `/api/workspaces/${s.two}`), '409 workspace_in_use')
})

test('One of two concurrent activations succeeds, the other gets 409', async () => {
  const both = await Promise.all([1, 2].map(() => s.request('POST', URL, REQUEST)))
  assert.equal(both.map(({ status }) => status).sort(), [201, 409])
})

test('An unknown or missing member of a body is 400', async () => {
  assert.is(await s.outcome('POST', URL, { ...REQUEST, workspce: 'x' }), '400 invalid_request')
  assert.is(await s.outcome('POST', URL, { extension_name: 'demo-kit' }), '400 invalid_request')
})

test.run()
