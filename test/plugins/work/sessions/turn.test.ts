import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { AgentFailure, type Pulse } from '../../../../plugins/work/acp/api.js'
import type { ToolCallFields } from '../../../../plugins/work/acp/protocol/schemas.js'
import type { NewEvent } from '../../../../plugins/work/sessions/events.js'
import { type SessionLimits, SessionSettings } from '../../../../plugins/work/sessions/settings.js'
import { Turn, type TurnAgent } from '../../../../plugins/work/sessions/turn/turn.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'

/** A turn on a clock that the test moves, with an agent that answers what the test says. */
function turnOn(limits: Partial<SessionLimits>, agent: TurnAgent, pulse: () => Pulse | undefined = () => undefined) {
  const clock = new VirtualClock()
  const events: NewEvent[] = []
  const beats: number[] = []
  const defaults = Object.fromEntries(Object.entries(SessionSettings).map(([name, entry]) => [name, entry.default]))
  const waiting = { value: false }
  const turn = new Turn(
    { turnId: 'trn_1', source: 'user', text: 'hello' },
    {
      files: () => [],
      clock,
      limits: { ...(defaults as SessionLimits), ...limits },
      append: event => events.push(event),
      sync: async () => {},
      waitsForPerson: () => waiting.value,
      pulse,
      expired: () => 0,
      releaseWaiting: () => {},
      closing: () => {},
      failureOf: async failure => ({ kind: failure.kind, summary: failure.message }),
      heartbeat: at => beats.push(at),
      stoodStill: () => {},
    },
  )
  return { clock, events, beats, waiting, turn, ended: turn.run(agent, { texts: ['hello'] }, turn.open()) }
}

const never = new Promise<string>(() => {})
const minutes = (n: number) => n * 60_000

test('silence: a warning after 15 minutes, a cancel after 30, the end after the grace', async () => {
  let cancels = 0
  const silent = { prompt: () => never, cancel: async () => void cancels++ }
  const { clock, events, ended, beats } = turnOn({ silenceNotice: 0 }, silent)
  await clock.advance(minutes(14))
  assert.equal(
    events.map(({ type }) => type),
    ['user_message', 'runtime_progress'],
  )
  await clock.advance(minutes(2))
  assert.is(events.at(-1)?.type, 'runtime_warning')
  await clock.advance(minutes(13))
  assert.is(cancels, 0)
  await clock.advance(minutes(1))
  assert.is(cancels, 1)
  await clock.advance(31_000)
  const { outcome, stuck, cancel } = await ended
  assert.equal([outcome.status, stuck, cancel], ['failed', true, 'activity_timeout'])
  assert.is(outcome.status === 'failed' && outcome.failure.kind, 'timeout')
  assert.is(events.filter(({ type }) => type === 'runtime_warning').length, 1)
  assert.ok(beats.length >= 59)
  assert.is(clock.pending, 0, 'no timer stays')
})

test('silence ended by the agent within the grace fails only the turn', async () => {
  let answer: (reason: string) => void = () => {}
  const prompt = () => new Promise<string>(resolve => (answer = resolve))
  const { clock, ended } = turnOn({}, { prompt, cancel: async () => answer('cancelled') })
  await clock.advance(minutes(31))
  const { outcome, stuck } = await ended
  assert.equal([outcome.status, stuck], ['failed', false])
})

test('a working agent and one waiting for a user are not silent', async () => {
  const busy = turnOn({}, { prompt: () => never, cancel: async () => {} })
  for (let i = 0; i < 100; i++) {
    await busy.clock.advance(minutes(1))
    busy.turn.touch('agent_message')
  }
  assert.is(busy.turn.cancelReason, undefined)
  const asking = turnOn({}, { prompt: () => never, cancel: async () => {} })
  asking.waiting.value = true
  await asking.clock.advance(minutes(120))
  assert.is(asking.turn.cancelReason, undefined)
})

