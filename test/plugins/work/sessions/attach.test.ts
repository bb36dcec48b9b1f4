import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import { readStream } from '../../../fixtures/stream-reader.js'

let world: World

test.before(async () => {
  world = await openWorld({ listen: ['socket'] })
  await world.agent('plain')
  await world.agent('reads', { permissions: 'approve-reads' })
})
test.after(() => world.close())

const request: World['kernel']['request'] = (method, url, body) => world.kernel.request(method, url, body)
const refusal = async (method: string, url: string, body?: unknown) => {
  const reply = await request(method, url, body)
  return [reply.status, reply.body.code]
}
const summary = async () => (await request('GET', '/api/sessions/attention-summary')).body

test('a session has one holder at a time: it may continue, and another is refused until the expiry', async () => {
  const { id, at } = await world.session('plain')
  const held = await request('POST', `${at}/attach`, { attached_to: 'desk', ttl_seconds: 60 })
  assert.is(held.status, 200)
  const { attach, session } = held.body
  assert.equal([attach.attached_to, attach.session_id, session.attached_to], ['desk', id, 'desk'])
  assert.is(session.attach_expires_at, attach.attach_expires_at)
  assert.is(Date.parse(attach.attach_expires_at) - Date.parse(attach.attached_at), 60_000)
  const other = await request('POST', `${at}/attach`, { attached_to: 'phone' })
  assert.equal([other.status, other.body.code], [409, 'session_attached'])
  assert.match(other.body.error, /"desk"/)
  const longer = await request('POST', `${at}/attach`, { attached_to: 'desk' })
  const { attach_expires_at, attached_at } = longer.body.attach
  assert.is(Date.parse(attach_expires_at) - Date.parse(attached_at), 900_000, 'without a time: a quarter of an hour')
  assert.is((await request('POST', `${at}/attach`, { attached_to: 'desk', ttl_seconds: 1 })).status, 200)
  await eventually(
    async () => (await request('POST', `${at}/attach`, { attached_to: 'phone' })).status === 200,
    'the end',
  )
})

test('invalid attachments are refused', async () => {
  const { at } = await world.session('plain')
  assert.equal(await refusal('POST', `${at}/attach`, { ttl_seconds: 86_401 }), [400, 'attach_invalid'])
  assert.equal(await refusal('POST', `${at}/attach`, { attached_to: 'x'.repeat(201) }), [400, 'attach_invalid'])
  assert.is((await request('POST', `${at}/attach`, { ttl_seconds: 'long' })).status, 400)
  assert.is((await request('POST', `${at}/attach`, { ttl_seconds: -5 })).status, 200, 'as without')
  assert.is((await request('POST', `${at}/attach`)).status, 200, 'the same caller, without a body')
  assert.is((await request('POST', `${at.replace(/ses_.*/, 'ses_0000000000000000')}/attach`, {})).status, 404)
  await request('POST', `${at}/stop`)
  assert.equal(await refusal('POST', `${at}/attach`, {}), [409, 'session_not_attachable'])
})

test('a session with an unseen finished turn is counted until viewed', async () => {
  const { id, at } = await world.session('plain')
  const before = await summary()
  await world.prompt(at, 'say done')
  await eventually(async () => (await summary()).finished === before.finished + 1, 'the count')
  const of = (await summary()).by_workspace.find(
    (one: { workspace_id: string }) => one.workspace_id === world.workspaceId,
  )
  assert.is(of.finished, before.finished + 1)
  const seen = await request('POST', `${at}/presence`, { visible: true })
  assert.is(seen.status, 200)
  assert.is((await summary()).finished, before.finished)
  const { lease_id } = seen.body
  assert.is((await request('POST', `${at}/presence`, { visible: true, lease_id })).body.lease_id, lease_id)
  await world.prompt(at, 'say watched')
  assert.is((await summary()).finished, before.finished, 'somebody was there')
  assert.is((await request('POST', `${at}/presence`, { visible: false, lease_id })).status, 204)
  assert.equal(await refusal('POST', `${at}/presence`, { visible: true, lease_id }), [409, 'presence_lost'])
  assert.is((await request('POST', `${at}/presence`, { lease_id })).status, 400)
  await world.prompt(at, 'say alone')
  await eventually(async () => (await summary()).finished === before.finished + 1, 'the count again')
  const detail = (await request('PATCH', at, { name: id })).body.session
  assert.ok(detail.attention_changed_at)
  await request('POST', `${at}/presence`, { visible: true })
})

