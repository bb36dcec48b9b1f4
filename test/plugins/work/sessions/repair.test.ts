import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Killed, killedDaemon, type Sabotage } from '../../../fixtures/session-daemon.js'
import { agentText, isAlive, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

const types = (events: readonly Reply[]) => events.map(event => event.type)

/** One daemon that was killed, with all that the tests look at. */
const scenario = async (world: World, sabotage: Sabotage) => {
  await world.agent('loads', { flags: '--load --ignore-stdin-end --ignore-term' })
  await world.agent('plain')
  const { id, at } = await world.session('loads')
  await world.prompt(at, 'say first')
  const call = {
    sessionUpdate: 'tool_call',
    toolCallId: 'c9',
    title: 'Long work',
    kind: 'execute',
    status: 'in_progress',
  }
  await world.kernel.request('POST', `${at}/prompt`, {
    text: `update ${JSON.stringify(call)}\npid\nhang`,
    idempotency_key: 'lost',
  })
  await world.until(at, event => event.type === 'agent_message' && event.content.text.startsWith('pid'))
  const idle = await world.session('loads')
  const half = await world.session('plain')
  await world.prompt(half.at, 'say x')
  sabotage.failStops()
  const { status } = await world.kernel.request('POST', `${half.at}/stop`)
  return { id, at, idle: idle.id, half, status, state: (await world.row(half.id)).state as string }
}

let daemon: Killed<Awaited<ReturnType<typeof scenario>>>
let world: World

test.before(async () => {
  daemon = await killedDaemon(scenario)
  world = await openWorld({ home: daemon.home, root: daemon.root })
})
test.after(async () => {
  await world.close()
  await daemon.remove()
})

test('after kill -9 sessions are repaired, no process remains, and the key of the lost prompt is a conflict', async () => {
  const { id, at, idle } = daemon.result
  await world.agent('loads', { flags: '--load' })
  const events = await world.events(at)
  const pid = Number(/pid (\d+)/.exec(agentText(events))![1])
  assert.not(isAlive(pid))
  const row = await world.row(id)
  assert.equal([row.state, row.stop_reason, row.failure.kind], ['stopped', 'agent_crashed', 'process_exit'])
  assert.match(row.stop_detail, /daemon crashed while session active/)
  assert.equal(types(events).slice(-3), ['tool_result', 'error', 'session_stopped'])
  assert.equal(
    [events.at(-3).content.tool_call_id, events.at(-3).content.synthetic, events.at(-3).content.status],
    ['c9', true, 'failed'],
  )
  assert.equal(
    events.map(event => event.sequence),
    events.map((_, index) => index + 1),
    'nothing is renumbered',
  )
  assert.is((await world.row(idle)).stop_reason, 'agent_crashed')
  const lost = { text: 'update x', idempotency_key: 'lost' }
  assert.is((await world.kernel.request('POST', `${at}/prompt`, lost)).status, 409)
  const { usage } = (await world.kernel.request('GET', `${at}/usage`)).body
  assert.is(usage.turn_count, 2, 'the turn that was cut is counted')

  await world.restart()
  assert.is((await world.events(at)).length, events.length, 'a repaired session is not repaired again')
  assert.match(agentText(await world.prompt(at, 'say on')), /on/)
})

test('a gap between the journal and the row of a stop is closed without a duplicate', async () => {
  const { half, status, state } = daemon.result
  assert.equal([status, state], [500, 'stopping'])
  const row = await world.row(half.id)
  assert.equal([row.state, row.stop_reason], ['stopped', 'user_canceled'], 'the journal knows why')
  assert.is(types(await world.events(half.at)).filter(type => type === 'session_stopped').length, 1)
})

test('a damaged journal quarantines only its session; leftovers of a removal are deleted', async () => {
  const bad = await world.session('plain')
  const good = await world.session('plain')
  for (const { at } of [bad, good]) await world.prompt(at, 'say x\nsay y')
  const trash = path.join(world.home, 'sessions', '.removed-ses_1')
  await mkdir(trash)
  await world.kernel.close()
  const file = path.join(world.home, 'sessions', bad.id, 'events-1.log')
  const bytes = readFileSync(file)
  bytes[60] = bytes[60]! ^ 0xff
  await writeFile(file, bytes)
  await world.restart()
  const events = await world.kernel.request('GET', `${bad.at}/events`)
  assert.is(events.status, 200)
  const gap = events.body.events.find((event: Reply) => event.type === 'transcript_marker.gap')
  assert.equal(gap.content, { reason: 'journal_damaged', from_sequence: 1, to_sequence: 1 })
  assert.match(agentText(events.body.events), /x\ny/, 'everything but the damaged record')
  const transcript = await world.kernel.request('GET', `${bad.at}/transcript`)
  assert.equal(
    [transcript.status, transcript.body.entries[0].message.parts[0].type],
    [200, 'data-transcript_marker.gap'],
  )
  const prompted = await world.kernel.request('POST', `${bad.at}/prompt`, { text: 'say z' })
  assert.not.match(String(prompted.status), /^2/, 'nothing is added to it')
  assert.is((await world.row(bad.id)).state, 'stopped')
  assert.match(agentText(await world.events(good.at)), /x\ny/)
  const named = async () => {
    const { body } = await world.kernel.request('GET', '/api/doctor?only=sessions')
    return body.items.filter((item: Reply) => item.code === 'session_journal_damaged')
  }
  assert.equal(
    (await named()).map((item: Reply) => [item.severity, item.evidence.session_id]),
    [['error', bad.id]],
  )
  assert.not(existsSync(trash))
  assert.is((await world.kernel.request('DELETE', bad.at)).status, 204)
  assert.equal(await named(), [])
})

test.run()
