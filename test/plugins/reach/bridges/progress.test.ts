import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { openChat } from './chat.js'

const look = `update ${JSON.stringify({
  sessionUpdate: 'tool_call',
  toolCallId: 't1',
  title: 'read notes.txt',
  kind: 'read',
  status: 'in_progress',
})}`

test('an answer with separate grouping is sent in messages without edits', async () => {
  const progress = { grouping: 'separate', tool_progress: 'all' }
  const chat = await openChat({ spec: { delivery_defaults: { progress } } })
  try {
    const gate = chat.world.gate()
    await chat.say(`say Looking.\n${look}\n${gate.line}\nsay Found.\nsay All of it.`)
    await chat.reads(texts => texts.includes('Looking.') && texts.includes('… read notes.txt'))
    await gate.open()
    const texts = await chat.reads(all => all.some(text => /All of it/.test(text)))
    assert.equal(
      texts.filter(text => !text.startsWith('…')),
      ['Looking.', 'Found.\nAll of it.'],
    )
    for (const message of chat.platform.messages) assert.is(message.texts.length, 1, 'nothing is changed')
    assert.not.ok(chat.platform.requests.some(({ remote_message_id }) => remote_message_id !== undefined))
  } finally {
    await chat.close()
  }
})

test('a typing notification is shown during a turn where enabled and supported', async () => {
  const run = async (typing: boolean, can: boolean) => {
    const spec = { delivery_defaults: { progress: { typing, tool_progress: 'off' } } }
    const chat = await openChat({ spec, capabilities: { typing: can } })
    try {
      const gate = chat.world.gate()
      const { session_id } = await chat.say(`${gate.line}\nsay Done.`)
      await chat.untilPrompted(session_id)
      const seen = () => chat.platform.requests.filter(({ event }) => event === 'typing')
      if (typing && can) await eventually(async () => seen().length > 0, 'a sign')
      await gate.open()
      await chat.reads(texts => texts.includes('Done.'))
      assert.equal(chat.platform.room({ peer_id: 'ada' }), ['Done.'], 'a sign is no message')
      return seen().map(({ target, text }) => ({ target, text }))
    } finally {
      await chat.close()
    }
  }
  assert.equal((await run(true, true))[0], { target: { peer_id: 'ada' }, text: '' })
  assert.equal(await run(false, true), [])
  assert.equal(await run(true, false), [])
})

test.run()
