import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

let world: World

test.before(async () => {
  world = await openWorld({ env: { ...process.env, ACME_TOKEN: 'withheld' } })
  await world.agent('plain')
  await world.agent('moded', {
    flags: '--modes=default,plan,acceptEdits,bypassPermissions',
    permissions: 'approve-reads',
  })
  await world.agent('late', { flags: '--late-login --login-file=/nowhere/at/all' })
})
test.after(() => world.close())

const update = (fields: object) => `update ${JSON.stringify(fields)}`
const chunk = (text: string, more: object = {}) =>
  update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, ...more })
/** The name of a session, once its first turn has given it one. */
const name = (id: string) => eventually<string>(async () => (await world.row(id)).name, 'a name')
const warnings = (events: readonly Reply[]) =>
  events.filter(({ type }) => type === 'runtime_warning').map(({ content }) => content.warning)

test('a session title made from the start-up instructions is ignored', async () => {
  const { id, at } = await world.session('plain')
  const title = `You are the agent plain, in session ${id}, workspace w at /tmp/rea`
  await world.prompt(at, `${update({ sessionUpdate: 'session_info_update', title })}\nsay hello`)
  assert.match(await name(id), /^update /)
  const other = await world.session('plain')
  await world.prompt(other.at, `${update({ sessionUpdate: 'session_info_update', title: 'Greeting' })}\nsay hello`)
  assert.is(await name(other.id), 'Greeting')
})

test('an update for another session is not shown', async () => {
  const { at } = await world.session('plain')
  const foreign = {
    jsonrpc: '2.0',
    method: 'session/update',
    params: {
      sessionId: 'of-somebody-else',
      update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'foreign' } },
    },
  }
  const events = await world.prompt(at, `say before\nline ${JSON.stringify(foreign)}\nsay after`)
  assert.is(agentText(events), 'before\nafter\n')
})

test('two consecutive messages stay separate', async () => {
  const { at } = await world.session('plain')
  const parts = [
    chunk('It has ', { messageId: 'a' }),
    chunk('issues.', { messageId: 'a' }),
    chunk('Fixed.', { messageId: 'b' }),
  ]
  assert.is(agentText(await world.prompt(at, parts.join('\n'))), 'It has issues.\n\nFixed.')
})

test('a notice of the agent program is a warning and no answer', async () => {
  const { at } = await world.session('plain')
  const notice = 'Model metadata for `acme-1` not found. Defaulting to fallback metadata; this can cause issues.'
  const events = await world.prompt(at, chunk(notice))
  assert.equal(warnings(events), ['agent_notice', 'empty_turn'])
  assert.is(agentText(events), '')
  const answered = await world.prompt(at, `${chunk(notice)}\n${chunk('Fixed.')}`)
  assert.is(agentText(answered), 'Fixed.')
  assert.equal(warnings(answered), ['agent_notice'])
})

test('a turn with only blank text, thoughts or a plan is reported to have no answer', async () => {
  const { at } = await world.session('plain')
  const plan = update({ sessionUpdate: 'plan', entries: [{ content: 'a', status: 'pending', priority: 'low' }] })
  for (const text of [chunk('  \n'), 'think hm', plan]) {
    assert.equal(warnings(await world.prompt(at, text)), ['empty_turn'], text)
  }
  assert.equal(warnings(await world.prompt(at, `think hm\nsay done`)), [])
})

test('fewer tokens of a small context are no compaction', async () => {
  const { at } = await world.session('plain')
  const used = (tokens: number) => update({ sessionUpdate: 'usage_update', used: tokens, size: 200_000 })
  const kinds = async (...tokens: number[]) =>
    (await world.prompt(at, `${tokens.map(used).join('\n')}\nsay x`)).map(({ type }) => type)
  assert.not((await kinds(15, 5)).includes('session.compaction_fired'))
  assert.ok((await kinds(90_000, 5000)).includes('session.compaction_fired'))
})

test('a login failure of a prompt names the secrets withheld from the agent', async () => {
  const { at } = await world.session('late')
  await world.kernel.request('POST', `${at}/prompt`, { text: 'say hello' })
  const { content } = await world.until(at, event => event.type === 'error')
  assert.match(content.error, /ACME_TOKEN/)
  assert.match(content.error, /env_allow/)
})

test('an agent mode is set where it keeps the promises of the session', async () => {
  const { id, at } = await world.session('moded')
  const set = (agent_mode: string) => world.kernel.request('PATCH', at, { name: 'moded', agent_mode })
  assert.is((await set('plan')).body.code, 'agent_mode_invalid', 'it has no process yet')
  const several = { name: 'other', permissions: 'deny-all', agent_mode: 'plan' }
  assert.is((await world.kernel.request('PATCH', at, several)).status, 409)
  const { name = '', permissions } = await world.row(id)
  assert.equal([name, permissions], ['', 'approve-reads'], 'a request that is refused changes nothing')
  await world.prompt(at, 'say begun')
  assert.is((await set('plan')).status, 200)
  assert.match(agentText(await world.prompt(at, 'mode')), /mode plan/)
  assert.is((await set('acceptEdits')).status, 200)
  const unknown = await set('other')
  assert.equal([unknown.status, unknown.body.code], [409, 'agent_mode_invalid'])
  assert.match(JSON.stringify(unknown.body), /only:.*default.*plan/, JSON.stringify(unknown.body))
  assert.match(
    (await set('bypassPermissions')).body.error,
    /does not ask, but the session has permissions approve-reads/,
  )
  assert.is((await world.row(id)).permissions, 'approve-reads')
})

test('a session is taken over on request, and the former holder is informed', async () => {
  const { id, at } = await world.session('plain')
  const attach = (attached_to: string, more: object = {}) =>
    world.kernel.request('POST', `${at}/attach`, { attached_to, ...more })
  assert.is((await attach('desk')).status, 200)
  const refused = await attach('phone')
  assert.is(refused.status, 409)
  assert.match(JSON.stringify(refused.body), `svc session attach ${id} --take-over`)
  const taken = await attach('phone', { take_over: true })
  assert.is(taken.body.attach.attached_to, 'phone')
  assert.equal([(await attach('desk')).status, (await attach('desk')).body.code], [409, 'session_attached'])
})

test('a command of several words is shown quoted as typed', async () => {
  const { at } = await world.session('moded')
  const toolCall = {
    toolCallId: 'c',
    kind: 'execute',
    title: 'seq',
    rawInput: { command: ['/bin/bash', '-lc', 'seq 1 300'] },
  }
  const options = [{ optionId: 'n', name: 'n', kind: 'reject_once' }]
  await world.kernel.request('POST', `${at}/prompt`, { text: `ask ${JSON.stringify({ toolCall, options })}` })
  const { content } = await world.until(at, event => event.type === 'permission')
  assert.is(content.command, "/bin/bash -lc 'seq 1 300'")
  await world.kernel.request('POST', `${at}/prompt/cancel`)
})

test('an initial effort of the agent that the model lacks is no conflict', async () => {
  await world.agent('odd', { flags: '--options --effort=odd' })
  const { at } = await world.session('odd', { model: 'large' })
  assert.equal(warnings(await world.prompt(at, 'say x')), [])
  const other = await world.session('odd', { model: 'large', reasoning_effort: 'xhigh' })
  assert.equal(warnings(await world.prompt(other.at, 'say x')), ['runtime_not_taken'])
})

test.run()
