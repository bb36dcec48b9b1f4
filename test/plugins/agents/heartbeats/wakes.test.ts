import { rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, Fault, surfaceOf } from '../../../../kernel/plugin.js'
import { Heartbeats, WakeContexts } from '../../../../plugins/agents/heartbeats/api.js'
import { pauseMs, RESULTS } from '../../../../plugins/agents/heartbeats/decide.js'
import { SessionErrors, type TurnOutcome } from '../../../../plugins/work/sessions/api.js'
import { validateReply } from '../../../harness/contract.js'
import { endedTurn, openWorld, type World } from '../../../proofs/heartbeats/world.js'

const START = Date.UTC(2026, 5, 1, 12, 0, 0)
const POLICY =
  '---\nsummary: Look around.\npreferences: { min_interval: 10m }\ncontext: { include: [self] }\n---\nAsk nobody.\n'
const quiet = (start: string, end: string) =>
  `---\npreferences: { quiet_windows: [{ timezone: UTC, start: "${start}", end: "${end}" }] }\n---\nHush.\n`

// biome-ignore lint/suspicious/noExplicitAny: replies of any shape
type Any = any

/** Refuses wake-ups while it is told to. */
const gate = { closed: false }
const guardPlugin = definePlugin({
  name: 'guard',
  version: '0.0.1',
  requires: { heartbeats: Heartbeats },
}).surface({
  taps: [
    surfaceOf<object>().tap(
      Heartbeats,
      heartbeats => heartbeats.wakeBefore,
      () => async () => (gate.closed ? new Fault('not_now', 409, 'somebody said no') : undefined),
    ),
  ],
})

const wake = async (world: World, agent: string, session_id: string, more: object = {}) => {
  const url = `/api/agents/${agent}/heartbeat/wake`
  const { status, body } = await world.request('POST', url, { session_id, source: 'manual', ...more })
  assert.equal(validateReply('POST', url, status, body), [])
  return { status, decision: (body as Any).decision, code: (body as Any).code }
}
const status = async (world: World, agent: string, query = '') => {
  const url = `/api/agents/${agent}/heartbeat/status`
  const reply = await world.request('GET', `${url}?include_recent_wake_events=true&include_session_health=true${query}`)
  assert.equal(validateReply('GET', url, reply.status, reply.body), [])
  return reply.body as Any
}

const soon = () => new Promise(resolve => setImmediate(resolve))

/** Lets files be noticed: that takes real time, and a little by the clock of the daemon. */
async function noticed(world: World, wanted: () => boolean): Promise<void> {
  for (const end = performance.now() + 45_000; !wanted(); ) {
    if (performance.now() > end) throw new Error('it was not noticed')
    await new Promise(resolve => setTimeout(resolve, 10))
    await world.clock.advance(50)
  }
}