test('unresponsive: three checks in a row end the turn without a grace, before any silence', async () => {
  let cancels = 0
  const deaf = { prompt: () => never, cancel: async () => void cancels++ }
  const { clock, turn, ended } = turnOn({}, deaf, () => ({ frozen: true, cpuMs: 50 }))
  await clock.advance(13_000)
  assert.equal([turn.stalled, turn.cancelReason], [true, undefined])
  await clock.advance(12_000)
  const { outcome, stuck, cancel } = await ended
  assert.equal([outcome.status, stuck, cancel, cancels], ['failed', true, 'frozen', 0])
  assert.match(outcome.status === 'failed' ? outcome.error : '', /^timeout: .*frozen/)
  assert.is(clock.pending, 0)

  let frozen = true
  const thawed = turnOn({}, deaf, () => ({ frozen, cpuMs: 50 }))
  await thawed.clock.advance(13_000)
  frozen = false
  await thawed.clock.advance(6_000)
  frozen = true
  await thawed.clock.advance(12_000)
  assert.equal([thawed.turn.stalled, thawed.turn.cancelReason], [true, undefined])
})

test('silence is reported once within 30 s, again after new activity, and not during a tool', async () => {
  const { clock, turn, events } = turnOn({}, { prompt: () => never, cancel: async () => {} })
  const notices = () => events.filter(({ content }) => content.warning === 'silent')
  await clock.advance(15_000)
  assert.is(notices().length, 0)
  await clock.advance(15_000)
  assert.match(String(notices()[0]?.content.text), /no output from the agent for 20 s.*model/)
  await clock.advance(minutes(5))
  assert.is(notices().length, 1)
  turn.touch('agent_message')
  await clock.advance(30_000)
  assert.is(notices().length, 2)
  turn.calls.take('trn_1', { toolCallId: 't', status: 'in_progress' } as ToolCallFields)
  turn.touch('tool_call')
  await clock.advance(minutes(5))
  assert.is(notices().length, 2)
  turn.calls.take('trn_1', { toolCallId: 't', status: 'completed' } as ToolCallFields)
  turn.touch('tool_result')
  await clock.advance(30_000)
  assert.is(notices().length, 3)
})

test('a working agent without output is not silent; one that only ticks is', async () => {
  let cpuMs = 1000
  const working = turnOn({}, { prompt: () => never, cancel: async () => {} }, () => ({ frozen: false, cpuMs }))
  for (let i = 0; i < 60; i++) {
    cpuMs += 10_000
    await working.clock.advance(minutes(1))
  }
  assert.is(working.turn.cancelReason, undefined)
  for (let i = 0; i < 31; i++) {
    cpuMs += 100
    await working.clock.advance(minutes(1))
  }
  assert.is(working.turn.cancelReason, 'activity_timeout')
})

test('zero disables a limit; a turn may set its own', async () => {
  const off = turnOn(
    { inactivityTimeout: 0, inactivityWarning: 0, progressNotify: 0, silenceNotice: 0 },
    { prompt: () => never, cancel: async () => {} },
  )
  await off.clock.advance(minutes(600))
  assert.equal([off.turn.cancelReason, off.events.length], [undefined, 1])
  const limited = turnOn({ turnTimeout: minutes(5) }, { prompt: () => never, cancel: async () => {} })
  for (let i = 0; i < 6; i++) {
    await limited.clock.advance(minutes(1))
    limited.turn.touch()
  }
  assert.equal([(await limited.ended).outcome.status, limited.turn.cancelReason], ['failed', 'turn_timeout'])
})

test('a successful turn without text reports a possible failure of the model', async () => {
  const run = async (kinds: readonly string[]) => {
    const { events, ended, turn } = turnOn({}, { prompt: async () => 'end_turn', cancel: async () => {} })
    for (const kind of kinds) turn.touch(kind)
    await ended
    return events.filter(({ content }) => content.warning === 'empty_turn').length
  }
  assert.equal(
    [await run([]), await run(['usage']), await run(['agent_message']), await run(['tool_call'])],
    [1, 1, 0, 0],
  )
})

test('a turn ends with its stop reason', async () => {
  const outcome = async (prompt: () => Promise<string>) =>
    (await turnOn({}, { prompt, cancel: async () => {} }).ended).outcome
  assert.equal(await outcome(async () => 'max_tokens'), {
    status: 'completed',
    turnId: 'trn_1',
    stopReason: 'max_tokens',
  })
  assert.is((await outcome(async () => 'cancelled')).status, 'canceled', 'an agent may cancel by itself')
  const failed = await outcome(() => Promise.reject(new AgentFailure('prompt_failure', 'no model')))
  assert.equal(failed.status === 'failed' && [failed.error, failed.failure.kind], [
    'prompt_failure: no model',
    'prompt_failure',
  ])
  const odd = await outcome(() => Promise.reject(new Error('odd')))
  assert.is(odd.status === 'failed' && odd.failure.kind, 'unknown_failure')
})

test.run()
