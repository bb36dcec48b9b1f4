// timeout: 120s
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  auth,
  automation,
  disk,
  extensions,
  identity,
  sandboxes,
  selfService,
  tools,
} from '../../../../plugins/index.js'
import { eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene, type Scene } from './scene.js'

let scene: Scene
const request: Scene['kernel']['request'] = (...args) => scene.kernel.request(...args)

test.before(async () => {
  const plugins = [auth, identity, disk, sandboxes, selfService, automation, extensions, tools]
  scene = await openScene({}, { plugins })
})
test.after(() => scene.close())

const answers = (patch: object) => `#!/bin/sh\ncat >/dev/null\necho '${JSON.stringify(patch)}'\n`

test('a hook patches the input of a tool, which is validated again, and observes the end of the call', async () => {
  const { tools: all } = (await request('GET', '/api/tools')).body
  const id = all.map(({ descriptor }: Reply) => descriptor.tool_id).find((name: string) => name.endsWith('hooks_list'))
  const call = (input: object) => request('POST', `/api/tools/${id}/invoke`, { input })
  const file = path.join(scene.home, 'told')
  const heard = { mode: 'async', command: await scene.program('heard.sh', `#!/bin/sh\ncat >>'${file}'\n`) }
  const narrow = await scene.program('narrow.sh', answers({ input: { event: 'tool.post_call' } }))
  const tool = { event: 'tool.pre_call', mode: 'sync', timeout: '60s', matcher: { tool_id: id } }
  await scene.configure({
    narrow: { ...tool, command: narrow },
    heard: { event: 'tool.post_call', ...heard },
    failed: { event: 'tool.post_error', ...heard },
  })
  const { status, body } = await call({})
  assert.is(status, 200, JSON.stringify(body))
  const text = JSON.stringify(body)
  assert.match(text, /heard/)
  assert.not.match(text, /narrow/)
  const line = await eventually(async () => existsSync(file) && readFileSync(file, 'utf8').split('\n')[0], 'its end')
  const { tool_id, input, event } = JSON.parse(line)
  assert.equal([tool_id, input, event], [id, { event: 'tool.post_call' }, 'tool.post_call'])
  await request('DELETE', '/api/settings/hooks/narrow')
  const wrong = await scene.program('wrong.sh', answers({ input: { event: 7 } }))
  await scene.configure({ wrong: { ...tool, command: wrong } })
  const refused = await call({})
  assert.ok(refused.status >= 400, JSON.stringify(refused.body))
  assert.match(JSON.stringify(refused.body), /tool_invalid_input/)
})

test('the daemon waits for a slow hook that denies a tool call', async () => {
  const { tools: all } = (await request('GET', '/api/tools')).body
  const id = all
    .map(({ descriptor }: Reply) => descriptor.tool_id)
    .find((name: string) => name.endsWith('hooks_events'))
  const command = await scene.program('late.sh', `#!/bin/sh\nsleep 6\necho '{"deny": true, "reason": "late"}'\n`)
  await scene.configure({
    late: { event: 'tool.pre_call', mode: 'sync', timeout: '60s', matcher: { tool_id: id }, command },
  })
  const { status, body } = await request('POST', `/api/tools/${id}/invoke`, { input: {} })
  assert.equal([status >= 400, body.error?.reason_codes], [true, ['hook_denied']], JSON.stringify(body))
})

test('a hook patches the prompt of a job before it fires; a patch that is not a text is rejected', async () => {
  await scene.agent('worker')
  const schedule = { mode: 'every', interval: '24h' }
  const given = { name: 'daily', agent_name: 'worker', scope: 'workspace', workspace_id: scene.workspaceId, schedule }
  const { body } = await request('POST', '/api/automation/jobs', { ...given, prompt: 'say as written' })
  const prompted = async (): Promise<string> => {
    const { run } = (await request('POST', `/api/automation/jobs/${body.job.id}/trigger`)).body
    const done = await eventually(async () => {
      const now = (await request('GET', `/api/automation/runs/${run.id}`)).body.run
      return now.ended_at && now
    }, 'the end of the run')
    assert.is(done.status, 'completed', JSON.stringify(done))
    const events = await scene.events(`/api/workspaces/${scene.workspaceId}/sessions/${done.session_id}`)
    return events.find(({ type }) => type === 'user_message')?.content.text
  }
  const hook = { event: 'automation.job.pre_fire', mode: 'sync', timeout: '60s' }
  await scene.configure({
    change: { ...hook, command: await scene.program('change.sh', answers({ prompt: 'say as changed' })) },
  })
  assert.is(await prompted(), 'say as changed')
  await scene.configure({
    change: { ...hook, command: await scene.program('change2.sh', answers({ prompt: ['say', 'as a list'] })) },
  })
  assert.is(await prompted(), 'say as written')
})

