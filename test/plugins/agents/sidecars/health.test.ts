// proof: a process that really stands still
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel, surfaceOf } from '../../../../kernel/plugin.js'
import sidecars from '../../../../plugins/agents/sidecars/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import { SessionHung, SessionRecovered, Sessions, SessionUnhealthy } from '../../../../plugins/work/sessions/api.js'
import { agentText, eventually, openWorld } from '../../../fixtures/session-world.js'

test('an unresponsive waiting process is noticed by the clock, at the configured times', async () => {
  const seen: string[] = []
  const logged: string[] = []
  const listener = definePlugin({
    name: 'listener',
    version: '0.0.1',
    requires: { events: Events, sessions: Sessions },
    service: async () =>
      class {
        constructor(kernel: PluginKernel<{ events: typeof Events; sessions: typeof Sessions }>) {
          for (const type of [SessionHung, SessionUnhealthy, SessionRecovered])
            kernel.needs.events.on(type, ({ name, payload }) => void logged.push(`${name} ${payload.health}`))
        }
      },
  }).surface({
    taps: [
      surfaceOf<object>().tap(
        Sessions,
        sessions => sessions.healthUpdated,
        () =>
          ({ state, health }) =>
            void seen.push(`${state} ${health}`),
      ),
    ],
  })
  // Longer than an agent takes to answer that lives, on a busy machine too.
  const times = { session_health_stale_after: '6s', session_health_hook_min_interval: '1s' }
  const world = await openWorld({ plugins: [sidecars, listener], config: { agents: { heartbeat: times } } })
  await world.agent('writer')
  const { id, at } = await world.session('writer')
  const startedAt = performance.now()
  const pid = Number(/pid (\d+)/.exec(agentText(await world.prompt(at, 'pid')))?.[1])
  for (let i = 0; i < 4; i++) await world.prompt(at, 'say x')
  const seenAt = (await world.row(id)).health.last_presence_at

  // Nobody asks how it is.
  process.kill(pid, 'SIGSTOP')
  await eventually(async () => seen.at(-1) === 'idle stale', 'the news')
  const { health, badge } = await world.row(id)
  assert.equal([badge, health.health, health.eligible_for_wake], ['hung', 'stale', false])
  assert.equal([health.state, health.ineligibility_reason], ['idle', 'session_health_stale'])
  assert.match(health.last_error, `kill -CONT -- -${pid}`)
  assert.ok(health.last_presence_at >= seenAt)
  const status = (await world.kernel.request('GET', '/api/status')).body
  assert.equal([status.subprocess_health.status, status.subprocess_health.unhealthy], ['degraded', 1])
  assert.equal([status.subprocess_health.sessions[0].session_id, status.sessions.by_badge.hung], [id, 1])
  const report = (await world.kernel.request('GET', '/api/doctor?only=runtime.subprocess_health')).body
  const found = report.items.find(({ code }: { code: string }) => code === 'session_hung')
  assert.equal([found.severity, found.suggested_command], ['warning', `svc session stop ${id}`])

  process.kill(pid, 'SIGCONT')
  await eventually(async () => seen.at(-1) === 'idle healthy', 'the good news')
  assert.is((await world.row(id)).badge, 'idle')
  assert.equal((await world.kernel.request('GET', '/api/doctor?only=runtime.subprocess_health')).body.status, 'ok')
  await eventually(async () => logged.length === 2, 'both events')
  assert.equal(logged, ['session.hung stale', 'session.recovered healthy'])
  const seconds = (performance.now() - startedAt) / 1000
  assert.equal(seen.slice(0, 2), ['prompting healthy', 'idle healthy'])
  assert.ok(seen.length <= seconds + 1, `${seen.length} in ${seconds} s`)

  // One that dies is told of as well, and so is that it is well again.
  process.kill(pid, 'SIGKILL')
  await eventually(async () => logged.at(-1) === 'session.unhealthy dead', 'the news of its end')
  await world.prompt(at, 'say x')
  await eventually(async () => logged.at(-1) === 'session.recovered healthy', 'the news of its return')
  await world.close()
})

test.run()