test('every reason of a wake-up is in its result and in the log', async () => {
  const world = await openWorld({ start: START, plugins: [guardPlugin] })
  const seen = new Map<string, number>()
  const expect = async (reason: keyof typeof RESULTS, http: number, agent: string, session: string, more = {}) => {
    const { status: code, decision } = await wake(world, agent, session, more)
    assert.equal([code, decision.reason, decision.result], [http, reason, RESULTS[reason]])
    assert.match(decision.wake_event_id, /^wak_/)
    seen.set(reason, (seen.get(reason) ?? 0) + 1)
    return decision
  }
  await world.agent('able', POLICY)
  await world.agent('none')
  await world.agent('broken', '---\ntools: [x]\n---\n')
  await world.agent('off', '---\nenabled: false\n---\n')
  await world.agent('still', quiet('11:00', '13:00'))
  for (const name of ['able', 'none', 'broken', 'off', 'still']) await world.session(`ses_${name}`, name)

  await expect('heartbeat_no_policy', 200, 'none', 'ses_none')
  await expect('heartbeat_invalid', 200, 'broken', 'ses_broken')
  await expect('heartbeat_disabled', 200, 'off', 'ses_off')
  await expect('quiet_window', 200, 'still', 'ses_still')
  await expect('session_not_found', 409, 'able', 'ses_absent')
  // The session of another agent is none of this one.
  await expect('session_not_found', 409, 'able', 'ses_none')
  world.health.set('ses_able', { health: 'stale' })
  await expect('session_unhealthy', 409, 'able', 'ses_able')
  // Whoever names no session means one that can be woken.
  await expect('heartbeat_no_eligible_session', 409, 'able', '', { workspace_id: world.workspaceId })
  world.health.set('ses_able', { active_prompt: true })
  await expect('session_prompt_active', 409, 'able', 'ses_able')
  world.health.clear()
  world.change('ses_able', { state: 'stopping' })
  await expect('session_not_attachable', 409, 'able', 'ses_able')
  world.change('ses_able', { state: 'active' })
  world.onBegin = () => Promise.reject(SessionErrors.session_busy())
  await expect('session_prompt_active_race', 409, 'able', 'ses_able')
  world.onBegin = () => Promise.reject(new Error('the agent is not there'))
  await expect('synthetic_prompt_failed', 409, 'able', 'ses_able')
  gate.closed = true
  const refused = await expect('heartbeat_disabled', 200, 'able', 'ses_able')
  assert.match(JSON.stringify(refused.diagnostics), 'somebody said no')
  gate.closed = false

  // While its turn runs another one is the same wake-up; then the cooldown, then for programs the interval.
  let finish: (outcome: TurnOutcome) => void = () => {}
  world.onBegin = () => new Promise(resolve => (finish = resolve))
  const dry = await wake(world, 'able', 'ses_able', { dry_run: true })
  assert.equal([dry.status, dry.decision.reason, dry.decision.wake_event_id], [200, 'wake_sent', undefined])
  const sent = await expect('wake_sent', 200, 'able', 'ses_able', { idempotency_key: 'once' })
  await expect('wake_coalesced', 200, 'able', 'ses_able')
  finish(endedTurn)
  await new Promise(resolve => setImmediate(resolve))
  await expect('cooldown_active', 200, 'able', 'ses_able')
  await world.clock.advance(61_000)
  await expect('heartbeat_rate_limited', 200, 'able', 'ses_able', { source: 'harness_reentry' })
  const again = await wake(world, 'able', 'ses_able', { idempotency_key: 'once' })
  assert.equal([again.decision.wake_event_id, again.decision.reason], [sent.wake_event_id, 'wake_sent'])

  assert.equal([...seen.keys()].sort(), Object.keys(RESULTS).sort())
  assert.equal(world.prompts.length, 1)
  assert.match(world.prompts[0]?.text ?? '', 'it claims no task run')
  assert.match(world.prompts[0]?.text ?? '', 'Ask nobody.')
  const {
    wake_state: state,
    wake_events: events,
    session_health: health,
  } = await status(world, 'able', '&session_id=ses_able')
  assert.equal([state.coalesced_count, state.last_reason, health.health], [1, 'heartbeat_rate_limited', 'healthy'])
  assert.is(events.length, 10)
  const { wake_events: all } = await status(world, 'able', `&workspace_id=${world.workspaceId}`)
  const nobody = all.find(({ reason }: Any) => reason === 'heartbeat_no_eligible_session')
  assert.equal([nobody.result, nobody.session_id, nobody.workspace_id], ['skipped', undefined, world.workspaceId])
  // A key is that of one session: for another one it is another wake-up.
  await world.session('ses_twin', 'able')
  world.onBegin = async () => endedTurn
  const twin = await wake(world, 'able', 'ses_twin', { idempotency_key: 'once' })
  assert.equal([twin.decision.reason, world.prompts.at(-1)?.id], ['wake_sent', 'ses_twin'])
  assert.is(
    (await wake(world, 'able', 'ses_able', { idempotency_key: 'once' })).decision.wake_event_id,
    sent.wake_event_id,
  )
  const absent = await world.request('GET', '/api/agents/able/heartbeat/status?session_id=ses_none')
  assert.is((absent.body as Any).code, 'wake_session_not_found')
  await world.close()
})

