import { rm } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Requests } from '../../../../kernel/plugin.js'
import { DaemonErrors } from '../../../../plugins/desk/daemon/api.js'
import { backup } from '../../../../plugins/index.js'
import type { SessionInfo } from '../../../../plugins/work/sessions/api.js'
import { probe } from '../../../../testing/traces.js'
import { restoredOf } from '../../desk/backup/restored.js'
import { scene } from './scene.js'

const LOOK_MS = 5250
const SWEEP_MS = 16_000

test('a restored home has no leases and starts no sessions for runs until it is confirmed', async () => {
  const sessions = new Map<string, SessionInfo>()
  const before = await scene({
    sessions,
    plugins: [backup],
    config: { task: { orchestration: { spawn_failure_limit: 0 } } },
  })
  const ada = before.agent()
  const { task, run } = await before.queued()
  assert.is((await ada.claim({ run_id: run, lease_seconds: 3600 })).status, 200)
  assert.is((await ada.act('start', run)).status, 200)
  const waiting = await before.queued({ scope: 'workspace', workspace: before.workspace })
  await before.request('PUT', `/api/tasks/${waiting.task}/execution-profile`, { worktree: { mode: 'none' } })
  const home = await restoredOf(before)
  assert.is((await before.run(run, task)).status, 'running')
  await before.close()

  // The session of the original is none of the copy, and may live on there.
  const held = await scene({ home, clock: before.clock, plugins: [backup], sessions })
  try {
    const left = await held.run(run, task)
    assert.equal([left.status, left.lease_until], ['queued', null])
    const next = held.agent()
    const refused = await next.claim({ run_id: run })
    assert.equal([refused.status, refused.body.code], [503, 'home_held'])
    for (let looks = 0; looks < 20; looks++) await held.pass(LOOK_MS)
    assert.equal([held.created, (await held.run(waiting.run, waiting.task)).status], [[], 'queued'])
    assert.is((await held.request('POST', '/api/backups/confirm')).status, 200)
    for (let looks = 0; looks < 20 && held.created.length === 0; looks++) await held.pass(LOOK_MS)
    assert.ok(held.created.length > 0, 'the run that waited gets its session')
    assert.is((await next.claim({ run_id: run })).status, 200)
  } finally {
    await held.close()
    await rm(home, { recursive: true, force: true })
  }
})

test('a wake-up pending in a restored home is delivered after the confirmation', async () => {
  const look = probe({ request: Requests })
  let refusal: Error | undefined = DaemonErrors.draining()
  const sessions = new Map<string, SessionInfo>()
  const plugins = [backup, look.plugin]
  const before = await scene({ sessions, plugins, refuses: () => refusal })
  const boss = before.agent()
  const actor = { ...look.kernel().actor, onBehalfOf: { kind: 'agent_session', id: boss.id } } as const
  const body = { title: 'part', scope: 'workspace' }
  const made = await look.kernel().needs.request({ method: 'POST', url: '/api/tasks', body }, actor)
  const { task } = JSON.parse(made.body)
  await before.post(`/api/tasks/${task.id}/start`)
  const blocked = await before.post(`/api/tasks/${task.id}/blocks`, { kind: 'needs_input', reason: 'which colour?' })
  assert.ok(blocked.status < 300, JSON.stringify(blocked.body))
  await before.pass(LOOK_MS)
  assert.equal(before.woken, [])
  const home = await restoredOf(before)
  await before.close()
  refusal = undefined
  const held = await scene({ home, clock: before.clock, plugins, sessions })
  try {
    for (let looks = 0; looks < 10; looks++) await held.pass(SWEEP_MS)
    assert.equal(held.woken, [])
    assert.is((await held.request('POST', '/api/backups/confirm')).status, 200)
    for (let looks = 0; looks < 20 && held.woken.length === 0; looks++) await held.pass(SWEEP_MS)
    assert.equal(
      held.woken.map(({ id }) => id),
      [boss.id],
    )
  } finally {
    await held.close()
    await rm(home, { recursive: true, force: true })
  }
})

test.run()
