import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, eventually, isAlive, openWorld, type World } from '../../../fixtures/session-world.js'
import { readStream } from '../../../fixtures/stream-reader.js'
import type { Reply } from '../../../harness/kernel.js'

let world: World

test.before(async () => {
  world = await openWorld({ listen: ['socket'] })
  await world.agent('loads', { flags: '--load' })
  await world.agent('plain')
})
test.after(() => world.close())

const request: World['kernel']['request'] = (method, url, body) => world.kernel.request(method, url, body)
let keys = 0
const rewind = (at: string, message_id: string, more: Reply = {}) =>
  request('POST', `${at}/rewind`, {
    message_id,
    idempotency_key: `key-${++keys}`,
    expected_epoch: null,
    expected_generation: null,
    expected_max_sequence: null,
    ...more,
  })
const pidOf = (events: readonly Reply[]) => Number(/pid (\d+)/.exec(agentText(events))![1])
const messages = async (at: string) =>
  (await request('GET', `${at}/transcript`)).body.entries.filter((entry: Reply) => entry.message.role === 'user')

for (const agent of ['loads', 'plain']) {
  test(`a rewind removes a turn for every reader and for the agent (${agent})`, async () => {
    const { id, at } = await world.session(agent)
    const pid = pidOf(await world.prompt(at, 'say kept\npid'))
    const edit = { toolCallId: 'e', title: 'edit', kind: 'edit', status: 'completed' }
    const told = {
      ...edit,
      sessionUpdate: 'tool_call',
      locations: [{ path: '/w/moved.txt' }],
      content: [{ type: 'diff', path: '/w/made.txt', oldText: null, newText: 'x' }],
    }
    await world.prompt(at, `say secret plan\nupdate ${JSON.stringify(told)}`)
    await world.prompt(at, 'say after it')
    const [, second] = await messages(at)
    const before = (await request('GET', `${at}/transcript`)).body
    const done = await rewind(at, second.message.id, {
      expected_epoch: before.epoch,
      expected_generation: before.generation,
      expected_max_sequence: before.max_sequence,
    })
    assert.is(done.status, 200, JSON.stringify(done.body))
    const { rewind: answer, session } = done.body
    assert.is(answer.archived_from_sequence, second.sequence)
    assert.is(answer.archived_through_sequence, before.max_sequence)
    assert.is(answer.archived_event_count, before.max_sequence - second.sequence + 1)
    assert.equal(answer.changed_files, ['/w/made.txt', '/w/moved.txt'])
    assert.match(answer.draft_text, /^say secret plan/)
    assert.equal([answer.transcript_epoch, session.transcript_epoch, answer.replayed], [1, 1, false])
    await eventually(async () => !isAlive(pid), 'the end of a process that remembers')
    for (const path of ['events?limit=1000', 'history', 'transcript']) {
      const text = JSON.stringify((await request('GET', `${at}/${path}`)).body)
      assert.match(text, /kept/, path)
      assert.not.match(text, /secret plan|after it/, path)
    }
    assert.is((await request('GET', `${at}/transcript`)).body.max_sequence, answer.max_sequence)
    const next = await world.prompt(at, 'echo')
    assert.match(agentText(next), /kept/, 'what stays is told to the new process')
    assert.not.match(agentText(next), /secret plan|after it/)
    assert.not.match(JSON.stringify(next), /session_restarted/)
    await world.restart()
    const later = await world.prompt(at, 'echo')
    assert.not.match(agentText(later), /secret plan|after it/, 'also after a restart')
    assert.is((await world.row(id)).transcript_epoch, 1)
    assert.not.match(JSON.stringify(await world.events(at)), /secret plan/)
  })
}

