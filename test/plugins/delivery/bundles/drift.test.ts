import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, kind } from '../../../../kernel/plugin.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { REQUEST, type Scene, scene } from './bundles-scene.js'
import { agentFile, job, profile } from './kit.js'

const URL = '/api/bundles/activations'
const LIVE = { required: true, mode: 'live', channel_scopes: ['builders'] }

let s: Scene
test.before(async () => {
  s = await scene()
})
test.before.each(async () => {
  await s.kit()
})
test.after.each(async () => {
  for (const { id } of (await s.request('GET', URL)).body.activations) await s.request('DELETE', `${URL}/${id}`)
})
test.after(() => s.end())

const get = async (id: string) => (await s.request('GET', `${URL}/${id}`)).body.activation
const names = (list: readonly { name: string }[]) => list.map(({ name }) => name.split('/').at(-1))

test('Hash drift: a changed extension is projected again without a request; activation and log report it', async () => {
  const { id, jobs } = await s.activate()
  await s.kit({
    profiles: [profile({ jobs: [job('nightly', { prompt: 'Other.' }), job('weekly')], triggers: [], layouts: [] })],
  })
  const now = await get(id)
  assert.equal([now.version, now.spec_drift, names(now.jobs).sort()], [1, true, ['nightly', 'weekly']])
  assert.equal([now.triggers, now.layouts], [[], []])
  assert.is((await s.request('GET', `/api/automation/jobs/${jobs[0].id}`)).body.job.prompt, 'Other.')
  assert.ok(s.log.some(line => (line as { code?: string }).code === 'spec_hash_drift'))
  const { version } = await s.record('agent', now.agents[0].id)
  assert.is(version, 1, 'what is equal stays as it is')
  await s.kit()
  assert.is((await get(id)).spec_drift, false)
})

test('Requirement changes: the confirmation is cleared, the version advances, and projections stay until confirmed', async () => {
  await s.kit({ manifest: { network_participation: LIVE } })
  const { id, inventory, network_requirement_digest: first } = await s.activate({ confirm_network_requirement: true })
  const weekly = { profiles: [profile({ jobs: [job('weekly')] })] }
  await s.kit({ manifest: { network_participation: { ...LIVE, channel_scopes: ['x'] } }, ...weekly })
  const drifted = await get(id)
  assert.is(drifted.version, 2)
  assert.not.equal(drifted.network_requirement_digest, first)
  assert.equal([drifted.network_requirement_confirmed_by, drifted.inventory], [undefined, inventory])
  assert.match(drifted.diagnostics[0].message, /confirmation required/)
  assert.is((await s.record('bundle.activation', id)).spec.confirmed_by, undefined)

  const patch = (body: object) => s.request('PATCH', `${URL}/${id}`, { expected_version: 2, ...body })
  const refused = await patch({})
  assert.equal([refused.status, refused.body.code], [409, 'bundle_confirmation_required'])
  assert.is(refused.body.details.next, `svc bundle update ${id} --expected-version 2 --confirm-network-requirement`)
  const { activation } = (await patch({ confirm_network_requirement: true })).body
  assert.equal(
    [activation.version, activation.network_requirement_confirmed_by, names(activation.jobs)],
    [3, 'operator', ['weekly']],
  )
  assert.is(
    (await s.request('PATCH', `${URL}/${id}`, { expected_version: 3 })).status,
    200,
    'confirmed for this digest',
  )
  await s.until(async () => (await get(id)).diagnostics === undefined, 'nothing stands against it')
})

test('Requirement changes: a removed one needs no confirmation, a new one does', async () => {
  const { id } = await s.activate()
  await s.kit({ manifest: { network_participation: LIVE } })
  assert.match((await get(id)).diagnostics[0].message, /confirmation required/)
  await s.kit({ profiles: [profile({ jobs: [] })] })
  const after = await get(id)
  assert.equal([after.network_requirement_digest, after.jobs, after.diagnostics], ['', [], undefined])
})

test('A preview of an active bundle shows the current digest and clears the confirmation of another one', async () => {
  await s.kit({ manifest: { network_participation: LIVE } })
  const made = await s.activate({ confirm_network_requirement: true })
  const preview = async () => (await s.request('POST', '/api/bundles/preview', REQUEST)).body.activation
  assert.is((await preview()).network_requirement_confirmed_at, made.network_requirement_confirmed_at)
  await s.extensions.unload('demo-kit')
  await s.kit({ manifest: { network_participation: { ...LIVE, channel_scopes: [] } } })
  const shown = await preview()
  assert.not.equal(shown.network_requirement_digest, made.network_requirement_digest)
  assert.is(shown.network_requirement_confirmed_by, undefined)
})

