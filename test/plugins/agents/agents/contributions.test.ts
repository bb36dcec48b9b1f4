import { rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { defineErrors, definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { AgentSourceFolders, Agents } from '../../../../plugins/agents/agents/api.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { scene } from './agents-scene.js'

const Refusal = defineErrors({ agent_in_use: { status: 409, message: 'somebody works with it' } })

/** A plugin above agents: it brings a folder of definitions along and holds on to one agent. */
function guest(root: string) {
  class Guest {}
  const { contribute, tap } = surfaceOf<Guest>()
  return definePlugin({
    name: 'guest',
    version: '1.0.0',
    requires: { agents: Agents },
    service: async () => Guest,
  }).surface({
    errors: [Refusal],
    registries: [
      contribute(AgentSourceFolders, () => [{ folders: () => [{ root, folder: path.join(root, 'agents') }] }]),
    ],
    taps: [
      tap(
        Agents,
        agents => agents.deleting,
        () => (_, definition) => (definition.name === 'held' ? Refusal.agent_in_use() : undefined),
      ),
    ],
  })
}

test('contributed agents rank below agents of users and cannot be changed or deleted', async () => {
  const root = await temporaryFolder('agents-guest')
  const s = await scene({ plugins: [guest(root)] })
  const folder = path.join(root, 'agents')
  await s.write(folder, 'reviewer', ['command: review'])
  await s.write(folder, 'odd', ['colour: red'])
  const reviewer = async () => (await s.request('GET', '/api/agents/reviewer?workspace=w')).body.agent
  assert.is((await reviewer()).command, 'review')
  assert.is(await s.outcome('GET', '/api/agents/odd'), '422 agent_invalid')
  assert.is(await s.outcome('DELETE', '/api/agents/reviewer'), '409 agent_read_only')
  await s.write(s.homeAgents, 'reviewer', ['command: mine'])
  assert.is((await reviewer()).command, 'mine')
  const items: { code: string; evidence?: { path?: string } }[] = (await s.request('GET', '/api/doctor?only=agents'))
    .body.items
  assert.equal(
    items.map(({ code, evidence }) => [code, evidence?.path]),
    [['agent_invalid', path.join(folder, 'odd', 'AGENT.md')]],
  )
  await s.end()
  await rm(root, { recursive: true, force: true })
})

test('another plugin can hold a definition', async () => {
  const root = await temporaryFolder('agents-guest')
  const s = await scene({ plugins: [guest(root)] })
  for (const name of ['held', 'free']) await s.write(s.homeAgents, name, ['command: x'])
  assert.is(await s.outcome('DELETE', '/api/agents/held'), '409 agent_in_use')
  assert.is(await s.outcome('GET', '/api/agents/held'), '200')
  assert.is(await s.outcome('DELETE', '/api/agents/free'), '200')
  await s.end()
  await rm(root, { recursive: true, force: true })
})

test('the default agent of a workspace must exist and be valid; one removed later is ignored', async () => {
  const s = await scene()
  const file = await s.write(s.own, 'coder', ['command: x'])
  await s.write(s.own, 'odd', ['colour: red'])
  const patch = (body: unknown) => s.outcome('PATCH', `/api/workspaces/${s.workspaceId}`, body)
  assert.is(await patch({ default_agent: 'nobody' }), '400 workspace_invalid')
  assert.is(await patch({ default_agent: 'odd' }), '400 workspace_invalid')
  const shown = async () => (await s.request('GET', `/api/workspaces/${s.workspaceId}`)).body.workspace
  assert.is((await shown()).default_agent, '')
  assert.is(await patch({ default_agent: 'coder' }), '200')
  await rm(path.dirname(file), { recursive: true })
  assert.is(await patch({ name: 'renamed' }), '200')
  assert.is(await patch({ default_agent: 'coder' }), '200')
  const other = await temporaryFolder('agents-other')
  const add = (agent: string) => s.outcome('POST', '/api/workspaces', { root_dir: other, default_agent: agent })
  assert.is(await add('coder'), '400 workspace_invalid')
  assert.is((await s.request('GET', '/api/workspaces')).body.workspaces.length, 1)
  await s.write(path.join(other, '.svc', 'agents'), 'coder', ['command: x'])
  assert.is(await add('coder'), '201')
  await s.end()
  await rm(other, { recursive: true, force: true })
})

test.run()
