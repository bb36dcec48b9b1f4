import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { Heartbeats, type HeartbeatsApi } from '../../../../plugins/agents/heartbeats/api.js'
import heartbeats from '../../../../plugins/agents/heartbeats/index.js'
import sidecars from '../../../../plugins/agents/sidecars/index.js'
import { agentText, eventually, openWorld } from '../../../fixtures/session-world.js'

const POLICY = '---\npreferences: { min_interval: 10m }\ncontext: { include: [session_health] }\n---\nsay I am awake\n'

test('a session waits from creation to its end, is woken in its state, and after a restart if configured', async () => {
  let service: HeartbeatsApi | undefined
  const looker = definePlugin({
    name: 'looker',
    version: '0.0.1',
    requires: { heartbeats: Heartbeats },
    service: async () =>
      class {
        constructor({ needs }: PluginKernel<{ heartbeats: typeof Heartbeats }>) {
          service = needs.heartbeats
        }
      },
  }).surface({})
  const config = { agents: { heartbeat: { active_session_only: false, wake_cooldown: '1s' } } }
  const world = await openWorld({ plugins: [sidecars, heartbeats, looker], config })
  const waiting = (wanted: number) => eventually(async () => service?.waiting === wanted, `${wanted} that wait`)
  await world.agent('loads', { flags: '--load' })
  await writeFile(path.join(world.root, '.svc', 'agents', 'loads', 'HEARTBEAT.md'), POLICY)
  const { at } = await world.session('loads')
  await waiting(1)
  const wake = (session_id: string) =>
    world.kernel.request('POST', '/api/agents/loads/heartbeat/wake', {
      session_id,
      source: 'manual',
      workspace_id: world.workspaceId,
    })
  const sent = await wake('')
  assert.equal([sent.status, sent.body.decision.reason], [200, 'wake_sent'])
  const turn = sent.body.decision.synthetic_prompt_id
  await world.until(at, event => event.turn_id === turn && event.type === 'done')
  assert.match(agentText(await world.events(at)), 'I am awake')
  const prompt = (await world.events(at)).find(({ type }) => type === 'user_message')
  assert.match(prompt.content.text, /^This is a heartbeat.*the session is healthy/s)
  const inspected = (await world.kernel.request('GET', `${at}/inspect?include_recent_wake_events=true`)).body
  assert.equal([inspected.wake_state.last_reason, inspected.wake_events.length], ['wake_sent', 1])

  // The daemon stops its sessions; such a one waits again, one that a person stopped does not.
  const other = await world.session('loads')
  await waiting(2)
  await world.kernel.request('POST', `${other.at}/stop`, {})
  await waiting(1)
  await world.restart()
  await waiting(1)
  await eventually(async () => (await wake('')).body.decision.reason === 'wake_sent', 'a wake-up after the cooldown')
  await eventually(async () => (await world.kernel.request('GET', at)).body.session.state === 'active', 'the restart')
  await world.close()
})

test('an agent that crashes in its wake-up has failed, also when a prompt starts it again at once', async () => {
  const config = { agents: { heartbeat: { active_session_only: false, wake_cooldown: '1s' } } }
  const world = await openWorld({ plugins: [sidecars, heartbeats], config })
  const [crash, broken] = ['exit 3', 'error -32000 not now'].map(step => POLICY.replace('say I am awake', step))
  await world.agent('dies', { flags: '--load' })
  const folder = path.join(world.root, '.svc', 'agents', 'dies')
  await writeFile(path.join(folder, 'HEARTBEAT.md'), crash ?? '')
  const { id, at } = await world.session('dies')
  const wake = async () => {
    const body = { session_id: id, source: 'manual', workspace_id: world.workspaceId }
    return (await world.kernel.request('POST', '/api/agents/dies/heartbeat/wake', body)).body.decision.reason
  }
  const results = async () =>
    (await world.kernel.request('GET', `${at}/inspect?include_recent_wake_events=true`)).body.wake_events.map(
      ({ result }: { result: string }) => result,
    )
  await wake()
  await eventually(async () => (await world.row(id)).state !== 'active', 'the crash')
  assert.is((await world.kernel.request('POST', `${at}/prompt`, { text: 'say I am back' })).status, 200)
  await eventually(async () => (await results()).length === 2, 'the failed wake-up')
  assert.equal(await results(), ['failed', 'sent'])
  await world.until(at, ({ type, content }) => type === 'agent_message' && /I am back/.test(content.text))
  await eventually(async () => (await world.row(id)).state === 'active', 'the restart')
  // A turn that fails in an agent that goes on is none.
  await writeFile(path.join(folder, 'HEARTBEAT.md'), broken ?? '')
  await eventually(async () => (await wake()) === 'wake_sent', 'a wake-up after the cooldown')
  await eventually(async () => (await world.events(at)).some(({ content }) => /not now/.test(content.error)), 'its end')
  assert.equal((await results()).filter((one: string) => one === 'failed').length, 1)
  await world.close()
})

test.run()