test('by the clock: no session waits without a policy, and a new policy applies at once', async () => {
  const world = await openWorld({ start: START, config: { wake_event_retention: '2h' } })
  const folder = await world.agent('late')
  await world.session('ses_1', 'late')
  assert.equal((await status(world, 'late')).validation_status, 'missing')
  await world.clock.advance(3_600_000)
  assert.equal(world.prompts, [])
  // Written by hand: noticed, without anybody asking.
  await writeFile(path.join(folder, 'HEARTBEAT.md'), POLICY)
  await noticed(world, () => world.waiting === 1)
  const seen = world.clock.now()
  // It was due long ago: once, however much was missed; and one that comes a little late pushes none a minute further. The clock is
  // moved minutes before the next one: within the last minute its timer is not set again, and fires only when this clock advances.
  while (world.prompts.length === 0) await world.passTo(world.clock.now() + 10_000, 1)
  world.clock.jump(8)
  const [first] = world.prompts as [World['prompts'][number]]
  assert.ok(first.at - seen <= 60_000, `${first.at - seen} ms`)
  await world.passTo(first.at + 32 * 60_000, 1)
  assert.equal(
    world.prompts.map(({ at }) => Math.round((at - first.at) / 60_000)),
    [0, 10, 20, 30],
  )
  // A policy that is written through the daemon counts at once; the audit ends with its retention.
  const { digest } = await status(world, 'late')
  const off = POLICY.replace('---', '---\nenabled: false')
  const put = await world.request('PUT', '/api/agents/late/heartbeat', { body: off, expected_digest: digest })
  assert.is(put.status, 200)
  const before = world.prompts.length
  await world.clock.advance(3 * 3_600_000)
  assert.is(world.prompts.length, before)
  assert.is((await wake(world, 'late', 'ses_1')).decision.reason, 'heartbeat_disabled')
  assert.is((await status(world, 'late')).wake_events.length, 1)
  await world.close()
})

test('files written, moved or removed by hand are noticed, also for running sessions', async () => {
  const world = await openWorld({ start: START })
  const folder = await world.agent('able')
  const file = path.join(folder, 'HEARTBEAT.md')
  await world.session('ses_1', 'able')
  for (let round = 0; round < 2; round++) {
    await writeFile(file, POLICY)
    await noticed(world, () => world.waiting === 1)
    await rm(file)
    await noticed(world, () => world.waiting === 0)
  }
  // Nobody is left who would want to know, then somebody is.
  await world.end('ses_1', 'completed')
  await writeFile(`${file}.new`, POLICY)
  await rename(`${file}.new`, file)
  await world.session('ses_2', 'able')
  assert.is(world.waiting, 1)
  await writeFile(file, '---\ntools: [x]\n---\n')
  await noticed(world, () => world.waiting === 0)
  await world.close()
})

test('disabled heartbeats wake no session for any caller', async () => {
  const world = await openWorld({ start: START, config: { enabled: false } })
  await world.agent('able', POLICY)
  await world.session('ses_1', 'able')
  assert.is(world.waiting, 0)
  assert.is((await wake(world, 'able', 'ses_1')).decision.reason, 'heartbeat_disabled')
  const { enabled, validation_status } = await status(world, 'able')
  assert.equal([enabled, validation_status], [false, 'inactive'])
  await world.close()
})

