import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { openChat } from './chat.js'

const code = (error: { code?: string }) => error.code

test('a message prompts the session of its conversation, and the answer is sent back', async () => {
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
    const [prompt] = (await chat.events(first.session_id)).filter(({ type }) => type === 'user_message')
    assert.equal(prompt?.content.on_behalf_of, { id: 'ada', name: 'ada', via: 'fakechat (Team chat)' })
  } finally {
    await chat.close()
  }
})

test('a repeated event, also concurrent or after a restart, prompts once', async () => {
  const chat = await openChat()
  try {
    const event = { idempotency_key: 'same' }
    const results = await Promise.all([1, 2, 3].map(() => chat.say('say once', event)))
    assert.equal(results.map(({ outcome }) => outcome).sort(), ['duplicate', 'duplicate', 'prompted'])
    assert.is(new Set(results.map(({ session_id }) => session_id)).size, 1)
    await chat.reads(texts => texts[0] === 'once')
    await chat.restart()
    const again = await chat.say('say once', event)
    assert.equal([again.outcome, again.session_id], ['duplicate', results[0]?.session_id])
    assert.is((await chat.events(again.session_id)).filter(({ type }) => type === 'user_message').length, 1)
    assert.equal(chat.platform.room({ peer_id: 'ada' }), ['once'])
  } finally {
    await chat.close()
  }
})

test('a question in a busy session is queued, and each gets its own answer', async () => {
  const chat = await openChat()
  try {
    const gate = chat.world.gate()
    const first = await chat.say(`${gate.line}\nsay first`)
    const second = await chat.say('say second')
    const third = await chat.say('say third')
    assert.equal([second.outcome, third.session_id], ['prompted', first.session_id])
    await gate.open()
    const texts = await chat.reads(({ length }) => length === 3)
    assert.equal(texts, ['first', 'second', 'third'])
  } finally {
    await chat.close()
  }
})

test('answers keep the order of their questions when many turns end at once', async () => {
  const chat = await openChat()
  try {
    const gate = chat.world.gate()
    const words = Array.from({ length: 9 }, (_, n) => `answer ${n}`)
    await chat.say(`${gate.line}\nsay ${words[0]}`)
    for (const word of words.slice(1)) await chat.say(`say ${word}`)
    await gate.open()
    assert.equal(await chat.reads(({ length }) => length === words.length), words)
  } finally {
    await chat.close()
  }
})

test('an event of another bridge, in a bad form or during a pause is refused and not stored', async () => {
  const chat = await openChat()
  try {
    const say = (event: object) => chat.say('say x', event).then(() => 'taken', code)
    assert.is(await say({ bridge_instance_id: 'b2' }), 'bridge_not_found')
    assert.is(await say({ idempotency_key: '' }), 'bridge_event_invalid')
    assert.is(await say({ sender: { id: 'x'.repeat(600), authenticated: true } }), 'bridge_event_invalid')
    assert.is(
      await say({ attachments: Array.from({ length: 11 }, () => ({ name: 'a', mime_type: 'text/plain', data: '' })) }),
      'bridge_event_invalid',
    )
    await chat.world.kernel.request('POST', '/api/drain', {})
    const event = { idempotency_key: 'drained' }
    assert.is(await say(event), 'bridge_not_accepting')
    await chat.world.kernel.request('POST', '/api/undrain', {})
    assert.is((await chat.say('say now', event)).outcome, 'prompted', 'it was not marked as seen')
    await chat.reads(texts => texts[0] === 'now')
  } finally {
    await chat.close()
  }
})

