import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openChat } from './chat.js'

test('a message prompts the session of its conversation, and the answer comes back', async () => {
  const chat = await openChat()
  try {
    const first = await chat.say('say hello')
    assert.is(first.outcome, 'prompted')
    await chat.reads(texts => texts.length === 1 && texts[0] === 'hello')
    const second = await chat.say('say again')
    assert.is(second.session_id, first.session_id, 'the session of the conversation goes on')
    await chat.reads(texts => texts.length === 2 && texts[1] === 'again')
    const other = await chat.say('say other', { peer_id: 'bob', sender: { id: 'bob', authenticated: true } })
    assert.not.equal(other.session_id, first.session_id)
    await chat.reads(texts => texts[0] === 'other', { peer_id: 'bob' })
    const { routes } = (await chat.world.kernel.request('GET', '/api/bridges/b1/routes')).body
    assert.equal(routes.map((route: { peer_id: string }) => route.peer_id).sort(), ['ada', 'bob'])
    const at = `/api/workspaces/${chat.world.workspaceId}/sessions/${first.session_id}`
    const [prompt] = (await chat.world.events(at)).filter(({ type }) => type === 'user_message')
    assert.equal(prompt?.content.on_behalf_of, { id: 'ada', name: 'ada', via: 'fakechat (Team chat)' })
  } finally {
    await chat.close()
  }
})

test.run()
