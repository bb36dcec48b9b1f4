import { mkdirSync, readFileSync, renameSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { annotationOf } from '../../../../kernel/kit/annotations/index.js'
import { UndoKind } from '../../../../plugins/desk/changes/api.js'
import { at, lasting } from '../../../../plugins/desk/changes/members.js'
import {
  automation,
  changes,
  extensions,
  heartbeats,
  hooks,
  inTree,
  notifications,
  sandboxes,
  settings,
  sidecars,
  skills,
  tasks,
  trust,
} from '../../../../plugins/index.js'
import { entries } from '../../../cli/tree.js'
import { openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

const plugins = [
  settings,
  automation,
  tasks,
  hooks,
  sidecars,
  skills,
  heartbeats,
  notifications,
  sandboxes,
  extensions,
  changes,
]

async function inWorld(use: (world: World, act: Act) => Promise<void>, more: typeof plugins = []): Promise<void> {
  const world = await openWorld({ plugins: [...plugins, ...more], config: { log: { level: 'warn' } } })
  try {
    await use(world, async (method, url, body) => {
      const reply = await world.kernel.request(method as 'POST', url, body)
      assert.ok(reply.status < 300, `${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
      return reply.body
    })
  } finally {
    await world.close()
  }
}
type Act = (method: string, url: string, body?: unknown) => Promise<Reply>

/** A change, and where it shows. */
interface Case {
  readonly what: string
  /** Path of the state, and the member that counts. */
  readonly read: string
  readonly of: string
  readonly change: readonly [method: string, url: string, body?: unknown]
  /** Before the change: what makes that there is something to change. */
  readonly setUp?: readonly (readonly [method: string, url: string, body?: unknown])[]
}

const JOB = {
  name: 'n1',
  schedule: { mode: 'every', interval: '1d' },
  prompt: 'hi',
  agent_name: 'a',
  scope: 'workspace',
}
const hook = (command: string) => ({
  declaration: { name: 'h1', event: 'session.post_stop', matcher: {}, command },
})
const preset = { name: 'ops', events: ['task.run_failed'], targets: [] }

function cases(workspace: string): readonly Case[] {
  const job = { ...JOB, workspace_id: workspace }
  const agents = '/api/agents'
  return [
    {
      what: 'a key of the configuration',
      read: '/api/settings/keys/log.level',
      of: 'value',
      change: ['PATCH', '/api/settings/keys', { changes: [{ key: 'log.level', value: 'debug' }] }],
    },
    {
      what: 'a key that was not in the file',
      read: '/api/settings/keys/limits.max_concurrent_agents',
      of: 'source',
      change: ['PATCH', '/api/settings/keys', { changes: [{ key: 'limits.max_concurrent_agents', value: 3 }] }],
    },
    {
      what: 'two keys at once',
      read: '/api/settings/keys?prefix=log.',
      of: 'keys',
      change: [
        'PATCH',
        '/api/settings/keys',
        {
          changes: [
            { key: 'log.level', value: 'error' },
            { key: 'log.max_backups', value: 2 },
          ],
        },
      ],
    },
    {
      what: 'a key in the file of an agent',
      read: `/api/agents/keyed?workspace=${workspace}`,
      of: 'agent.permissions',
      setUp: [['POST', agents, { scope: 'workspace', workspace, agent: { name: 'keyed', prompt: 'x' } }]],
      change: [
        'PATCH',
        '/api/settings/keys',
        {
          changes: [{ key: 'permissions.mode', value: 'deny-all' }],
          target: 'workspace-agent-file',
          workspace_id: workspace,
          agent_name: 'keyed',
        },
      ],
    },
    {
      what: 'a section',
      read: '/api/settings/automation',
      of: 'config.enabled',
      change: ['PATCH', '/api/settings/automation', { config: { enabled: false } }],
    },
    {
      what: 'a hook that is new',
      read: '/api/settings/hooks/h1',
      of: 'hook',
      change: ['PUT', '/api/settings/hooks/h1', hook('/bin/true')],
    },
    {
      what: 'a hook that is replaced',
      read: '/api/settings/hooks/h2',
      of: 'hook.declaration',
      setUp: [['PUT', '/api/settings/hooks/h2', { declaration: { ...hook('/bin/true').declaration, name: 'h2' } }]],
      change: ['PUT', '/api/settings/hooks/h2', { declaration: { ...hook('/bin/false').declaration, name: 'h2' } }],
    },
    {
      what: 'a sandbox profile that is deleted',
      read: '/api/settings/sandboxes/tight',
      of: 'sandbox.profile',
      setUp: [['PUT', '/api/settings/sandboxes/tight', { profile: { backend: 'local' } }]],
      change: ['DELETE', '/api/settings/sandboxes/tight'],
    },
    {
      what: 'the prompt of a job',
      read: '/api/automation/jobs/{made}',
      of: 'job.prompt',
      setUp: [['POST', '/api/automation/jobs', { ...job, name: 'n2' }]],
      change: ['PATCH', '/api/automation/jobs/{made}', { prompt: 'bye', enabled: false }],
    },
    {
      what: 'a job that is new',
      read: '/api/automation/jobs',
      of: 'jobs',
      change: ['POST', '/api/automation/jobs', job],
    },
    {
      what: 'a trigger that is new',
      read: '/api/automation/triggers',
      of: 'triggers',
      change: [
        'POST',
        '/api/automation/triggers',
        {
          name: 't1',
          event: 'session.stopped',
          prompt: 'look',
          agent_name: 'a',
          scope: 'workspace',
          workspace_id: workspace,
        },
      ],
    },
    {
      what: 'the name of a workspace',
      read: `/api/workspaces/${workspace}`,
      of: 'workspace',
      change: ['PATCH', `/api/workspaces/${workspace}`, { name: 'other', default_agent: 'a' }],
    },
    {
      what: 'an agent that is new',
      read: agents,
      of: 'agents',
      change: ['POST', agents, { scope: 'global', agent: { name: 'toy', prompt: 'Play.' } }],
    },
    {
      what: 'an agent that is deleted',
      read: `${agents}/gone`,
      of: 'agent.model',
      setUp: [['POST', agents, { scope: 'global', agent: { name: 'gone', prompt: 'Play.', model: 'm1' } }]],
      change: ['DELETE', `${agents}/gone`],
    },
    {
      what: 'a persona that is new',
      read: `${agents}/toy2/soul`,
      of: 'present',
      setUp: [['POST', agents, { scope: 'global', agent: { name: 'toy2', prompt: 'Play.' } }]],
      change: ['PUT', `${agents}/toy2/soul`, { body: 'Be kind.\n', expected_digest: '' }],
    },
    {
      what: 'a switch of the scheduler',
      read: '/api/scheduler',
      of: 'scheduler.paused',
      change: ['POST', '/api/scheduler/pause', {}],
    },
    {
      what: 'a preset that is new',
      read: '/api/notifications/presets',
      of: 'presets',
      change: ['POST', '/api/notifications/presets', preset],
    },
    {
      what: 'a preset that is changed',
      read: '/api/notifications/presets/ops2',
      of: 'preset.filter',
      setUp: [['POST', '/api/notifications/presets', { ...preset, name: 'ops2' }]],
      change: ['PUT', '/api/notifications/presets/ops2', { filter: 'severity >= error' }],
    },
    {
      what: 'the budget of an agent',
      read: '/api/budgets/agent/a',
      of: 'budget.limit',
      change: ['PUT', '/api/budgets/agent/a', { cost_usd: 5 }],
    },
  ]
}

test('a changed value is restored, and the undo is undone like any other change', async () => {
  await inWorld(async world => {
    await world.agent('a')
    const failures: string[] = []
    for (const { what, read, of, change, setUp = [] } of cases(world.workspaceId)) {
      let made = ''
      const act = async (method: string, url: string, body?: unknown) => {
        const reply = await world.kernel.request(method as 'POST', url.replace('{made}', made), body)
        made = reply.body?.job?.id ?? made
        if (reply.status >= 300)
          failures.push(`${what}: ${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
      }
      const look = async () => lasting(at((await world.kernel.request('GET', read.replace('{made}', made))).body, of))
      for (const [method, url, body] of setUp) await act(method, url, body)
      const before = await look()
      const [method, url, body] = change
      await act(method, url, body)
      const after = await look()
      const undone = await world.kernel.request('POST', '/api/changes/last/undo', {})
      const then = await look()
      try {
        assert.is.not(JSON.stringify(after), JSON.stringify(before), 'the change shows')
        assert.is(undone.status, 200, JSON.stringify(undone.body))
        assert.equal(undone.body.differs, [])
        assert.equal(then, before)
        assert.is(
          (await world.kernel.request('GET', `/api/changes/${undone.body.change.id}`)).body.change.state,
          'undone',
        )
        const again = await world.kernel.request('POST', `/api/changes/${undone.body.undone_by}/undo`, {})
        assert.is(again.status, 200, JSON.stringify(again.body))
      } catch (error) {
        failures.push(`${what}: ${(error as Error).message}\n${JSON.stringify(undone.body).slice(0, 400)}`)
      }
    }
    assert.equal(failures, [])
  })
})

test('an undo of the newest change names a newer request that is not recorded, also after a restart', async () => {
  await inWorld(async (world, act) => {
    const undo = async (id: string) => (await act('POST', `/api/changes/${id}/undo`, {})) as Reply
    const make = (name: string) => act('POST', '/api/notifications/presets', { ...preset, name })
    await make('first')
    const task = await act('POST', '/api/tasks', { title: 't', scope: 'workspace', workspace: world.workspaceId })
    const { change, undone_by, notes } = await undo('last')
    assert.is(change.subject, 'notifications/first')
    assert.equal(notes, [`task.created of ${task.task.id} is newer; it is not recorded and stays as it is`])
    assert.is((await undo(undone_by)).notes, undefined)
    await make('second')
    assert.is((await undo('last')).notes, undefined)
    await make('third')
    await act('DELETE', `/api/tasks/${task.task.id}`)
    await world.restart()
    assert.match((await undo('last')).notes?.[0], /^task\.\w+ of .* is newer; it is not recorded/)
    await make('fourth')
    await world.restart()
    assert.is((await undo('last')).notes, undefined)
  })
})

test('a workspace that a path registered is deleted by an undo; one that was found is no change', async () => {
  await inWorld(async (world, act) => {
    const outer = path.join(path.dirname(world.root), 'undo-outer')
    const inner = path.join(outer, 'app')
    mkdirSync(path.join(inner, '.git'), { recursive: true })
    const roots = async () => (await act('GET', '/api/workspaces')).workspaces.map((one: Reply) => one.root_dir)
    const before = await roots()
    const count = async () => (await act('GET', '/api/changes')).changes.length
    const none = await count()
    for (const url of ['/api/workspaces/resolve', '/api/workspaces/place']) {
      const { workspace } = await act('POST', url, { path: url.endsWith('place') ? inner : outer })
      for (const known of [path.join(workspace.root_dir, 'src'), workspace.root_dir])
        await act('POST', '/api/workspaces/resolve', { path: known })
      await act('POST', '/api/workspaces/resolve', { path: workspace.id })
      await act('POST', '/api/workspaces/place', { path: workspace.root_dir })
      assert.equal(await roots(), [...before, workspace.root_dir])
      await act('POST', '/api/changes/last/undo', {})
      assert.equal(await roots(), before)
    }
    assert.is((await count()) - none, 4, 'two registrations and their undos')
  })
})

test('only the request that registered a folder can be undone by its deletion', async () => {
  await inWorld(async (world, act) => {
    const [first, second] = ['undo-first', 'undo-second'].map(name => path.join(path.dirname(world.root), name))
    mkdirSync(first as string)
    const resolve = async (path: unknown) => (await act('POST', '/api/workspaces/resolve', { path })).workspace
    const made = async () => (await act('GET', '/api/changes')).changes.map((one: Reply) => one.request)
    const before = await made()
    const found = await Promise.all([1, 2, 3].map(() => resolve(first)))
    assert.is(new Set(found.map(({ id }) => id)).size, 1)
    assert.equal(await made(), ['POST /api/workspaces/resolve', ...before], 'one of three at once registered it')
    renameSync(first as string, second as string)
    assert.is((await resolve(second)).id, found[0].id, 'the workspace of a moved folder is kept')
    assert.equal(await made(), ['POST /api/workspaces/resolve', ...before])
    const refused = await world.kernel.request('POST', '/api/changes/last/undo', {})
    assert.is(refused.body.code, 'undo_outdated')
  })
})

test('a registration that was planned can be undone', async () => {
  await inWorld(async (world, act) => {
    const folder = path.join(path.dirname(world.root), 'undo-planned')
    mkdirSync(folder)
    const request = { method: 'POST', path: '/api/workspaces/resolve', body: { path: folder } }
    const { plan } = await act('POST', '/api/changes/plan', request)
    assert.equal(plan.changes_nothing, false)
    const headers = { 'svc-plan': plan.digest }
    const apply = () => world.kernel.kernel.inject({ method: 'POST', url: request.path, headers, body: request.body })
    const { id } = JSON.parse((await apply()).body).workspace
    assert.is((await apply()).status, 409, 'the plan holds once')
    await act('POST', '/api/changes/last/undo', {})
    assert.is((await world.kernel.request('GET', `/api/workspaces/${id}`)).status, 404)
  })
})

test('a plan shows the changes of a request, and the request with its digest refuses another state', async () => {
  await inWorld(async (world, act) => {
    await world.agent('a')
    const { job } = await act('POST', '/api/automation/jobs', { ...JOB, workspace_id: world.workspaceId })
    const url = `/api/automation/jobs/${job.id}`
    const request = { method: 'PATCH', path: url, body: { prompt: 'bye' } }
    const { plan } = await act('POST', '/api/changes/plan', request)
    assert.equal(plan.members, [{ member: 'prompt', before: '"hi"', after: '"bye"' }])
    assert.ok(plan.can_be_undone)
    assert.is((await act('GET', url)).job.prompt, 'hi', 'nothing is changed')
    const apply = (body: unknown, digest = plan.digest) =>
      world.kernel.kernel.inject({ method: 'PATCH', url, headers: { 'svc-plan': digest }, body })
    assert.match(JSON.parse((await apply({ prompt: 'bye' }, 'no digest')).body).error, /takes the digest/)
    assert.is(JSON.parse((await apply({ prompt: 'something else' })).body).code, 'plan_outdated')
    await act('PATCH', url, { prompt: 'meanwhile' })
    const late = await apply({ prompt: 'bye' })
    assert.is(late.status, 409)
    assert.is((await act('GET', url)).job.prompt, 'meanwhile')
    await act('PATCH', url, { prompt: 'hi' })
    assert.is((await apply({ prompt: 'bye' })).status, 200)
    assert.is((await act('GET', url)).job.prompt, 'bye')
  })
})

test('a plan refuses an invalid request, and names missing things', async () => {
  await inWorld(async world => {
    const plan = (body: unknown) => world.kernel.request('POST', '/api/changes/plan', body)
    const wrong = await plan({ method: 'PATCH', path: '/api/automation/jobs/job_1', body: { prompt: 7 } })
    assert.is(wrong.status, 400)
    assert.match(wrong.body.error, /prompt/)
    assert.is((await plan({ method: 'POST', path: '/api/nothing' })).status, 404)
    assert.is((await plan({ method: 'GET', path: '/api/status' })).status, 400)
    const absent = await plan({ method: 'DELETE', path: '/api/automation/jobs/job_1' })
    assert.is(absent.body.plan.exists, false)
    const search = await plan({ method: 'POST', path: '/api/agents/a/soul/validate', body: { body: 'x' } })
    assert.ok(search.body.plan.changes_nothing)
  })
})

test('an undo is refused after a further change unless forced, and never done twice', async () => {
  await inWorld(async (world, act) => {
    const { workspaceId } = world
    const url = `/api/workspaces/${workspaceId}`
    await act('PATCH', url, { name: 'one' })
    const [{ id }] = (await act('GET', '/api/changes')).changes
    await act('PATCH', url, { name: 'two' })
    const undo = (body: unknown) => world.kernel.request('POST', `/api/changes/${id}/undo`, body)
    const refused = await undo({})
    assert.is(refused.body.code, 'undo_outdated')
    assert.match(refused.body.details.next, /^svc undo req_[0-9a-f]{16} --force$/)
    assert.is((await act('GET', url)).workspace.name, 'two')
    assert.is((await undo({ force: true })).status, 200)
    assert.is.not((await act('GET', url)).workspace.name, 'two')
    assert.is((await undo({})).body.code, 'undo_impossible')
    assert.is((await world.kernel.request('POST', '/api/changes/req_0/undo', {})).status, 404)
  })
})

test('an active agent keeps its definition: the undo waits for the end of its turn', async () => {
  await inWorld(async (world, act) => {
    await act('POST', '/api/agents', {
      scope: 'workspace',
      workspace: world.workspaceId,
      agent: { name: 'busy', prompt: 'one' },
    })
    await world.agent('busy')
    const url = `/api/agents/busy?workspace=${world.workspaceId}`
    const { agent } = await act('GET', url)
    await act('PUT', '/api/agents/busy', {
      agent: { name: 'busy', prompt: 'two', command: agent.command, permissions: 'approve-all' },
      expected_digest: agent.definition_digest,
      workspace: world.workspaceId,
    })
    const { at } = await world.session('busy')
    const gate = world.gate()
    const turn = world.prompt(at, gate.line)
    await world.until(at, event => event.type === 'user_message')
    const { changes: all } = await act('GET', '/api/changes')
    const [put] = (all as Reply[]).filter(({ request }) => request.startsWith('PUT /api/agents'))
    const early = await world.kernel.request('POST', `/api/changes/${put?.id}/undo`, {})
    assert.is(early.body.code, 'undo_refused')
    assert.match(early.body.error, /at work/)
    await gate.open()
    await turn
    assert.is((await world.kernel.request('POST', `/api/changes/${put?.id}/undo`, {})).status, 200)
    assert.match((await act('GET', url)).agent.prompt, /You do what you are told/)
  })
})

test('secrets are not kept: a change with one cannot be undone', async () => {
  await inWorld(async (world, act) => {
    const hidden = 'sk-proj-abcdefghijklmnop0123456789'
    const declaration = { name: 'h3', event: 'session.post_stop', matcher: {}, command: '/bin/true' }
    await act('PUT', '/api/settings/hooks/h3', { declaration: { ...declaration, args: [hidden] } })
    await act('PUT', '/api/settings/hooks/h3', { declaration })
    const [last] = (await act('GET', '/api/changes')).changes
    assert.is(last.state, 'kept')
    assert.match(last.reason, /secret/)
    const { change } = await act('GET', `/api/changes/${last.id}`)
    assert.equal(change.members, [])
    assert.not.match(JSON.stringify((await act('GET', '/api/changes?limit=200')).changes), hidden)
    await world.restart()
    assert.not.ok(readFileSync(path.join(world.home, 'svc.db')).includes(hidden))
  })
})

test('a switch in a workspace is undone there, although the state of all workspaces stays', async () => {
  const use = async ({ workspaceId }: World, act: Act) => {
    const trusted = `/api/workspaces/${workspaceId}/trust`
    await act('PUT', trusted, { digest: (await act('GET', trusted)).trust.digest })
    const skill = '/api/skills/svc-session'
    const here = `?workspace=${workspaceId}`
    const state = async () => (await act('GET', skill + here)).skill.enabled
    assert.is(await state(), true)
    await act('POST', `${skill}/disable${here}`)
    assert.is(await state(), false)
    const { change } = await act('POST', '/api/changes/last/undo', {})
    assert.is(change.subject, 'skills/svc-session')
    assert.is(await state(), true)
  }
  await inWorld(use, [trust])
})

test('sessions, trust, MCP servers and agent copies are restored where possible, with the reason elsewhere', async () => {
  await inWorld(
    async (world, act) => {
      await world.agent('a')
      const { workspaceId } = world
      const undo = async () => {
        const undone = await world.kernel.request('POST', '/api/changes/last/undo', {})
        assert.is(undone.status, 200, JSON.stringify(undone.body))
        assert.equal(undone.body.differs, [])
      }
      const trusted = `/api/workspaces/${workspaceId}/trust`
      const state = async () => (await act('GET', trusted)).trust.state
      const { digest } = (await act('GET', trusted)).trust
      await act('PUT', trusted, { digest })
      assert.is(await state(), 'trusted')
      await undo()
      assert.is(await state(), 'untrusted')
      await act('PUT', trusted, { digest })
      await act('DELETE', trusted)
      await undo()
      assert.is(await state(), 'trusted')

      const { at: session } = await world.session('a')
      await world.kernel.request('POST', `${session}/stop`, {})
      const archived = async () =>
        (await world.kernel.request('POST', `${session}/prompt`, { text: 'hi' })).body.code === 'session_archived'
      await act('POST', `${session}/archive`, {})
      assert.ok(await archived())
      await undo()
      assert.not.ok(await archived())
      const { changes: ofSession } = await act('GET', '/api/changes')
      const started = (ofSession as Reply[]).find(({ request }) => request === 'POST /api/sessions')
      assert.match(started?.reason, 'svc session stop')

      const server = '/api/settings/mcp-servers/files'
      const shown = async () => (await world.kernel.request('GET', server)).body.mcp_server?.command
      await act('PUT', server, { server: { name: 'files', command: 'one' } })
      await act('PUT', server, { server: { name: 'files', command: 'two' } })
      await undo()
      assert.is(await shown(), 'one')
      await act('DELETE', server)
      await undo()
      assert.is(await shown(), 'one')
      await act('PUT', server, { server: { name: 'files', command: 'one', env: { PORT: '1' } } })
      await act('DELETE', server)
      const refused = await world.kernel.request('POST', '/api/changes/last/undo', {})
      assert.is(refused.body.code, 'undo_impossible')
      assert.match(refused.body.error, 'svc mcp add')

      await act('POST', '/api/agents', { scope: 'global', agent: { name: 'first', prompt: 'Play.' } })
      await act('POST', '/api/agents/first/duplicate', { name: 'second' })
      await undo()
      assert.is((await world.kernel.request('GET', '/api/agents/second')).status, 404)
    },
    [trust],
  )
})

test('every changing route has an undo, or a reason and the next command', () => {
  const known = entries.map(({ path: at }) => at)
  const silent: string[] = []
  for (const route of inTree.flatMap(plugin => plugin.surface.routes ?? [])) {
    const way = annotationOf(route as never, UndoKind)
    if (way && route.method === 'GET') silent.push(`GET ${route.path} changes nothing`)
    if (route.method === 'GET' || route.audited === false) continue
    if (!way) silent.push(`${route.method} ${route.path}`)
    if (way?.by !== 'never') continue
    const words = /svc ([a-z -]+?)(?: --.*)?$/.exec(way.why)?.[1]?.trim()
    const isKnown = words === undefined || known.some(at => at === words || at.startsWith(`${words} `))
    if (!isKnown) silent.push(`${route.method} ${route.path}: svc ${words}`)
  }
  assert.equal(silent, [])
})

test('every undo names existing routes', () => {
  const routes = inTree.flatMap(plugin => plugin.surface.routes ?? [])
  const known = new Set(routes.map(({ method, path: at }) => `${method} ${at}`))
  const broken = routes.flatMap(route => {
    const way = annotationOf(route as never, UndoKind)
    const list = route.path.slice(0, route.path.lastIndexOf('/'))
    const wanted = {
      put: [`PUT ${route.path}`, `GET ${route.path}`],
      patch: [`GET ${route.path}`],
      create: [`POST ${list}`, `GET ${route.path}`],
      delete: [`DELETE ${route.path}/`],
      action: [way?.by === 'action' && 'verb' in way ? `POST ${list}/${way.verb}` : 'a path'],
    }[way?.by as string]
    const isThere = (one: string) =>
      known.has(one) || (one.endsWith('/') && [...known].some(at => at.startsWith(`${one}{`)))
    return (wanted ?? []).filter(one => !isThere(one)).map(one => `${route.method} ${route.path}: ${one}`)
  })
  assert.equal(broken, [])
})

test.run()
