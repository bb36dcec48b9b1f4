// timeout: 180s
import { cp, mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { Extensions } from '../../../../plugins/delivery/extensions/api.js'
import { automation, extensions } from '../../../../plugins/index.js'
import { Automation } from '../../../../plugins/work/automation/api.js'
import { AGENT, eventually } from '../../../fixtures/session-world.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'
import { openScene } from '../hooks/scene.js'
import { type Bench, bench } from './bench.js'
import { completed } from './fake-sessions.js'

const CHILD = path.resolve(import.meta.dirname, '../../delivery/subprocess-host/child.mjs')
const DONE = 'ext.acme.builds.done'

type Acme = PluginKernel<{ automation: typeof Automation }>

/** A daemon with an extension in it that declares `done`, and a trigger on that. */
async function open(): Promise<{ readonly b: Bench; readonly acme: Acme; readonly trigger: string }> {
  const kernels: Acme[] = []
  const acme = definePlugin({
    name: 'acme.builds',
    version: '1.0.0',
    requires: { automation: Automation },
    service: async () =>
      class {
        constructor(kernel: Acme) {
          kernels.push(kernel)
        }
      },
  }).surface({})
  const home = await homeWith({ name: 'acme.builds', version: '1.0.0', resources: { events: ['done', 'failed'] } })
  const b = await bench({ home, plugins: [extensions, acme], answer: () => completed })
  await isActive(b, 'acme.builds')
  const prompt = '{{ .Source }}: {{ .Data.branch }} is {{ .Data.state }}'
  const trigger = await create(b, { event: DONE, prompt, filter: { 'data.state': 'green' } })
  return { b, acme: kernels[0] as Acme, trigger }
}

/** A home with an extension in it: it is read at the start, for the folder is watched by a clock that stands still. */
async function homeWith(manifest: { readonly name: string; readonly [member: string]: unknown }): Promise<string> {
  const home = await temporaryFolder('emitted')
  const folder = path.join(home, 'extensions', manifest.name)
  await mkdir(folder, { recursive: true })
  await cp(CHILD, path.join(folder, 'child.mjs'))
  await writeFile(path.join(folder, 'extension.json'), JSON.stringify(manifest))
  return home
}

const isActive = (b: Bench, name: string) =>
  b.until(
    async () => (await b.request('GET', `/api/extensions/${name}`)).body.extension?.state === 'active',
    `${name} is active`,
  )

async function create(b: Pick<Bench, 'request' | 'workspace'>, body: Record<string, unknown>): Promise<string> {
  const given = { agent_name: 'report', scope: 'workspace', workspace_id: b.workspace, name: 't', ...body }
  const reply = await b.request('POST', '/api/automation/triggers', given)
  assert.is(reply.status, 201, JSON.stringify(reply.body))
  return reply.body.trigger.id
}

const runsOf = (b: Bench, id: string, count: number): Promise<Reply[]> =>
  b.until(async () => {
    const { runs } = (await b.request('GET', `/api/automation/triggers/${id}/runs`)).body
    return runs.length >= count && runs.every((run: Reply) => run.ended_at) && runs.reverse()
  }, `trigger ${id} has ${count} runs that are over`)

test('an event of an in-process extension fires the matching triggers of its workspace', async () => {
  const { b, acme, trigger } = await open()
  const emit = (data: Record<string, unknown>, workspaceId = b.workspace) =>
    acme.db.tx(t => acme.needs.automation.emit(t, { event: DONE, workspaceId, data }))
  await emit({ branch: 'main', state: 'red' })
  await acme.db.tx(t => acme.needs.automation.emit(t, { event: DONE, data: { state: 'green' } }))
  await emit({ branch: 'main', state: 'green' })
  const [run, ...more] = await runsOf(b, trigger, 1)
  assert.equal([run?.status, run?.metadata.activation, more.length], ['completed', 'extension', 0])
  assert.equal(
    b.sessions.prompts.map(({ text }) => text),
    ['extension: main is green'],
  )
  await b.end()
})

test('an extension can only emit declared events, for existing workspaces, within its rate limit', async () => {
  const { b, acme } = await open()
  const code = (event: { event: string; workspaceId?: string; data?: Record<string, unknown> }) =>
    acme.db
      .tx(t => acme.needs.automation.emit(t, event))
      .then(
        () => 'told',
        error => error.code,
      )
  assert.is(await code({ event: 'ext.acme.builds.begun' }), 'event_undeclared')
  assert.is(await code({ event: 'ext.other.done' }), 'event_undeclared')
  assert.is(await code({ event: 'session.created' }), 'event_undeclared')
  assert.is(await code({ event: DONE, workspaceId: 'ws_none' }), 'workspace_not_found')
  assert.is(await code({ event: DONE, data: { text: 'x'.repeat(64 * 1024) } }), 'event_too_large')
  const all: string[] = []
  for (let n = 0; n < 150; n++) all.push(await code({ event: DONE }))
  assert.is(all.filter(one => one === 'told').length, 100)
  assert.is(all.at(-1), 'event_rate')
  await b.clock.advance(1000)
  assert.is(await code({ event: DONE }), 'told')
  // Who is no extension has no events of its own.
  const { status, body } = await b.request('POST', '/api/automation/events', { event: DONE })
  assert.equal([status, body.code], [403, 'event_foreign'])
  await b.end()
})

test('an extension process emits only its own events through the Host API', async () => {
  const kernels: PluginKernel<{ extensions: typeof Extensions }>[] = []
  const caller = definePlugin({
    name: 'test.caller',
    version: '1.0.0',
    requires: { extensions: Extensions },
    service: async () =>
      class {
        constructor(kernel: PluginKernel<{ extensions: typeof Extensions }>) {
          kernels.push(kernel)
        }
      },
  }).surface({})
  const home = await homeWith({
    name: 'ci',
    version: '1.0.0',
    capabilities: { provides: ['tool.provider'] },
    permissions: { requires: ['automation/events/emit'] },
    subprocess: { command: 'node', args: ['child.mjs', '{}'] },
    resources: { events: ['done'] },
  })
  const b = await bench({ home, plugins: [extensions, caller], answer: () => completed })
  await isActive(b, 'ci')
  const trigger = await create(b, { event: 'ext.ci.done', prompt: 'Number {{ .Data.n }}.' })
  const ask = (params: object) =>
    kernels[0]?.needs.extensions.call('ci', 'tools/call', {
      ...{ do: 'host', method: 'automation/events/emit' },
      params: { event: 'ext.ci.done', workspace_id: b.workspace, ...params },
    }) as Promise<Reply>
  assert.match((await ask({ data: { n: 1 } })).result.event_id, /^evt_/)
  assert.is((await ask({ event: DONE })).error.data.code, 'event_undeclared')
  assert.is((await ask({ data: 7 })).error.data.code, 'invalid_request')
  assert.is((await ask({ data: { text: 'x'.repeat(90 * 1024) } })).error.data.code, 'payload_too_large')
  const runs = await runsOf(b, trigger, 1)
  assert.equal([runs.length, b.sessions.prompts.map(({ text }) => text)], [1, ['Number 1.']])
  await b.end()
})

test('a hook completion fires its triggers, and a cycle through the hook ends', async () => {
  const scene = await openScene({}, { plugins: [automation] })
  const { request } = scene.kernel
  await scene.agent('worker')
  const command = await scene.program('seen.sh', '#!/bin/sh\nexit 0\n')
  await scene.configure({ seen: { event: 'turn.end', command }, other: { event: 'turn.end', command } })
  const id = await create(
    { request, workspace: scene.workspaceId },
    {
      ...{ agent_name: 'worker', event: 'hook.seen.completed' },
      prompt:
        'say {{ .Data.hook_name }} {{ .Data.event }} {{ .Data.outcome }} {{ .Data.dispatch_depth }} of {{ .Data.session_id }}',
    },
  )
  const first = await scene.session('worker')
  await scene.prompt(first.at, 'say hello')
  const runs = await eventually(async () => {
    const all: Reply[] = (await request('GET', `/api/automation/triggers/${id}/runs`)).body.runs
    return all.length >= 4 && all.every(run => run.ended_at) && all.reverse()
  }, 'four runs of the trigger')
  assert.equal(
    runs.map(run => [run.status, run.metadata.reason]),
    [...Array(3).fill(['completed', undefined]), ['canceled', 'trigger_depth']],
  )
  assert.is(runs[0]?.metadata.activation, 'hook')
  const events = await scene.events(`/api/workspaces/${scene.workspaceId}/sessions/${runs[0]?.session_id}`)
  const [prompt] = events.filter(event => event.type === 'user_message')
  assert.is(prompt?.content.text, `say seen turn.end applied 1 of ${first.id}`)
  await scene.close()
})

test('a trigger on a session gets its state and the id from its agent', async () => {
  const scene = await openScene({}, { plugins: [automation] })
  const { request } = scene.kernel
  await scene.agent('worker')
  const command = await scene.program('seen.sh', '#!/bin/sh\nexit 0\n')
  await scene.configure({ seen: { event: 'turn.end', command, timeout: '60s' } })
  const where = { request, workspace: scene.workspaceId }
  const once = { agent_name: 'worker', fire_limit: { max: 1, window: '1h' } }
  const prompt = 'say {{ .Data.state }} {{ .Data.acp_session_id }} {{ .Data.updated_at }}'
  const hook = await create(where, { ...once, name: 'hook', event: 'hook.seen.completed', prompt })
  const { id, at } = await scene.session('worker')
  await scene.prompt(at, 'say hello')
  const { acp_session_id: given } = await scene.row(id)
  assert.ok(given)
  const promptOf = async (trigger: string): Promise<string> => {
    const run: Reply = await eventually(async () => {
      const all: Reply[] = (await request('GET', `/api/automation/triggers/${trigger}/runs`)).body.runs
      return all.find(one => one.session_id && one.ended_at)
    }, 'a run')
    const events = await scene.events(`/api/workspaces/${scene.workspaceId}/sessions/${run.session_id}`)
    return events.find(event => event.type === 'user_message')?.content.text ?? ''
  }
  // A trigger is told the session as it is when it fires: it has fired before the session is stopped.
  assert.match(await promptOf(hook), new RegExp(`^say active ${given} 20\\d\\d-`))
  const filter = { 'data.session_id': id }
  const stop = await create(where, { ...once, name: 'stop', event: 'session.stopped', filter, prompt })
  await request('POST', `${at}/stop`)
  assert.match(await promptOf(stop), new RegExp(`^say stopped ${given} 20\\d\\d-`))
  await scene.close()
})

for (const [event, begins] of [
  ['session.pre_create', 'session'],
  ['session.post_create', 'session'],
  ['automation.trigger.pre_fire', 'trigger'],
  ['automation.run.completed', 'trigger'],
] as const)
  test(`a trigger that fires itself through a hook on ${event} is stopped by its depth, not by its fire limit`, async () => {
    const scene = await openScene({}, { plugins: [automation] })
    const { request } = scene.kernel
    const folder = path.join(scene.home, 'agents', 'worker')
    await mkdir(folder, { recursive: true })
    const head = `name: worker\npermissions: approve-all\ncommand: '${process.execPath} ${AGENT}'`
    await writeFile(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nYou do what you are told.\n`)
    const command = await scene.program('seen.sh', '#!/bin/sh\nexit 0\n')
    await scene.configure({ seen: { event, command, mode: 'async', timeout: '60s' } })
    const common = { agent_name: 'worker', prompt: 'say hello', fire_limit: { max: 500, window: '1h' } }
    const place = { scope: 'workspace', workspace_id: scene.workspaceId }
    const make = async (body: object): Promise<string> => {
      const made = await request('POST', '/api/automation/triggers', { ...common, ...place, ...body })
      assert.is(made.status, 201, JSON.stringify(made.body))
      return made.body.trigger.id
    }
    const id = await make({ name: 'again', event: 'hook.seen.completed' })
    // Something has to be the first.
    if (begins === 'session') await scene.session('worker')
    else {
      await make({ name: 'first', event: 'session.stopped', fire_limit: { max: 1, window: '1h' } })
      const { at } = await scene.session('worker')
      await request('POST', `${at}/stop`)
    }
    const runs: Reply[] = await eventually(async () => {
      const all: Reply[] = (await request('GET', `/api/automation/triggers/${id}/runs`)).body.runs
      return all.some(run => run.status === 'canceled') && all.every(run => run.ended_at) && all.reverse()
    }, 'a run that was stopped')
    // The first run was of the other trigger, where there is one.
    const ran = begins === 'session' ? 3 : 2
    assert.equal(
      runs.map(run => [run.status, run.metadata.reason]),
      [...Array(ran).fill(['completed', undefined]), ['canceled', 'trigger_depth']],
    )
    await scene.close()
  })

test.run()