test('a wake-up without a session picks the last active one, and starts one only if none is open', async () => {
  const world = await openWorld({ start: START, config: { active_session_only: false, wake_cooldown: '1s' } })
  await world.agent('able', POLICY)
  for (const id of ['ses_1', 'ses_2', 'ses_3', 'ses_4']) await world.session(id, 'able')
  world.change('ses_1', { updatedAt: START + 2 })
  world.change('ses_2', { updatedAt: START + 3, state: 'stopped', stopReason: 'agent_crashed' })
  world.change('ses_3', { updatedAt: START + 4, state: 'stopped', stopReason: 'completed' })
  world.health.set('ses_4', { active_prompt: true })
  const woken = async () => {
    await wake(world, 'able', '')
    await world.clock.advance(2000)
    return world.prompts.at(-1)?.id
  }
  assert.is(await woken(), 'ses_1')
  world.change('ses_1', { state: 'stopping' })
  assert.is(await woken(), 'ses_2')
  world.change('ses_2', { state: 'stopped', stopReason: 'user_canceled' })
  assert.is((await wake(world, 'able', '')).decision.reason, 'heartbeat_no_eligible_session')
  await world.close()
})

test('the clock restarts stopped sessions where configured, and only those that a prompt restarts', async () => {
  const world = await openWorld({ start: START, config: { active_session_only: false } })
  await world.agent('able', POLICY)
  for (const id of ['ses_1', 'ses_2', 'ses_3']) await world.session(id, 'able')
  await world.end('ses_1', 'shutdown')
  await world.end('ses_2', 'agent_crashed')
  await world.end('ses_3', 'user_canceled')
  assert.is(world.waiting, 2)
  await world.passTo(START + 10 * 60_000 + 1000, 2)
  assert.equal(world.prompts.map(({ id }) => id).sort(), ['ses_1', 'ses_2'])
  // No place is free: it is tried again a little later, not at once.
  await world.end('ses_1', 'agent_crashed')
  world.onBegin = async id => {
    if (id === 'ses_1') throw SessionErrors.session_limit()
    return endedTurn
  }
  await world.passTo(START + 24 * 60_000, 2)
  const { wake_events: events } = await status(world, 'able', '&session_id=ses_1')
  assert.equal(
    events.map(({ reason }: Any) => reason),
    ['synthetic_prompt_failed', 'wake_sent'],
  )
  world.onBegin = async () => endedTurn
  await world.passTo(START + 26 * 60_000, 2)
  assert.is(world.prompts.at(-1)?.id, 'ses_1')
  // With the default nothing that is stopped waits.
  await world.end('ses_1', 'shutdown')
  await writeFile(path.join(world.home, 'config.json'), '{}')
  await world.close()
  const again = await openWorld({ start: START })
  await again.agent('able', POLICY)
  await again.session('ses_1', 'able')
  await again.end('ses_1', 'shutdown')
  assert.is(again.waiting, 0)
  await again.close()
})