test('A missing extension leaves the activation with a diagnostic, which ends when it returns', async () => {
  const { id, inventory } = await s.activate()
  await s.extensions.unload('demo-kit')
  await s.quiet()
  const left = await get(id)
  assert.equal([left.inventory, left.channels, left.spec_drift], [inventory, [], false])
  assert.match(left.diagnostics[0].message, /no extension "demo-kit"/)
  assert.is(await s.outcome('PATCH', `${URL}/${id}`, { expected_version: 1 }), '404 bundle_extension_not_found')
  await s.kit({ profiles: [profile({ name: 'another' })] })
  assert.match((await get(id)).diagnostics[0].message, /no profile "default"/)
  await s.kit()
  assert.is((await get(id)).diagnostics, undefined)
  await s.extensions.unload('demo-kit')
  assert.is(await s.outcome('DELETE', `${URL}/${id}`), '204')
  assert.equal(await s.owned(), [])
})

test('A change that conflicts with an agent changes nothing and is a diagnostic until the agent is gone', async () => {
  const { id, inventory } = await s.activate()
  const own = { scope: { kind: 'global' }, spec: { name: 'amy', prompt: 'x' }, expected_version: 0 }
  await s.request('PUT', '/api/resources/agent/own-amy', own)
  const two = [{ path: 'agents/planner' }, { path: 'agents/amy' }]
  const changed = {
    agents: { planner: agentFile('planner'), amy: agentFile('amy') },
    profiles: [profile({ agents: two })],
  }
  await s.kit(changed)
  const left = await get(id)
  assert.equal(left.inventory, inventory)
  assert.match(left.diagnostics[0].message, /an agent "amy" already/)
  await s.request('DELETE', '/api/resources/agent/own-amy', { expected_version: 1 })
  await s.until(async () => names((await get(id)).agents).includes('amy'), 'it is tried again')
})

test('An activation survives a restart: nothing is rewritten, and a change made meanwhile is applied', async () => {
  const home = await temporaryFolder('bundles-restart')
  const one = await scene({ home })
  await one.kit()
  const { id } = await one.activate()
  const before = (await one.request('GET', '/api/resources')).body
  await one.end()
  const two = await scene({ home })
  assert.match((await two.request('GET', `${URL}/${id}`)).body.activation.diagnostics[0].message, /no extension/)
  await two.kit()
  assert.equal((await two.request('GET', '/api/resources')).body, before)
  assert.is((await two.request('GET', `${URL}/${id}`)).body.activation.diagnostics, undefined)
  await two.end()
  const three = await scene({ home })
  await three.kit({ profiles: [profile({ jobs: [job('weekly')] })] })
  const { activation } = (await three.request('GET', `${URL}/${id}`)).body
  assert.equal([names(activation.jobs), activation.spec_drift, activation.diagnostics], [['weekly'], true, undefined])
  await three.end()
  await rm(home, { recursive: true })
})

test('The published records of an extension are removed when it was removed while no daemon ran', async () => {
  const home = await temporaryFolder('bundles-sweep')
  const one = await scene({ home })
  await one.kit()
  await one.kit({ name: 'other-kit' })
  await one.end()
  const two = await scene({ home })
  assert.is((await two.request('GET', '/api/resources/bundle')).body.records.length, 2)
  await two.kit({ name: 'other-kit' })
  const { records } = (await two.request('GET', '/api/resources/bundle')).body
  assert.equal(
    records.map((record: { source: unknown }) => record.source),
    [{ kind: 'extension', id: 'other-kit' }],
  )
  await two.end()
  await rm(home, { recursive: true })
})

test('A failed projection at runtime gives 201 with a diagnostic, is never undone, and is retried', async () => {
  let broken = true
  const layouts = definePlugin({
    name: 'acme.layouts',
    version: '1.0.0',
    service: async () => class {},
  }).surface({
    reconcilers: [
      {
        kind: kind({
          name: 'window_layout',
          spec: (await import('../../../../plugins/desk/window-manager/api.js')).LayoutKind.spec,
          maxBytes: 1,
        }),
        run: () => {
          if (broken) throw new Error('the screen is dark')
        },
      },
    ],
  })
  const one = await scene({ plugins: [layouts] })
  await one.kit()
  const activation = await one.activate()
  assert.equal(activation.diagnostics, [
    { resource_kind: 'window_layout', resource_id: activation.layouts[0].id, message: 'the screen is dark' },
  ])
  assert.is((await one.owned(activation.id)).length, activation.inventory.length)
  broken = false
  await one.until(
    async () => (await one.request('GET', `${URL}/${activation.id}`)).body.activation.diagnostics === undefined,
    'the layout is taken up',
  )
  await one.end()
})

test('status names kinds that nothing projects', async () => {
  const { kinds } = (await s.request('GET', '/api/status')).body.health.reconcile
  const projected = (name: string) => kinds.find((one: { kind: string }) => one.kind === name)?.projected
  assert.equal(
    [
      'automation.trigger',
      'bridge.instance',
      'window_layout',
      'automation.job',
      'agent',
      'bundle',
      'bundle.activation',
    ].map(projected),
    [true, true, false, true, true, true, true],
  )
})

test.run()
