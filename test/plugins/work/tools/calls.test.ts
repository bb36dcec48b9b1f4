// timeout: 120s
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Caller, openScene, type Scene, until, type Wire } from './scene.js'

const test = suite<{ scene: Scene; ada: Caller }>('tool calls')

test.before(async context => {
  context.scene = await openScene({ extension: true, config: { tools: { policy: { external_default: 'enabled' } } } })
  context.ada = await context.scene.agent('ada')
})
test.after(({ scene }) => scene.close())

test('an agent finds a tool by words, reads its input and calls it', async ({ ada, scene }) => {
  const found = await ada.ask('POST', `${ada.at}/tools/search`, { query: 'what time zone' })
  assert.is(found.status, 200, JSON.stringify(found.body))
  assert.is(found.body.tools[0].descriptor.tool_id, 'ext__clock__now')
  assert.equal(found.body.tools[0].descriptor.input_schema.required, ['zone'])
  const { status, body } = await ada.call('ext__clock__now', { zone: 'UTC' })
  assert.equal([status, body.status, body.truncated], [200, 'completed', false], JSON.stringify(body))
  assert.equal(body.result.structured, { zone: 'UTC', time: '12:00' })
  assert.equal(
    body.events.map(({ kind }: Wire) => kind),
    ['tool.call_started', 'tool.call_completed'],
  )
  const inside = await ada.call('service__tool_call', { id: 'ext__clock__now', input: { zone: 'UTC' } })
  assert.equal(inside.body.result?.structured.result.structured, { zone: 'UTC', time: '12:00' }, JSON.stringify(inside))
  assert.is((await scene.operator('POST', '/api/tools/ext__clock__now/invoke', { input: { zone: 'UTC' } })).status, 200)
})

test('an input refused by the schema never reaches the tool', async ({ ada }) => {
  for (const [input, says] of [
    [{}, 'zone: required'],
    [{ zone: 7 }, 'zone: string wanted'],
    [{ zone: 'UTC', colour: 'red' }, 'colour: no such member'],
    [{ zone: 'x'.repeat(41) }, 'zone: at most 40 long'],
    ['UTC', 'input: expected an object'],
  ] as const) {
    const { status, body } = await ada.call('ext__clock__now', input)
    assert.equal([status, body.error.code, body.error.message], [400, 'tool_invalid_input', says])
    assert.equal(body.error.reason_codes, ['schema_invalid'])
  }
})

test('a changing tool waits for a user, who allows it once', async ({ ada, scene }) => {
  const reply = await ada.call('ext__clock__fail')
  assert.equal([reply.status, reply.body.error.code], [202, 'tool_approval_required'])
  const id = reply.body.error.details.approval_id
  const again = await ada.call('ext__clock__fail')
  assert.is(again.body.error.details.approval_id, id, 'who asks again asks for the same')
  const decided = await scene.decide('allow')
  assert.equal([decided.status, decided.body.approval_status], [200, 'approved'])
  const done = await until(async () => {
    const { body } = await ada.ask('GET', `/api/tools/approvals/${id}`)
    return body.execution_status !== 'running' && body
  }, 'the end of the call')
  assert.equal([done.execution_status, done.error.code], ['failed', 'tool_backend_failed'])
  assert.match(done.error.message, /the clock stands still/)
  const next = await ada.call('ext__clock__fail')
  assert.is(next.status, 202, 'an answer counts for one call')
  const late = await scene.operator('POST', `/api/tool-approvals/${id}/decide`, { decision: 'allow' })
  assert.equal([late.status, late.body.code], [409, 'approval_over'])
  assert.is((await scene.decide('reject')).body.approval_status, 'rejected')
})

test('an agent that asks endlessly, or asks and withdraws, does not block questions of others', async ({
  ada,
  scene,
}) => {
  const ask = (n: number) => ada.call('ext__clock__fail', { n })
  const open = await Promise.all(Array.from({ length: 50 }, (_, n) => ask(n)))
  assert.equal([...new Set(open.map(({ status }) => status))], [202])
  const refused = await ask(50)
  assert.equal(
    [refused.body.error.code, refused.body.error.reason_codes],
    ['tool_unavailable', ['approval_unreachable']],
  )
  const withdraw = ({ body }: Wire) => ada.ask('POST', `/api/tools/approvals/${body.error.details.approval_id}/cancel`)
  for (const one of open) await withdraw(one)
  // More than are kept, none of which waits.
  for (let n = 0; n < 1000; n += 25) {
    const replies = await Promise.all(Array.from({ length: 25 }, (_, i) => ask(n + i)))
    assert.equal([...new Set(replies.map(({ status }) => status))], [202], `from ${n}`)
    await Promise.all(replies.map(withdraw))
  }
  const eve = await scene.agent('evelyn')
  assert.is((await eve.call('ext__clock__fail')).status, 202)
  assert.is((await scene.decide('reject')).body.approval_status, 'rejected')
})