test('an agent that dies at every wake-up is woken with back-off and a reason, until one succeeds', async () => {
  const world = await openWorld({ start: START, config: { active_session_only: false } })
  await world.agent('able', POLICY)
  await world.session('ses_1', 'able')
  const failure = { kind: 'process_exit', summary: 'the agent process ended with code 3' } as const
  const dies = async (id: string): Promise<TurnOutcome> => {
    await soon()
    await world.end(id, 'agent_crashed')
    return { status: 'failed', turnId: 'trn_1', error: failure.summary, failure, stopped: true }
  }
  world.onBegin = dies
  /** Lets time pass, but not while a death is being written down: that takes real time. */
  const pass = async (minutes: number) => {
    for (const end = world.clock.now() + minutes * 60_000; world.clock.now() < end; ) {
      await world.passTo(world.clock.now() + 5 * 60_000, 1)
      const deaths = async () =>
        (await status(world, 'able', '&session_id=ses_1')).wake_events.filter(({ result }: Any) => result === 'failed')
      while ((await deaths()).length < world.prompts.length) await soon()
    }
  }
  await pass(12 * 60)
  const gaps = () => world.prompts.slice(1).map(({ at }, i) => Math.round((at - (world.prompts[i]?.at ?? 0)) / 60_000))
  assert.equal(gaps(), [10, 20, 40, 80, 160, 320])
  const failing = await status(world, 'able', '&session_id=ses_1')
  assert.equal(
    failing.wake_events.slice(0, 4).map(({ result, reason }: Any) => `${result} ${reason}`),
    ['failed synthetic_prompt_failed', 'sent wake_sent', 'failed synthetic_prompt_failed', 'sent wake_sent'],
  )
  const { last_result, last_reason, next_allowed_at } = failing.wake_state
  assert.equal([last_result, last_reason], ['failed', 'synthetic_prompt_failed'])
  const last = world.prompts.at(-1)?.at ?? 0
  assert.ok(Math.abs(Date.parse(next_allowed_at) - last - 640 * 60_000) <= 60_000, next_allowed_at)
  const [diagnostic] = failing.diagnostics.filter(({ code }: Any) => code === 'heartbeat_failing')
  assert.match(
    diagnostic.message,
    `the last 7 wake-ups of ses_1 ended with its agent: the next one is tried at ${next_allowed_at}`,
  )
  const doctor = async () => (await world.request('GET', '/api/doctor?only=heartbeats')).body as Any
  assert.equal(
    (await doctor()).items.map(({ code }: Any) => code),
    ['heartbeat_failing'],
  )

  // Programs wait for the end of the pause too; whoever has mended the agent does not, and then all is as before.
  assert.is((await wake(world, 'able', 'ses_1', { source: 'harness_reentry' })).decision.reason, 'session_unhealthy')
  world.onBegin = async () => endedTurn
  assert.is((await wake(world, 'able', 'ses_1')).decision.reason, 'wake_sent')
  const mended = await status(world, 'able', '&session_id=ses_1')
  assert.equal([mended.diagnostics, (await doctor()).items], [[], []])
  await world.end('ses_1', 'agent_crashed')
  await world.passTo(world.clock.now() + 25 * 60_000, 1)
  assert.equal(gaps().slice(-2), [10, 10])
  assert.equal(
    [0, 1, 2, 3, 99].map(failures => pauseMs(3_600_000, failures) / 3_600_000),
    [1, 1, 2, 4, 24],
  )
  assert.is(pauseMs(7 * 24 * 3_600_000, 9), 7 * 24 * 3_600_000)
  await world.close()
})

test('a crash counts although a prompt starts the session again before it is noted', async () => {
  const world = await openWorld({ start: START, config: { active_session_only: false } })
  await world.agent('able', POLICY)
  await world.session('ses_1', 'able')
  const failure = { kind: 'process_exit', summary: 'the agent process ended with code 3' } as const
  world.onBegin = async id => {
    await soon()
    await world.end(id, 'agent_crashed')
    world.change(id, { state: 'active' })
    return { status: 'failed', turnId: 'trn_1', error: failure.summary, failure, stopped: true }
  }
  assert.is((await wake(world, 'able', 'ses_1')).decision.reason, 'wake_sent')
  const events = async () =>
    (await status(world, 'able', '&session_id=ses_1')).wake_events.map(({ result }: Any) => result)
  for (let turns = 0; turns < 500 && (await events()).length < 2; turns++) await soon()
  assert.equal(await events(), ['failed', 'sent'])
  // A failure of the turn alone is no crash: the session goes on.
  await world.clock.advance(61_000)
  world.onBegin = async () => ({ status: 'failed', turnId: 'trn_2', error: failure.summary, failure })
  assert.is((await wake(world, 'able', 'ses_1')).decision.reason, 'wake_sent')
  await world.clock.advance(61_000)
  assert.equal(await events(), ['sent', 'failed', 'sent'])
  await world.close()
})