test('a session with a question needs attention', async () => {
  const { at } = await world.session('reads')
  const { needs_you } = await summary()
  const options = [{ optionId: 'a', name: 'a', kind: 'allow_once' }]
  const toolCall = { toolCallId: 'p', title: 'edit', kind: 'edit' }
  await request('POST', `${at}/prompt`, { text: `ask ${JSON.stringify({ toolCall, options })}` })
  await eventually(async () => (await summary()).needs_you === needs_you + 1, 'the count')
  await request('POST', `${at}/prompt/cancel`)
  await eventually(async () => (await summary()).needs_you === needs_you, 'the count again')
  assert.is((await summary()).needs_you, needs_you)
})

test('archived stopped sessions are omitted from lists, and no prompt starts them', async () => {
  const { id, at } = await world.session('plain')
  assert.equal(await refusal('POST', `${at}/archive`), [409, 'session_not_stopped'])
  await request('POST', `${at}/stop`)
  const archived = await request('POST', `${at}/archive`)
  assert.is(archived.status, 200)
  const when = archived.body.session.archived_at
  assert.ok(when)
  assert.is((await request('POST', `${at}/archive`)).body.session.archived_at, when, 'once is enough')
  const ids = async (query: string) =>
    (await request('GET', `/api/sessions?limit=200${query}`)).body.sessions.map((session: { id: string }) => session.id)
  assert.not((await ids('')).includes(id))
  assert.equal(await ids('&archived=true'), [id])
  await world.session('plain')
  for (const query of ['', '&archived=true', '&state=stopped', `&workspace=${at.split('/')[3]}`, '&q=plain']) {
    const found = await ids(query)
    const totals = [1, 200].map(async limit => {
      const { total, has_more } = (await request('GET', `/api/sessions?limit=${limit}${query}`)).body.page
      return [total, has_more]
    })
    const shown = found.length
    assert.equal(
      await Promise.all(totals),
      [
        [shown, shown > 1],
        [shown, false],
      ],
      query,
    )
  }
  assert.equal(await refusal('POST', `${at}/prompt`, { text: 'say x' }), [409, 'session_archived'])
  assert.equal(await refusal('POST', `${at}/prompt`, {}), [409, 'session_archived'])
  assert.is((await request('GET', `${at}/events`)).status, 200, 'it can be read')
  assert.is((await request('POST', `${at}/unarchive`)).body.session.archived_at, null)
  assert.is((await request('POST', `${at}/unarchive`)).status, 200)
  assert.ok((await ids('')).includes(id))
})

test('a follower of the list gets each change, and resumes at its position', async () => {
  const stream = await readStream(world.home, '/api/sessions/catalog-stream')
  const { id } = await world.session('plain')
  const made = await stream.next(frame => frame.data.session_id === id)
  assert.equal([made.event, made.data.kind, made.data.workspace_id], ['created', 'created', world.workspaceId])
  await request('PATCH', `/api/workspaces/${world.workspaceId}/sessions/${id}`, { name: 'other' })
  await stream.next(frame => frame.data.session_id === id && frame.event === 'updated')
  stream.close()
  await request('DELETE', `/api/workspaces/${world.workspaceId}/sessions/${id}`)
  const again = await readStream(world.home, '/api/sessions/catalog-stream', made.id)
  assert.is((await again.next(frame => frame.data.session_id === id)).event, 'updated', 'what was missed comes first')
  await again.next(frame => frame.data.session_id === id && frame.event === 'removed')
  again.close()
  const lost = await readStream(world.home, '/api/sessions/catalog-stream', 'other-7')
  assert.is((await lost.next(() => true)).event, 'reset')
  lost.close()
})

test.run()