test('run hooks are matched by agent and workspace, cancel runs, and learn whether they are retried', async () => {
  await request('DELETE', '/api/settings/hooks/change')
  const heard = path.join(scene.home, 'heard-runs')
  const hear = await scene.program('hear.sh', `#!/bin/sh\ncat >>'${heard}'\n`)
  const matcher = { workspace_id: scene.workspaceId, agent_name: 'worker' }
  const [elsewhere, cancel] = await Promise.all([
    scene.program('elsewhere.sh', answers({ prompt: 'say elsewhere' })),
    scene.program('cancel.sh', answers({ cancel: true, reason: 'not today' })),
  ])
  const sync = { event: 'automation.job.pre_fire', mode: 'sync', timeout: '60s' }
  await scene.configure({
    elsewhere: { ...sync, command: elsewhere, matcher: { ...matcher, workspace_id: 'ws_other' } },
    cancel: { ...sync, command: cancel, matcher },
    begun: { event: 'automation.job.post_fire', command: hear, matcher, timeout: '60s' },
    failed: { event: 'automation.run.failed', command: hear, matcher, timeout: '60s' },
  })
  const retry = { strategy: 'backoff', max_retries: 1, base_delay: '10ms' }
  const made = await request('POST', '/api/automation/jobs', {
    ...{ name: 'fails', agent_name: 'worker', prompt: 'exit 3', retry },
    ...{ scope: 'workspace', workspace_id: scene.workspaceId },
    schedule: { mode: 'every', interval: '24h' },
  })
  assert.is(made.status, 201, JSON.stringify(made.body))
  const fire = async () => {
    const { run } = (await request('POST', `/api/automation/jobs/${made.body.job.id}/trigger`)).body
    return eventually(async () => {
      const now = (await request('GET', `/api/automation/runs/${run.id}`)).body.run
      return now.ended_at && now
    }, 'the end of the run')
  }
  const canceled = await fire()
  assert.equal([canceled.status, canceled.error], ['canceled', 'hook_denied: not today (hook cancel)'])
  const asked = await scene.ran('none', ({ hook_name }) => hook_name === 'cancel')
  assert.equal([asked.outcome, asked.event], ['denied', sync.event])
  await request('DELETE', '/api/settings/hooks/cancel')
  await fire()
  const lines = await eventually(async () => {
    const all = existsSync(heard) ? readFileSync(heard, 'utf8').trim().split('\n') : []
    return all.length === 4 && all.map(line => JSON.parse(line))
  }, 'both tries')
  assert.equal(new Set(lines.map(line => line.workspace_root)), new Set([scene.root]))
  const failures = lines.filter(({ event }) => event === 'automation.run.failed')
  assert.equal(failures.map(({ will_retry }) => will_retry).sort(), [false, true])
})

test('a hook cannot give a session an unknown type', async () => {
  const command = await scene.program('type.sh', answers({ session_type: 'banana' }))
  await scene.configure({ type: { event: 'session.pre_create', mode: 'sync', timeout: '60s', command } })
  const { id } = await scene.session('worker')
  assert.is((await scene.row(id)).type, 'user')
  const run = await scene.ran('none', ({ hook_name }) => hook_name === 'type')
  assert.equal([run.outcome, /session_type/.test(run.error)], ['rejected', true])
  await request('DELETE', '/api/settings/hooks/type')
})

test.run()
