// timeout: 120s
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openScene, type Scene, until, type Wire } from './scene.js'

const FAIL = 'ext__clock__fail'

const at = suite<{ scene: Scene }>('asking tools')
at.before(async context => {
  context.scene = await openScene({ extension: true, config: { tools: { policy: { external_default: 'ask' } } } })
})
at.after(({ scene }) => scene.close())

/** A session with a turn that runs, and what a person sees and does there. */
async function working(scene: Scene, name: string) {
  const agent = await scene.agent(name)
  const begin = async () => {
    const { status } = await scene.operator('POST', `${agent.at}/prompt`, { text: 'say begun\nhang' })
    assert.ok(status < 300)
    await until(async () => (await events()).filter(({ content }) => content.text === 'begun\n').length, 'the turn')
  }
  const events = async (): Promise<Wire[]> => (await scene.operator('GET', `${agent.at}/events?limit=1000`)).body.events
  const questions = async () => (await events()).filter(({ type }) => type === 'permission')
  const inbox = async () => (await scene.operator('GET', '/api/inbox')).body.items
  const answer = (question: Wire, decision: string) =>
    scene.operator('POST', `${agent.at}/approve`, {
      request_id: question.content.request_id,
      turn_id: question.turn_id,
      decision,
    })
  await begin()
  return { ...agent, begin, events, questions, inbox, answer }
}

const questionsOf = async ({ questions }: { questions(): Promise<Wire[]> }, count = 1) =>
  until(async () => {
    const pending = (await questions()).filter(({ content }) => content.status === 'pending')
    return pending.length >= count ? pending.at(-1) : undefined
  }, 'the question')

at(
  'a call that waits is a question in the stream of its session and in the inbox, and is answered there',
  async ({ scene }) => {
    const ada = await working(scene, 'ada')
    const { body } = await ada.call(FAIL, { why: 'a\u202eb' })
    const id = body.error.details.approval_id
    const question = await questionsOf(ada)
    assert.is(question.content.request_id, id)
    assert.is(question.content.title, `${FAIL} (mutating) {"why":"a\u202eb"}`)
    const [item] = await ada.inbox()
    assert.equal(
      [item.interaction_id, item.session_id, item.kind, item.turn_id],
      [id, ada.id, 'call', question.turn_id],
    )
    assert.is((await ada.answer(question, 'allow-once')).body.status, 'allowed')
    await until(
      async () => (await ada.ask('GET', `/api/tools/approvals/${id}`)).body.execution_status === 'failed',
      'the call',
    )
    const [, resolved] = await ada.questions()
    assert.equal([resolved.content.decision, resolved.content.resolved_by], ['allow-once', 'person'])
    assert.equal(await ada.inbox(), [])
    assert.is((await ada.answer(question, 'allow-once')).status, 404, 'once is enough')
    assert.is((await ada.call(FAIL, { why: 'a\u202eb' })).status, 202, 'once means once')
    await scene.decide('reject')
    await until(
      async () => (await ada.questions()).at(-1).content.decision === 'reject-once',
      'the answer of the other command',
    )
    await scene.operator('POST', `${ada.at}/stop`)
  },
)

at('an agent asks the person of its session in words, and of no other session', async ({ scene }) => {
  const [ada, eve] = [await working(scene, 'ada'), await working(scene, 'eve')]
  const waiting = (id: string) =>
    until(async () => {
      const { body } = await scene.operator('GET', `${ada.at}/clarifications`)
      return body.clarifications.find((one: Wire) => one.request_id !== id)
    }, 'the question')
  const call = ada.call('service__clarify', { question: 'Which branch?', choices: ['main', 'next'] })
  const { request_id, agent_name, question, asked_at, deadline } = await waiting('')
  assert.equal([agent_name, question], ['ada', 'Which branch?'])
  assert.is(Date.parse(deadline) - Date.parse(asked_at), 300_000)
  const answered = await scene.operator('POST', `${ada.at}/clarifications/${request_id}/answer`, { choice_index: 1 })
  assert.is(answered.status, 200)
  const { status, body } = await call
  assert.is(status, 200, JSON.stringify(body))
  assert.match(JSON.stringify(body), /next/)
  const foreign = await ada.call('service__clarify', { question: 'Which branch?', session_id: eve.id })
  assert.is(foreign.status, 403, JSON.stringify(foreign.body))
  assert.is((await ada.call('service__clarify', { question: 'How long?', timeout_seconds: 3600 })).status, 400)
  for (const one of [ada, eve]) await scene.operator('POST', `${one.at}/stop`)
})

