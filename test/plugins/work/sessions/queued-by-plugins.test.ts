import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Sessions } from '../../../../plugins/work/sessions/api.js'
import { probe } from '../../../../testing/look.js'
import { eventually, openWorld, said } from '../../../fixtures/session-world.js'

test('a prompt that a plugin queues waits for the turn that runs, and the same key has one turn', async () => {
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
    assert.is(said(await world.events(at)), 'first\nsecond\nthird\nfourth\n')
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

test.run()
