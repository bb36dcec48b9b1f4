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

test.run()