test('a wake-up includes the contents of its policy from every contributor within its size limit', async () => {
  const guest = { task: async (): Promise<string | undefined> => 'task 7 is blocked\nby task 6' }
  const { contribute } = surfaceOf<object>()
  const tasks = definePlugin({ name: 'vendor.tasks', version: '0.0.1', service: async () => class {} }).surface({
    registries: [contribute(WakeContexts, () => [{ name: 'task', read: () => guest.task() }])],
  })
  const config = { context_projection_bytes: 300, wake_cooldown: '1s' }
  const world = await openWorld({ start: START, config, plugins: [tasks] })
  const include = 'include: [inbox_summary, task, self, task, session_health]'
  const folder = await world.agent('able', `---\nsummary: Look.\ncontext: { ${include} }\n---\nAsk nobody.\n`)
  await world.session('ses_1', 'able')
  const woken = async () => {
    const { decision } = await wake(world, 'able', 'ses_1')
    await world.clock.advance(2000)
    const codes = decision.diagnostics?.map(({ code }: Any) => code)
    return { codes, lines: world.prompts.at(-1)?.text.split('\n\n').slice(1) }
  }
  const { codes, lines } = await woken()
  assert.equal(codes, ['heartbeat_context_unavailable'])
  assert.equal(lines?.slice(0, 2), ['Look.', 'Ask nobody.'])
  assert.match(
    lines?.[2] ?? '',
    /^- task 7 is blocked\n {2}by task 6\n- you are the agent able .*\n- the session is healthy/,
  )
  assert.match(JSON.stringify((await status(world, 'able')).diagnostics), 'inbox_summary')

  guest.task = async () => 'é'.repeat(500)
  const long = await woken()
  assert.ok(long.codes.includes('heartbeat_context_truncated'))
  const text = long.lines?.join('\n\n') ?? ''
  assert.match(text, /é\n\[truncated\]$/)
  assert.ok([299, 300].includes(Buffer.byteLength(text)), `${Buffer.byteLength(text)} bytes`)
  // Who fails is left out; the others are told.
  guest.task = () => Promise.reject(new Error('no tasks today'))
  const failed = await woken()
  assert.equal(failed.codes, ['heartbeat_context_unavailable', 'heartbeat_context_failed'])
  assert.match(failed.lines?.[2] ?? '', /^- you are/)
  await writeFile(path.join(folder, 'HEARTBEAT.md'), '---\nenabled: true\n---\n')
  assert.equal((await woken()).lines, [])
  await world.close()
})

test('a stopped session waits no longer, and a package that removes its policy ends the wait', async () => {
  const world = await openWorld({ start: START })
  const owner = { expected_version: 0, scope: { kind: 'global' } }
  const spec = { name: 'packed', prompt: 'Do it.', command: 'true' }
  assert.is((await world.request('PUT', '/api/resources/agent/agt_1', { ...owner, spec })).status, 201)
  const policy = { agent_id: 'agt_1', agent_name: 'packed', content: POLICY, source_path: 'x/HEARTBEAT.md' }
  await world.session('ses_1', 'packed')
  await world.session('ses_2', 'packed')
  assert.is(
    (await world.request('PUT', '/api/resources/agent.heartbeat/hbt_1', { ...owner, spec: policy })).status,
    201,
  )
  assert.is((await status(world, 'packed')).active, true)
  await world.passTo(START + 10 * 60_000 + 1000, 2)
  assert.equal(world.prompts.map(({ id }) => id).sort(), ['ses_1', 'ses_2'])
  world.change('ses_1', { state: 'stopped' })
  await status(world, 'packed')
  await world.passTo(START + 20 * 60_000 + 1000, 1)
  assert.equal(world.prompts.map(({ id }) => id).slice(2), ['ses_2'])
  const removal = await world.request('DELETE', '/api/resources/agent.heartbeat/hbt_1', { expected_version: 1 })
  assert.is(removal.status, 204)
  assert.is((await status(world, 'packed')).validation_status, 'missing')
  await world.clock.advance(3_600_000)
  assert.is(world.prompts.length, 3)
  await world.close()
})

test.run()
