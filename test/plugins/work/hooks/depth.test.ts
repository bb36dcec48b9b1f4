// timeout: 240s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { automation } from '../../../../plugins/index.js'
import { eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene } from './scene.js'

/** A program that makes a session, as the command line does it in a hook. */
const MAKES = (home: string, workspace: string, header: string, agent = 'plain') => `#!${process.execPath}
const { request } = require('node:http')
const body = JSON.stringify({ workspace: ${JSON.stringify(workspace)}, agent_name: '${agent}' })
const headers = { 'content-type': 'application/json', ${header} }
request({ socketPath: ${JSON.stringify(`${home}/daemon.sock`)}, method: 'POST', path: '/api/sessions', headers })
  .on('response', response => response.resume())
  .end(body)
`

for (const [what, header, sessions] of [
  ['nests up to the maximum depth', `'x-svc-hook-depth': process.env.SVC_HOOK_DEPTH`, 3],
  ['with an invalid depth header counts as the deepest', `'x-svc-hook-depth': '-1'`, 1],
  ['without a depth header is recognized by its process', '', 3],
  ['cannot claim less depth than its process has', `'x-svc-hook-depth': '1'`, 3],
] as const)
  test(`a request of a hook program ${what}`, async () => {
    const scene = await openScene({}, { listen: ['socket'] })
    await scene.agent('plain')
    const command = await scene.program('again.cjs', MAKES(scene.home, scene.workspaceId, header))
    await scene.configure({ again: { event: 'session.pre_create', mode: 'sync', command, timeout: '60s' } })
    await scene.session('plain')
    const { sessions: made } = (await scene.kernel.request('GET', '/api/sessions')).body
    assert.is(made.length, sessions)
    await scene.close()
  })

test('a cycle of triggers and a hook program ends with the third run', async () => {
  const scene = await openScene({}, { listen: ['socket'], plugins: [automation] })
  const { request } = scene.kernel
  for (const name of ['plain', 'made']) await scene.agent(name)
  const command = await scene.program('makes.cjs', MAKES(scene.home, scene.workspaceId, '', 'made'))
  const hook = { event: 'session.post_create', mode: 'async', timeout: '60s', matcher: { agent_name: 'plain' } }
  await scene.configure({ makes: { ...hook, command } })
  const { body, status } = await request('POST', '/api/automation/triggers', {
    ...{ name: 'feeds', agent_name: 'plain', prompt: 'say hello', event: 'session.created' },
    ...{ scope: 'workspace', workspace_id: scene.workspaceId, filter: { 'data.agent_name': 'made' } },
    fire_limit: { max: 100, window: '1h' },
  })
  assert.is(status, 201, JSON.stringify(body))
  await scene.session('plain')
  const runs = async (): Promise<readonly Reply[]> =>
    (await request('GET', `/api/automation/triggers/${body.trigger.id}/runs`)).body.runs
  // Each is waited for by itself: a machine that has much to do takes its time for every one.
  for (const count of [1, 2, 3, 4])
    await eventually(async () => (await runs()).length >= count, `run ${count} of the trigger`)
  const [last, ...before] = await runs()
  assert.equal([last?.status, last?.metadata.reason], ['canceled', 'trigger_depth'], JSON.stringify(last))
  assert.is(before.length, 3)
  await scene.close()
})

test.run()