at('a question waits for its person for longer than a call of a tool may take', async () => {
  const config = { tools: { policy: { call_timeout: '200ms' } } }
  const scene = await openScene({ config })
  try {
    const ada = await working(scene, 'ada')
    const call = ada.call('service__clarify', { question: 'Which branch?' })
    const late = await until(async () => {
      const [one] = (await scene.operator('GET', `${ada.at}/clarifications`)).body.clarifications
      return one && Date.now() - Date.parse(one.asked_at) > 400 ? one : undefined
    }, 'a question that is older than the bound of a call')
    const answer = { text: 'main' }
    const answered = await scene.operator('POST', `${ada.at}/clarifications/${late.request_id}/answer`, answer)
    assert.is(answered.status, 200, JSON.stringify(answered.body))
    const { status, body } = await call
    assert.is(status, 200, JSON.stringify(body))
    assert.match(JSON.stringify(body), /main/)
  } finally {
    await scene.close()
  }
})

at(
  'an answer for the session counts for the same input of the same tool until the session stops',
  async ({ scene }) => {
    const bob = await working(scene, 'bob')
    await bob.call(FAIL, { n: 1 })
    assert.is((await bob.answer(await questionsOf(bob), 'allow-always')).body.status, 'allowed')
    assert.is((await bob.call(FAIL, { n: 1 })).body.error.code, 'tool_backend_failed', 'it runs')
    assert.is((await bob.call(FAIL, { n: 2 })).status, 202, 'another input')
    assert.is((await bob.answer(await questionsOf(bob, 2), 'reject-always')).body.status, 'rejected')
    const refused = await bob.call(FAIL, { n: 2 })
    assert.equal([refused.status, refused.body.error.reason_codes], [403, ['policy_denied']])
    const { grants } = (
      await scene.operator('GET', `/api/tool-approval-grants?workspace_id=${scene.world.workspaceId}`)
    ).body
    assert.equal(grants, [], 'nothing is kept beyond it')
    await scene.operator('POST', `${bob.at}/stop`)
    const other = await working(scene, 'bob')
    assert.is((await other.call(FAIL, { n: 1 })).status, 202)
    await scene.decide('reject')
    await scene.operator('POST', `${other.at}/stop`)
  },
)

at(
  'a question whose turn is over waits in the inbox alone, and the next turn that asks shows it again',
  async ({ scene }) => {
    const eve = await working(scene, 'eve')
    await eve.call(FAIL)
    const question = await questionsOf(eve)
    await scene.operator('POST', `${eve.at}/prompt/cancel`)
    await until(async () => (await eve.questions()).at(-1).content.decision === 'cancelled', 'its end')
    const [item] = await eve.inbox()
    const { request_id: id } = question.content
    assert.equal([item.interaction_id, item.turn_id, item.answer], [id, '', `svc tool approve ${id}`])
    await eve.begin()
    await eve.call(FAIL)
    const again = await questionsOf(eve, 2)
    assert.is(again.content.request_id, question.content.request_id)
    assert.is.not(again.turn_id, question.turn_id)
    assert.is((await eve.inbox()).length, 1)
    assert.is((await eve.answer(again, 'reject-once')).body.status, 'rejected')
    await scene.operator('POST', `${eve.at}/stop`)
  },
)

at('an agent answers no question of its own', async ({ scene }) => {
  const mal = await working(scene, 'mal')
  await mal.call(FAIL)
  const { content, turn_id } = await questionsOf(mal)
  const body = { request_id: content.request_id, turn_id, decision: 'allow-once' }
  const reply = await mal.ask('POST', `${mal.at}/approve`, body)
  assert.ok(reply.status === 403 || reply.status === 404, String(reply.status))
  assert.is((await mal.ask('GET', `/api/tools/approvals/${content.request_id}`)).body.approval_status, 'pending')
  await scene.operator('POST', `${mal.at}/stop`)
  assert.is(
    (await scene.operator('GET', `/api/tools/approvals/${content.request_id}`)).body.approval_status,
    'canceled',
  )
})

at.run()
