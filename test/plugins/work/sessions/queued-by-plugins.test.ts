import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Sessions } from '../../../../plugins/work/sessions/api.js'
import { probe } from '../../../../testing/traces.js'
import { agentText, eventually, openWorld } from '../../../fixtures/session-world.js'

test('a prompt queued by a plugin waits for the running turn, and a repeated key has one turn', async () => {
  const look = probe({ sessions: Sessions })
  const world = await openWorld({ plugins: [look.plugin] })
  try {
    await world.agent('ada')
    const { id, at } = await world.session('ada')
    const queue = (key: string, text: string) => look.kernel().needs.sessions.queue(id, { text, source: 'tasks', key })
    const gate = world.gate()
    await world.kernel.request('POST', `${at}/prompt`, { text: `${gate.line}\nsay first` })
    await queue('one', 'say second')
    await queue('one', 'say second')
    await queue('two', 'say third')
    await gate.open()
    const ends = () => world.events(at).then(events => events.filter(({ type }) => type === 'done'))
    await eventually(async () => (await ends()).length === 3, 'three turns')
    await queue('two', 'say third')
    await queue('three', 'say fourth')
    await eventually(async () => (await ends()).length === 4, 'the fourth turn')
    assert.is(agentText(await world.events(at)), 'first\nsecond\nthird\nfourth\n')
    const sources = (await world.events(at))
      .filter(({ type }) => type === 'user_message')
      .map(({ content }) => content.source)
    assert.equal(sources, ['user', 'tasks', 'tasks', 'tasks'], JSON.stringify(sources))
    await look.kernel().needs.sessions.stop(id, { reason: 'user_canceled' })
    const refused = await queue('four', 'say fifth').catch(error => error.code)
    assert.is(refused, 'session_stopped')
  } finally {
    await world.close()
  }
})

test('a queued prompt names its turn, also when repeated, and its user', async () => {
  const look = probe({ sessions: Sessions })
  const world = await openWorld({ plugins: [look.plugin] })
  try {
    await world.agent('ada')
    const { id, at } = await world.session('ada')
    const onBehalfOf = { id: 'U1', name: 'Ada "\n Lovelace', via: 'slack' }
    const queue = (key: string, text: string) =>
      look.kernel().needs.sessions.queue(id, { text, source: 'bridge', key, onBehalfOf })
    const gate = world.gate()
    const first = await queue('one', `${gate.line}\nsay first`)
    const second = await queue('two', 'say second')
    assert.equal((await queue('two', 'say second')).turnId, second.turnId)
    // The daemon ends while one prompt runs and another waits.
    await world.restart()
    await gate.open()
    assert.is((await queue('two', 'say second')).turnId, second.turnId, 'what waits goes on')
    const done = await world.until(at, event => event.turn_id === second.turnId && event.type === 'done')
    const events = await world.events(at)
    const prompts = events.filter(({ type }) => type === 'user_message')
    assert.equal(
      prompts.map(({ turn_id, sequence, content }) => [turn_id, content.on_behalf_of, sequence >= first.from]),
      [first, second].map(({ turnId }) => [turnId, onBehalfOf, true]),
    )
    const [, begun] = prompts
    assert.ok(begun && begun.sequence >= second.from && done.sequence > begun.sequence)
    assert.equal(await queue('two', 'say second'), { turnId: second.turnId, from: begun.sequence })
    assert.is((await queue('one', `${gate.line}\nsay first`)).turnId, first.turnId, 'its end is in the journal')
  } finally {
    await world.close()
  }
})

test('a file of a plugin is attached to a prompt; an invalid one is refused', async () => {
  const look = probe({ sessions: Sessions })
  const world = await openWorld({ plugins: [look.plugin] })
  try {
    await world.agent('ada')
    const { id, at } = await world.session('ada')
    const { sessions } = look.kernel().needs
    const file = await sessions.attach(id, { name: 'notes.txt', type: 'text/plain', data: Buffer.from('buy milk') })
    const { turnId } = await sessions.queue(id, { text: 'say read', source: 'bridge', key: 'k', attachments: [file] })
    const prompt = await world.until(at, event => event.turn_id === turnId && event.type === 'user_message')
    assert.equal(prompt.content.attachments, [{ id: file, name: 'notes.txt', mime_type: 'text/plain', bytes: 8 }])
    const bad = { name: 'x.png', type: 'image/png', data: Buffer.from('no picture') }
    assert.is(await sessions.attach(id, bad).catch(error => error.code), 'attachment_type')
  } finally {
    await world.close()
  }
})

test.run()
