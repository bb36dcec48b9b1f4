// timeout: 240s

import { mkdir, realpath, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { annotationsOf, RouteTool } from '../../../../kernel/kit/annotations/index.js'
import type { Route } from '../../../../kernel/plugin.js'
import { inTree } from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { skillText } from '../../agents/skills/scene.js'
import { profile, writeKit } from '../../delivery/bundles/kit.js'
import { type Caller, openScene, type Scene, until, type Wire } from './scene.js'

/** Plugins of the scene by itself. */
const THERE = ['daemon', 'resources', 'workspaces', 'providers', 'agents', 'sessions', 'mcp', 'auth', 'identity']
const others = inTree.filter(({ name }) => ![...THERE, 'extensions', 'tools'].includes(name))

/** Two workspaces; `ada` works in the first, and all of these are of the second. */
interface Elsewhere {
  readonly id: string
  readonly root: string
  readonly session: string
  readonly job: string
  readonly trigger: string
  readonly run: string
  readonly activation: string
  readonly approval: string
  readonly artifact: string
  readonly record: string
}

const test = suite<{ scene: Scene; ada: Caller; there: Elsewhere }>('agent view of other workspaces')

test.before(async context => {
  const config = { tools: { policy: { external_default: 'enabled' } } }
  const scene = await openScene({ extension: true, plugins: others, config })
  context.scene = scene
  context.ada = await scene.agent('ada', { permissions: 'approve-all' })
  context.there = await fill(scene)
})
test.after(({ scene }) => scene.close())

async function fill(scene: Scene): Promise<Elsewhere> {
  const root = path.join(await realpath(await temporaryFolder('root')), 'elsewhere-9f')
  const { operator } = scene
  const ok = async (method: string, url: string, body?: unknown): Promise<Wire> => {
    const reply = await operator(method, url, body)
    if (reply.status >= 300) throw new Error(`${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  for (const [name, text] of [
    ['.svc/skills/far-skill/SKILL.md', skillText('far-skill')],
    ['.svc/agents/far-agent/AGENT.md', '---\nname: far-agent\n---\nYou are far away.\n'],
    ['.svc/mcp.json', JSON.stringify({ mcpServers: { 'far-server': { command: 'true' } } })],
  ] as const) {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true })
    await writeFile(path.join(root, name), text)
  }
  const { workspace } = await ok('POST', '/api/workspaces', { root_dir: root })
  const { id } = workspace
  const { trust } = await ok('GET', `/api/workspaces/${id}/trust`)
  await ok('PUT', `/api/workspaces/${id}/trust`, { digest: trust.digest })
  await writeKit(path.join(scene.world.home, 'extensions/demo-kit'), {
    profiles: [{ ...profile(), layouts: [], bridges: [] }],
  })
  const build = await realpath(await temporaryFolder('build'))
  await writeFile(path.join(build, 'extension.toml'), 'name = "far-link"\nversion = "1.0.0"\n')
  await ok('POST', `/api/extensions/dev?workspace=${id}`, {
    origin_path: build,
    generation_hash: `sha256:${'0'.repeat(64)}`,
  })
  const wish = { extension_name: 'demo-kit', bundle_name: 'release-kit', profile_name: 'default' }
  await until(async () => (await operator('GET', '/api/bundles/catalog')).body.bundles.length > 0, 'the bundle')
  const { activation } = await ok('POST', '/api/bundles/activations', { ...wish, scope: 'workspace', workspace: id })
  const where = { scope: 'workspace', workspace_id: id, agent_name: 'ada', prompt: 'Work.' }
  const { job } = await ok('POST', '/api/automation/jobs', {
    ...where,
    name: 'far-job',
    schedule: { mode: 'every', interval: '24h' },
  })
  const { trigger } = await ok('POST', '/api/automation/triggers', {
    ...where,
    name: 'far-trigger',
    event: 'session.stopped',
  })
  const { run } = await ok('POST', `/api/automation/jobs/${job.id}/trigger`)
  const { session } = await ok('POST', '/api/sessions', { workspace: id, agent_name: 'ada', sandbox: 'none' })
  const here = { session_id: session.id, workspace_id: id }
  const large = await ok('POST', '/api/tools/ext__clock__large/invoke', { input: { bytes: 300_000 }, ...here })
  const [, artifact = ''] = /(tar_[0-9a-f]{16})/.exec(JSON.stringify(large)) ?? []
  const waits = (
    await operator('POST', '/api/tools/service__agent_delete/invoke', { input: { name: 'far-agent' }, ...here })
  ).body
  const { record } = await ok('PUT', '/api/resources/acme.thing/far-record', {
    scope: { kind: 'workspace', id },
    spec: { of: 'there' },
  })
  return {
    id,
    root,
    artifact,
    session: session.id,
    job: job.id,
    trigger: trigger.id,
    run: run.id,
    activation: activation.id,
    approval: waits.error.details.approval_id,
    record: record.id,
  }
}

/** An id of the same form that nothing has. */
const noneLike = (id: string) =>
  id.replace(/[0-9a-f](?=[^0-9a-f]*$)/, last => (last === '0' ? '1' : '0')).replace('far-', 'no-')

/** A tool that needs a person is called with what a person gives for it. */
async function call({ ada, scene }: { ada: Caller; scene: Scene }, tool: string, input: object) {
  const first = await ada.call(tool, input)
  if (first.status !== 202) return first
  const place = { session_id: ada.id, input }
  const minted = await scene.operator('POST', `/api/tools/${tool}/approvals`, place)
  return ada.call(tool, input, { approval_token: minted.body.approval.approval_token })
}

/** The same answer for what is elsewhere as for what is nowhere. */
async function same(what: string, id: string, ask: (id: string) => Promise<{ status: number; body: Wire }>) {
  const none = noneLike(id)
  assert.ok(none !== id && id !== '', `${what} ${id}`)
  const there = await ask(id)
  const nowhere = await ask(none)
  assert.ok(there.status >= 400, `${what}: ${there.status} ${JSON.stringify(there.body)}`)
  const plain = (reply: { status: number; body: Wire }, of: string) =>
    JSON.stringify([reply.status, { ...reply.body, diagnostic: undefined }]).replaceAll(of, 'ID')
  assert.is(plain(there, id), plain(nowhere, none), what)
}

test('a native tool answers for another workspace as for a missing thing', async context => {
  const { there, scene } = context
  const tools: readonly (readonly [string, keyof Elsewhere | string, string, object?])[] = [
    ['automation_jobs_info', there.job, 'id'],
    ['automation_jobs_history', there.job, 'id'],
    ['automation_jobs_update', there.job, 'id', { prompt: 'Mine.' }],
    ['automation_jobs_trigger', there.job, 'id'],
    ['automation_jobs_delete', there.job, 'id'],
    ['automation_triggers_info', there.trigger, 'id'],
    ['automation_triggers_history', there.trigger, 'id'],
    ['automation_triggers_update', there.trigger, 'id', { prompt: 'Mine.' }],
    ['automation_triggers_delete', there.trigger, 'id'],
    ['automation_runs_info', there.run, 'id'],
    ['bundles_info', there.activation, 'id'],
    ['bundles_update', there.activation, 'id', { expected_version: 1 }],
    ['bundles_deactivate', there.activation, 'id'],
    ['resources_info', there.record, 'id', { kind: 'acme.thing' }],
    ['skill_info', 'far-skill', 'name'],
    ['skill_view', 'far-skill', 'name'],
    ['skill_shadows', 'far-skill', 'name'],
    ['agent_info', 'far-agent', 'name'],
    ['session_info', there.session, 'session_id'],
    ['session_events', there.session, 'session_id'],
    ['session_transcript', there.session, 'session_id'],
    ['tool_artifact_read', there.artifact, 'artifact_id'],
    ['tool_approval_status', there.approval, 'id'],
    ['tool_approval_cancel', there.approval, 'id'],
    ['tool_info', 'mcp__far_server__far-tool', 'id'],
    ['workspace_info', there.id, 'id'],
    ['extensions_info', 'far-link', 'name'],
    ['extensions_inventory', 'far-link', 'name'],
    ['extensions_provenance', 'far-link', 'name'],
  ]
  for (const [name, id, member, more = {}] of tools)
    await same(name, id, one => call(context, `service__${name}`, { ...more, [member]: one }))
  // All of it is there as before.
  for (const url of [
    `/api/automation/jobs/${there.job}`,
    `/api/automation/triggers/${there.trigger}`,
    `/api/automation/runs/${there.run}`,
    `/api/bundles/activations/${there.activation}`,
    `/api/tools/approvals/${there.approval}`,
    `/api/workspaces/${there.id}/tool-artifacts/${there.artifact}`,
    `/api/skills/far-skill?workspace=${there.id}`,
    `/api/extensions/far-link?workspace=${there.id}`,
  ])
    assert.is((await scene.operator('GET', url)).status, 200, url)
})

test('the routes on the agent socket answer for another workspace as for a missing thing', async ({ ada, there }) => {
  const get = (url: string) => ada.ask('GET', url)
  await same('an approval', there.approval, id => get(`/api/tools/approvals/${id}`))
  await same('its withdrawal', there.approval, id => ada.ask('POST', `/api/tools/approvals/${id}/cancel`))
  await same('its decision', there.approval, id =>
    ada.ask('POST', `/api/tool-approvals/${id}/decide`, { decision: 'allow' }),
  )
  await same('a skill', 'far-skill', id => get(`/api/skills/${id}?workspace=${there.id}`))
  await same('its text', 'far-skill', id => get(`/api/skills/${id}/content?workspace=${there.id}`))
  await same('a workspace', there.id, id => get(`/api/workspaces/${id}/sessions/${ada.id}/tools`))
  await same('a session', there.session, id => get(ada.at.replace(ada.id, `${id}/tools`)))
  await same('a session of a call', there.session, id => ada.call('service__agent_list', {}, { session_id: id }))
  for (const reference of [there.id, 'elsewhere-9f', there.root])
    await same(`the workspace of a call as ${reference}`, reference, workspace =>
      ada.call('service__agent_list', {}, { workspace_id: workspace }),
    )
  await same('an artifact', there.artifact, id => get(`/api/workspaces/${there.id}/tool-artifacts/${id}`))
})

/** Tools that read and whose input an agent can leave empty. */
const reading = inTree
  .flatMap(({ surface }) =>
    (surface.routes ?? []).flatMap(route =>
      annotationsOf(route, RouteTool).map(tool => ({ ...tool, route: `${route.method} ${route.path}` })),
    ),
  )
  .filter(({ route, visibility }) => {
    const names = [...route.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name)
    const own = /\/workspaces\/\{id\}/.test(route) ? ['id'] : []
    return (
      route.startsWith('GET ') &&
      visibility !== 'operator' &&
      names.every(name => [...own, 'workspace_id', 'session_id'].includes(name as string))
    )
  })

test('no list for an agent contains another workspace', async context => {
  const { there } = context
  assert.ok(reading.length > 20, `${reading.length} tools`)
  const routes = new Map(
    inTree.flatMap(({ surface }) => (surface.routes ?? []).map(one => [`${one.method} ${one.path}`, one as Route])),
  )
  const words = ['far-', 'elsewhere-9f', ...Object.values(there)]
  for (const { name, route } of reading) {
    assert.ok(routes.has(route), route)
    const { status, body } = await call(context, `service__${name}`, {})
    assert.ok(status === 200 || status === 400 || status === 404, `${name}: ${status} ${JSON.stringify(body)}`)
    const text = JSON.stringify(body)
    for (const word of words)
      assert.not.ok(
        text.includes(word),
        `${name} has ${word}: ${text.slice(Math.max(0, text.indexOf(word) - 200), text.indexOf(word) + 100)}`,
      )
  }
})

test('an agent sees its own workspace and global things', async context => {
  const { scene, ada } = context
  const more = { name: 'everywhere', agent_name: 'ada', prompt: 'Work.', schedule: { mode: 'every', interval: '24h' } }
  const own = { ...more, name: 'own', scope: 'workspace', workspace_id: scene.world.workspaceId }
  for (const body of [own, { ...more, scope: 'global' }]) {
    const { job } = (await scene.operator('POST', '/api/automation/jobs', body)).body
    const { status, body: reply } = await ada.call('service__automation_jobs_info', { id: job.id })
    assert.is(status, 200, JSON.stringify(reply))
    assert.is(reply.result.structured.job.id, job.id)
  }
  const { status, body } = await ada.call('service__extensions_info', { name: 'clock' })
  assert.equal([status, body.result?.structured.extension.name], [200, 'clock'], JSON.stringify(body))
})

test.run()
