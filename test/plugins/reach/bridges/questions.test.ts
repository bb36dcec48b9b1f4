import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openChat } from './chat.js'

const options = [
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
  { optionId: 'no', name: 'No', kind: 'reject_once' },
]
const ask = `ask ${JSON.stringify({ toolCall: { toolCallId: 'c1', title: 'edit notes.txt', kind: 'edit' }, options })}`
const approvers = { provider_config: { approvers: { user_ids: ['op'] } }, routing_policy: { include_group: true } }
const room = { group_id: 'G' }
const op = { ...room, sender: { id: 'op', authenticated: true } }
const codeIn = (texts: readonly string[]) => /allow ([A-Z0-9]{5})/.exec(texts.join('\n'))?.[1] ?? ''

test('a permission question is answered in the chat once by a user named by the operator', async () => {
  const chat = await openChat({ permissions: 'approve-reads', spec: approvers })
  try {
    await chat.say(ask, room)
    const messages = await chat.reads(texts => codeIn(texts) !== '', room)
    const code = codeIn(messages)
    assert.match(messages.join('\n'), /permission \(edit\): edit notes\.txt/)
    assert.is((await chat.say(`allow ${code}`, room)).reason, 'not_an_approver')
    assert.is(
      (await chat.say(`allow ${code}`, { ...op, sender: { id: 'op', authenticated: false } })).reason,
      'not_an_approver',
    )
    assert.is((await chat.say(`allow ${code.toLowerCase()}`, { ...op, addressed: false })).reason, 'question_answered')
    await chat.reads(all => all.includes('answer: yes') && all.includes('Allowed.'), room)
    assert.is((await chat.say(`deny ${code}`, op)).reason, 'question_unknown', 'a code is used once')
  } finally {
    await chat.close()
  }
})

test('a question is denied by a button', async () => {
  const chat = await openChat({ permissions: 'approve-reads', spec: approvers })
  try {
    await chat.say(ask, room)
    const code = codeIn(await chat.reads(texts => codeIn(texts) !== '', room))
    assert.is((await chat.say('', { ...op, family: 'action', action_id: `deny:${code}` })).outcome, 'answered')
    await chat.reads(all => all.some(text => text === 'answer: no'), room)
  } finally {
    await chat.close()
  }
})

test('a question that cannot be answered in the chat names the command that answers it', async () => {
  const chat = await openChat({ permissions: 'approve-reads' })
  try {
    const { session_id } = await chat.say(ask)
    const [text] = await chat.reads(texts => texts.length === 1)
    assert.match(text ?? '', new RegExp(`svc session approve ${session_id}`))
    await chat.say('/cancel')
    await chat.reads(texts => texts.at(-1) === 'Canceled.')
  } finally {
    await chat.close()
  }
})

test('a text question is answered in the chat', async () => {
  const chat = await openChat({ spec: approvers })
  try {
    const requestedSchema = {
      type: 'object',
      properties: { place: { type: 'string', enum: ['here', 'there'] } },
      required: ['place'],
    }
    await chat.say(
      `call elicitation/create ${JSON.stringify({ mode: 'form', message: 'Where?', requestedSchema })}`,
      room,
    )
    const messages = await chat.reads(texts => texts.some(text => /reply [A-Z0-9]{5}/.test(text)), room)
    const code = /reply ([A-Z0-9]{5})/.exec(messages.join('\n'))?.[1]
    assert.match(messages.join('\n'), /Where\?[\s\S]*1\. here\n2\. there/)
    assert.is((await chat.say(`reply ${code} 2`, op)).reason, 'question_answered')
    await chat.reads(all => all.some(text => text.includes('"there"')), room)
  } finally {
    await chat.close()
  }
})

test.run()