test('an agent neither decides, nor creates a token, nor stores decisions, whatever it requests', async ({
  ada,
  scene,
}) => {
  const reply = await ada.call('ext__clock__fail')
  const id = reply.body.error.details.approval_id
  const refused = [
    await ada.ask('POST', `/api/tool-approvals/${id}/decide`, { decision: 'allow' }),
    await ada.ask('POST', '/api/tools/ext__clock__fail/approvals', { session_id: ada.id, input: {} }),
    await ada.ask('PUT', `/api/tool-approval-grants?workspace_id=${scene.world.workspaceId}`, {
      decision: 'allow',
      scope: 'tool',
      tool_id: 'ext__clock__fail',
    }),
  ]
  assert.equal(
    refused.map(({ status }) => status),
    [403, 403, 403],
  )
  const other = await scene.agent('eve')
  const foreign = await other.ask('GET', `/api/tools/approvals/${id}`)
  assert.equal([foreign.status, foreign.body.error], [404, 'approval_not_found'])
  const posing = await other.call('ext__clock__now', { zone: 'UTC' }, { session_id: ada.id })
  assert.equal([posing.status, posing.body.error.reason_codes], [403, ['session_denied']])
  assert.is((await ada.ask('POST', `/api/tools/approvals/${id}/cancel`)).body.approval_status, 'canceled')
})

test('a token is valid for one call of one session with one input', async ({ ada, scene }) => {
  const mint = async (input: unknown, session = ada.id) =>
    (await scene.operator('POST', '/api/tools/ext__clock__fail/approvals', { session_id: session, input })).body
      .approval
  const reasons = ({ body }: Wire) => body.error.reason_codes ?? [body.error.code]
  const call = (token: string, input: unknown = {}) => ada.call('ext__clock__fail', input, { approval_token: token })
  const { approval_token: token } = await mint({ a: 1 })
  assert.equal(reasons(await call(token, { a: 2 })), ['approval_token_mismatch'], 'another input')
  assert.equal(reasons(await call(token, { a: 1 })), ['tool_backend_failed'], 'it was called')
  assert.equal(reasons(await call(token, { a: 1 })), ['approval_token_replayed'])
  assert.equal(reasons(await call('svc_tool_0000', {})), ['approval_token_mismatch'])
  const eve = await scene.agent('eva')
  const { approval_token: foreign } = await mint({ a: 1 }, eve.id)
  assert.equal(reasons(await call(foreign, { a: 1 })), ['approval_token_mismatch'], 'of another session')
  const unknown = await scene.operator('POST', '/api/tools/ext__clock__fail/approvals', { session_id: ada.id })
  assert.equal([unknown.status, unknown.body.error.code], [400, 'tool_invalid_input'])
})

test('a decision is remembered for an agent or a tool until it is deleted', async ({ ada, scene }) => {
  const url = `/api/tool-approval-grants?workspace_id=${scene.world.workspaceId}`
  const put = (decision: string, more = {}) =>
    scene.operator('PUT', url, { decision, scope: 'tool', tool_id: 'ext__clock__fail', ...more })
  const allowed = await put('allow', { scope: 'agent', agent_name: 'ada' })
  assert.is(allowed.status, 200, JSON.stringify(allowed.body))
  assert.equal((await ada.call('ext__clock__fail')).body.error.code, 'tool_backend_failed', 'called without a question')
  await put('reject')
  const refused = await ada.call('ext__clock__fail')
  assert.equal([refused.status, refused.body.error.reason_codes], [403, ['policy_denied']], 'a reject goes before')
  const { grants, total } = (await scene.operator('GET', url)).body
  assert.is(total, 2)
  for (const { id } of grants)
    assert.is(
      (await scene.operator('DELETE', `/api/tool-approval-grants/${id}?workspace_id=${scene.world.workspaceId}`))
        .status,
      204,
    )
  assert.is((await ada.call('ext__clock__fail')).status, 202)
  await scene.decide('reject')
  const none = await scene.operator('DELETE', `/api/tool-approval-grants/tgr_0?workspace_id=${scene.world.workspaceId}`)
  assert.is(none.status, 404)
})

test('a large result is an artifact read in pages, and an oversized one is refused', async ({ ada, scene }) => {
  const bytes = 6 * 1024 * 1024
  const { status, body } = await ada.call('ext__clock__large', { bytes })
  assert.equal([status, body.truncated], [200, true], JSON.stringify(body).slice(0, 500))
  assert.ok(JSON.stringify(body).length < 8192)
  const { uri } = body.result.artifacts[0]
  let [read, offset, eof] = [0, 0, false]
  while (!eof) {
    const page = (await scene.operator('GET', `${uri}?offset=${offset}&limit=1048576`)).body
    read += Buffer.from(page.data_base64, 'base64').length
    ;({ next_offset: offset, eof } = page)
  }
  assert.is(read, bytes)
  const byTool = await ada.call('service__tool_artifact_read', { artifact_id: uri.split('/').at(-1), limit: 10 })
  assert.is(byTool.body.result?.structured.bytes, 10, JSON.stringify(byTool.body))
  const other = await scene.operator('GET', uri.replace(scene.world.workspaceId, 'ws_0000000000000000'))
  assert.equal([other.status, other.body.error.reason_codes], [404, ['tool_artifact_not_found']])
  const huge = await ada.call('ext__clock__large', { bytes: 10 * 1024 * 1024 })
  assert.is(huge.body.error.code, 'tool_backend_failed', 'longer than any message of a process')
})

test.run()