test('an event that is no prompt starts no turn, with a reason', async () => {
  const chat = await openChat({
    spec: { dm_policy: 'allowlist', provider_config: { dm: { allow_user_ids: ['ada'] } } },
  })
  try {
    const reasons: Record<string, unknown> = {}
    const say = async (name: string, text: string, event: object) => {
      const { outcome, reason } = await chat.say(text, event)
      reasons[name] = `${outcome} ${reason}`
    }
    await say('stranger', 'say x', { sender: { id: 'eve', authenticated: true }, peer_id: 'eve' })
    await say('edit', 'say x', { family: 'edit' })
    await say('reaction', '', { family: 'reaction' })
    await say('machine', 'say x', { automatic: true })
    await say('empty', '  ', {})
    await say('group', 'say x', { group_id: 'G', addressed: false })
    await say('long', 'x'.repeat(1024 * 1024), {})
    assert.equal(reasons, {
      stranger: 'ignored sender_not_allowed',
      edit: 'ignored edit',
      reaction: 'ignored reaction',
      machine: 'ignored automatic',
      empty: 'ignored no_text',
      group: 'ignored not_addressed',
      long: 'answered text_too_long',
    })
    await chat.reads(texts => texts.length === 1 && /at most 64 KiB/.test(texts[0] ?? ''))
    const { session_id } = await chat.say('say fine')
    await chat.reads(texts => texts[1] === 'fine')
    const own = chat.platform.messages.at(-1)?.id ?? ''
    assert.is((await chat.say('say loop', { message_id: own })).reason, 'own_message')
    assert.is((await chat.events(session_id)).filter(({ type }) => type === 'user_message').length, 1)
    assert.equal(chat.platform.room({ peer_id: 'eve' }), [], 'a stranger is told nothing')
    const elsewhere = { message_id: own, peer_id: 'ada', thread_id: 't' }
    assert.is(
      (await chat.say('say there', elsewhere)).outcome,
      'prompted',
      'ids of some platforms are those of one room',
    )
    await chat.reads(texts => texts[0] === 'there', { peer_id: 'ada', thread_id: 't' })
  } finally {
    await chat.close()
  }
})

test('an event without room waits, also across a restart, and prompts once', async () => {
  const chat = await openChat({ world: { config: { limits: { max_concurrent_agents: 1 } } } })
  try {
    const gate = chat.world.gate()
    const busy = await chat.world.session('ada')
    await chat.world.kernel.request('POST', `${busy.at}/prompt`, { text: gate.line })
    await chat.world.until(busy.at, ({ type }) => type === 'user_message')
    const event = { idempotency_key: 'waits' }
    assert.is(await chat.say('say at last', event).then(() => 'taken', code), 'bridge_not_accepting')
    await chat.restart()
    await chat.reads(texts => texts.length > 0)
    assert.equal(chat.platform.room({ peer_id: 'ada' }), ['at last'])
    assert.is((await chat.say('say at last', event)).outcome, 'duplicate')
  } finally {
    await chat.close()
  }
})

test('a message with files lost by a restart waits for its repetition with them', async () => {
  const chat = await openChat({ world: { config: { limits: { max_concurrent_agents: 1 } } } })
  try {
    const gate = chat.world.gate()
    const busy = await chat.world.session('ada')
    await chat.world.kernel.request('POST', `${busy.at}/prompt`, { text: gate.line })
    await chat.world.until(busy.at, ({ type }) => type === 'user_message')
    const data = Buffer.from('buy milk').toString('base64')
    const event = {
      idempotency_key: 'has-files',
      attachments: [{ name: 'list.txt', mime_type: 'text/plain', data }],
    }
    assert.is(await chat.say('say read', event).then(() => 'taken', code), 'bridge_not_accepting')
    await chat.restart()
    const taken = await chat.say('say read', event)
    assert.is(taken.outcome, 'prompted')
    await chat.reads(texts => texts.length > 0)
    const [prompt] = (await chat.events(taken.session_id)).filter(({ type }) => type === 'user_message')
    assert.is(prompt?.content.attachments[0].name, 'list.txt')
    assert.not.match(prompt?.content.text, /lost in a restart/)
    assert.equal(chat.platform.room({ peer_id: 'ada' }), ['read'])
  } finally {
    await chat.close()
  }
})

