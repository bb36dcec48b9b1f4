import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { OutputEnd } from '../../../../plugins/platform/processes/api.js'
import { redactEnvironment, redactText } from '../../../../plugins/platform/redaction/secret-patterns.js'
import { decodeEvent, encodeEvent, type NewEvent } from '../../../../plugins/work/sessions/events.js'
import { boundText, boundValue } from '../../../../plugins/work/sessions/journal/bounds.js'
import { TranscriptFolder } from '../../../../plugins/work/sessions/read/transcript.js'
import {
  isRestartable,
  RESTARTABLE,
  TRANSITIONS,
  walk,
  wayToStopped,
} from '../../../../plugins/work/sessions/states.js'
import { durationMs } from '../../../../schemas/duration.js'
import { processorMs } from '../../../harness/processor-time.js'

test('session states have only the transitions of the table', () => {
  const states = Object.keys(TRANSITIONS) as (keyof typeof TRANSITIONS)[]
  for (const from of states) {
    for (const to of states) {
      if (TRANSITIONS[from].includes(to)) assert.is(walk(from, to), to)
      else assert.throws(() => walk(from, to), `${from} to ${to}`)
    }
    assert.is(walk(from, ...wayToStopped(from)), 'stopped', 'every state ends')
  }
  assert.equal(TRANSITIONS.stopped, ['starting'])
  assert.equal([...RESTARTABLE].sort(), ['agent_crashed', 'shutdown'])
  assert.ok(isRestartable('stopped', 'shutdown'))
  for (const reason of ['completed', 'user_canceled', 'timeout', 'error'] as const) {
    assert.not(isRestartable('stopped', reason))
  }
  assert.not(isRestartable('active', 'shutdown'))
})

for (const [text, ms] of Object.entries({
  '0': 0,
  '0s': 0,
  '30s': 30_000,
  '1h30m': 5_400_000,
  '1.5h': 5_400_000,
  '250ms': 250,
  '87600h': 87_600 * 3_600_000,
  '1d': 86_400_000,
  '1d12h': 129_600_000,
}))
  test(`the duration ${text} is ${ms} ms`, () => assert.is(durationMs(text), ms))

for (const text of ['', '5', 's', '-1s', '1 s', '1h ', '1h-1m', '.5h', '1w', '87601h', '3651d', '1s'.repeat(40)])
  test(`the duration "${text}" is invalid`, () => assert.is(durationMs(text), undefined))

test('texts are redacted, bounded and split into lines', () => {
  const secret = 'curl -H "Authorization: Bearer abcdef123456" https://me:hunter2@host/ api_key=sk-verysecretvalue1'
  const safe = redactText(secret)
  for (const word of ['abcdef123456', 'hunter2', 'verysecret']) assert.not.match(safe, word)
  assert.match(safe, 'https://me:')
  const env = redactEnvironment({ PATH: '/bin', OPENAI_API_KEY: 'sk-1', DB_PASSWORD: 'x', SVC_SESSION_ID: 'ses_1' })
  assert.equal(env, { DB_PASSWORD: '[redacted]', OPENAI_API_KEY: '[redacted]', PATH: '/bin', SVC_SESSION_ID: 'ses_1' })

  assert.is(boundText('abc', 3), 'abc')
  assert.match(boundText('abcdef', 3), /^abc… \(3/)
  let deep: unknown = 'end'
  for (let i = 0; i < 1000; i++) deep = { deep }
  const huge = { deep, text: 'x'.repeat(5_000_000), list: Array.from({ length: 50_000 }, (_, i) => i) }
  assert.ok(JSON.stringify(boundValue(huge)).length < 2_000_000)

  const output = new OutputEnd(4)
  for (const piece of ['ab', 'cd', 'ef']) output.push(Buffer.from(piece))
  assert.equal([output.text(), output.truncated], ['cdef', true])
  const many = new OutputEnd(10_000)
  for (let i = 0; i < 5000; i++) many.push(Buffer.from('x'))
  assert.is(many.text().length, 5000)
})

test('an event is the same after the journal, and garbage reads as such an event', () => {
  const failure = { kind: 'process_exit' as const, summary: 's', crashBundlePath: '/x' }
  const event: NewEvent = {
    type: 'error',
    turnId: 't',
    content: { error: 'e' },
    failure,
    stopReason: 'error',
    stopDetail: 'd',
  }
  const read = decodeEvent(7, encodeEvent(event, 'evt_1', 1_000))
  assert.equal([read.sequence, read.id, read.at, read.type, read.failure], [7, 'evt_1', 1_000, 'error', failure])
  assert.equal([read.stopReason, read.stopDetail, read.content.error], ['error', 'd', 'e'])
  for (const bytes of ['', 'null', '[]', '{"type":5}']) assert.is(decodeEvent(1, Buffer.from(bytes)).type, 'system')
})

test('the fold keeps an entry per message and changes only the last', () => {
  const folder = new TranscriptFolder()
  let sequence = 0
  const take = (type: string, turnId: string, content: object) =>
    folder.take({ sequence: ++sequence, id: `e${sequence}`, type, turnId, at: 0, content: { ...content } })
  assert.is(take('user_message', 't1', { text: 'hi' })?.message.role, 'user')
  const first = take('agent_message', 't1', { text: 'a' })
  assert.is(take('agent_message', 't1', { text: 'b' })?.message.id, first?.message.id)
  take('tool_call', 't1', { tool_call_id: 'c', title: 'T', kind: 'read', raw_input: { x: 1 } })
  take('permission', 't1', { request_id: 'p', status: 'pending', title: 'T' })
  take('permission', 't1', { request_id: 'p', status: 'resolved', decision: 'allow-once' })
  const ended = take('tool_result', 't1', { tool_call_id: 'c', title: 'T', status: 'failed', error: 'no' })
  assert.equal(
    ended?.message.parts.map(part => [part.type, part.state]),
    [
      ['text', undefined],
      ['dynamic-tool', 'output-error'],
      ['data-permission', 'resolved'],
    ],
  )
  assert.is(ended?.message.parts[0]?.text, 'ab')
  assert.equal(ended?.message.parts[1]?.input, { x: 1 })
  const done = take('done', 't1', { status: 'completed', stop_reason: 'end_turn' })
  assert.equal([done?.start_sequence, done?.sequence], [2, 8])
  assert.is(take('done', 't2', { status: 'canceled' }), undefined, 'a turn that said nothing is no message')
  assert.is(take('session_stopped', '', { reason: 'shutdown' })?.message.role, 'system')
})

for (const unit of ['z', 'a-', 'a://b:', 'token', 'token=', 'Bearer ', 'sk-', 'password  '])
  test(`redaction of repeated "${unit}" takes less than quadratic time`, () => {
    const time = (text: string) => processorMs(() => redactText(text))
    const texts = [2000, 20_000].map(length => unit.repeat(length / unit.length))
    const [short = 0, long = 0] = texts.map(text => Math.min(time(text), time(text), time(text)))
    // Ten times is the length; the square would be a hundred.
    assert.ok(long < 50 * short + 50, `${short} ms, ten times the length ${long} ms`)
  })

test.run()