test('a rewind is done once per key, and only to an existing turn', async () => {
  const { at } = await world.session('plain')
  await world.prompt(at, 'say one')
  const reply = await request('POST', `${at}/prompt`, { text: 'say two', message_id: 'mine', idempotency_key: 'p' })
  const turn = reply.body.prompt.new_turn_id
  await world.until(at, event => event.turn_id === turn && event.type === 'done')
  const stale = async (more: Reply) => {
    const refused = await rewind(at, 'mine', more)
    return [refused.status, refused.body.code]
  }
  assert.equal(await stale({ expected_epoch: 7 }), [409, 'transcript_changed'])
  assert.equal(await stale({ expected_generation: 99 }), [409, 'transcript_changed'])
  assert.equal(await stale({ expected_max_sequence: 1 }), [409, 'transcript_changed'])
  assert.equal(await stale({ message_id: 'other' }), [404, 'message_not_found'])
  assert.is((await rewind(at, 'x'.repeat(201))).status, 400)
  assert.is((await request('POST', `${at}/rewind`, { message_id: 'mine' })).status, 400)
  const first = await rewind(at, 'mine', { idempotency_key: 'once' })
  assert.equal([first.status, first.body.rewind.draft_text], [200, 'say two'])
  const again = await rewind(at, 'mine', { idempotency_key: 'once' })
  assert.equal([again.body.rewind.replayed, again.body.rewind.transcript_epoch], [true, 1])
  const [one] = await messages(at)
  const other = await rewind(at, one.message.id, { idempotency_key: 'once' })
  assert.equal([other.status, other.body.code], [409, 'rewind_conflict'])
  assert.equal(await stale({}), [404, 'message_not_found'], 'it is gone')
})

test('rewind and clear are refused during a turn and after the end of a session', async () => {
  const { at } = await world.session('plain')
  await request('POST', `${at}/prompt`, { text: 'hang', message_id: 'm', idempotency_key: 'k' })
  const busy = await rewind(at, 'm')
  assert.equal([busy.status, busy.body.code], [409, 'session_busy'])
  assert.is((await request('POST', `${at}/clear`)).body.code, 'session_busy')
  await request('POST', `${at}/stop`)
  assert.is((await rewind(at, 'm')).body.code, 'session_stopped')
  assert.is((await request('POST', `${at}/clear`)).body.code, 'session_stopped')
})

test('clear starts an empty conversation, and followers get a snapshot', async () => {
  const { at } = await world.session('loads')
  await world.prompt(at, 'say forget me')
  const reader = await readStream(world.home, `${at}/stream`)
  const raw = await readStream(world.home, `${at}/stream?frames=raw`)
  const snapshot = await reader.next(frame => frame.event === 'transcript_snapshot')
  assert.match(JSON.stringify(snapshot.data.entries), /forget me/)
  const cleared = await request('POST', `${at}/clear`)
  assert.equal([cleared.status, cleared.body.session.transcript_epoch], [200, 1])
  const fresh = await reader.next(frame => frame.event === 'transcript_snapshot')
  assert.equal([fresh.data.reset, fresh.data.reason, fresh.data.epoch], [true, 'epoch_mismatch', 1])
  assert.not.match(JSON.stringify(fresh.data.entries), /forget me/)
  assert.is(agentText(await world.prompt(at, 'echo')).includes('forget me'), false)
  await reader.next(frame => frame.event === 'transcript_delta' && JSON.stringify(frame.data).includes('echo'))
  await raw.next(frame => frame.event === 'user_message' && frame.data.content.text === 'echo')
  assert.is((await request('POST', `${at}/clear`)).body.session.transcript_epoch, 2)
  const old = await readStream(world.home, `${at}/stream?epoch=1&generation=${snapshot.data.generation}`, '1')
  assert.is((await old.next(() => true)).data.reason, 'epoch_mismatch')
  for (const one of [reader, raw, old]) one.close()
})

test('a reader that pages back reaches an end at a cut, without older messages', async () => {
  const { at } = await world.session('loads')
  for (const text of ['say one', 'say two']) await world.prompt(at, text)
  assert.is((await request('POST', `${at}/clear`)).status, 200)
  const { max_sequence: newest } = (await request('GET', `${at}/transcript`)).body
  for (let before = 1; before <= newest + 1; before++) {
    const { body } = await request('GET', `${at}/transcript?before_sequence=${before}`)
    assert.equal([body.has_older, body.next_before_sequence], [false, undefined], `before ${before}`)
  }
  for (const text of ['say three', 'say four']) await world.prompt(at, text)
  const pages: number[] = []
  for (let query = '?limit=1'; ; ) {
    const { body } = await request('GET', `${at}/transcript${query}`)
    pages.push(body.entries.length)
    if (!body.has_older) break
    assert.ok(pages.length < 10, 'the pages come to an end')
    query = `?limit=1&before_sequence=${body.next_before_sequence}`
  }
  // The mark of the cut, two prompts and two answers.
  assert.equal(pages, [1, 1, 1, 1, 1])
})

test.run()