test('a permanently stopped session is replaced; one stopped by a restart continues', async () => {
  const chat = await openChat()
  try {
    const first = await chat.say('say one')
    await chat.reads(texts => texts.length === 1)
    await chat.restart()
    const second = await chat.say('say two')
    assert.is(second.session_id, first.session_id)
    await chat.reads(texts => texts.length === 2)
    await chat.world.kernel.request(
      'POST',
      `/api/workspaces/${chat.world.workspaceId}/sessions/${first.session_id}/stop`,
      {},
    )
    await eventually(async () => (await chat.world.row(first.session_id ?? '')).state === 'stopped', 'the stop')
    const third = await chat.say('say three')
    assert.not.equal(third.session_id, first.session_id)
    assert.equal(await chat.reads(texts => texts.length === 3), ['one', 'two', 'three'])
  } finally {
    await chat.close()
  }
})

test('/cancel ends the turn, /new starts another session', async () => {
  const chat = await openChat()
  try {
    assert.is((await chat.say('/cancel')).reason, 'nothing_runs')
    await chat.reads(texts => /Nothing runs/.test(texts[0] ?? ''))
    const first = await chat.say('hang')
    await chat.untilPrompted(first.session_id)
    assert.is((await chat.say('/cancel')).reason, 'canceled')
    await chat.reads(texts => texts[1] === 'Canceled.')
    assert.is((await chat.say('bot: /new')).reason, 'renewed')
    await chat.reads(texts => /new session/.test(texts[2] ?? ''))
    const second = await chat.say('say fresh')
    assert.not.equal(second.session_id, first.session_id)
    await chat.reads(texts => texts[3] === 'fresh')
  } finally {
    await chat.close()
  }
})

test('a file of a message is attached to its prompt, and an unusable one is named', async () => {
  const chat = await openChat()
  try {
    const data = Buffer.from('buy milk').toString('base64')
    const attachments = [
      { name: 'list.txt', mime_type: 'text/plain', data },
      { name: 'x.exe', mime_type: 'application/x-msdownload', data },
    ]
    const { session_id } = await chat.say('say done', { attachments })
    await chat.reads(texts => texts.length === 1)
    const [prompt] = (await chat.events(session_id)).filter(({ type }) => type === 'user_message')
    assert.is(prompt?.content.attachments[0].name, 'list.txt')
    assert.match(prompt?.content.text, /a file was not accepted, "x\.exe"/)
  } finally {
    await chat.close()
  }
})

test('two bots that answer each other stop, with one notice in the chat', async () => {
  const chat = await openChat({ spec: { routing_policy: { include_group: true } } })
  try {
    const bot = { group_id: 'G', sender: { id: 'thankbot', authenticated: true, is_bot: true } }
    const replies: Awaited<ReturnType<typeof chat.say>>[] = []
    while (replies.length < 30 && replies.at(-1)?.reason !== 'pair_limit')
      replies.push(await chat.say('say thanks', bot))
    assert.ok(replies.length > 5 && replies.length <= 20, `${replies.length}`)
    for (let n = 0; n < 3; n++) assert.is((await chat.say('say thanks', bot)).outcome, 'ignored')
    const prompts = replies.filter(({ outcome }) => outcome === 'prompted').length
    const isAnswered = (text: string) => text === 'thanks'
    const isNotice = (text: string) => /Too many messages/.test(text)
    // A slow agent has a full queue of prompts until then.
    const texts = await chat.reads(all => all.some(isNotice) && all.filter(isAnswered).length === prompts, {
      group_id: 'G',
    })
    assert.is(texts.filter(isNotice).length, 1)
    const person = { group_id: 'G', sender: { id: 'ada', authenticated: true } }
    assert.is((await chat.say('say hello', person)).outcome, 'prompted', 'others are not held up')
  } finally {
    await chat.close()
  }
})

test.run()
