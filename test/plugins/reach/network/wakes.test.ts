import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type MessageRow, messages } from '../../../../plugins/reach/network/tables.js'
import { Admission, type SkipReason } from '../../../../plugins/reach/network/wakes/admission.js'
import { Sweep } from '../../../../plugins/reach/network/wakes/retention.js'
import { eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene } from './scene.js'

test('a message to a peer wakes it with one prompt, charged once', async () => {
  const scene = await openScene()
  const { peer, say, prompts, inbox, settled, usage, disposition, request } = scene
  try {
    const message = await say('ada', 'say yes', { to: 'bob' })
    const [wake] = await settled('bob', 1)
    assert.equal(
      [wake?.state, wake?.usage_state, wake?.depth, wake?.root_id, wake?.channel],
      ['settled', 'usage_unavailable', 1, message.id, 'team'],
    )
    // An agent that tells no tokens keeps the share of its budget that was reserved.
    assert.equal([wake?.input_tokens, wake?.output_tokens], [25_000, 6_250])
    const texts = await prompts('bob')
    assert.is(texts.length, 1)
    assert.ok(texts[0]?.includes('say yes') && texts[0].includes(message.id) && texts[0].includes(peer('ada').peer_id))
    assert.equal(await disposition(message), { woken: 1 })
    assert.equal(await inbox('bob'), [])
    const { total, budget } = await usage(`?owner_kind=session&owner_id=${peer('bob').session_id}`)
    assert.equal([total.wake_count, total.unavailable_wake_count, total.reserved_wake_count], [1, 1, 0])
    assert.equal(
      [budget.wakes_used, budget.input_tokens_used, budget.participation_status.participating],
      [1, 25_000, true],
    )
    const { thread, session_costs: costs } = (await request('GET', `/channels/team/threads/${message.thread_id}`)).body
    assert.is(thread.coordination_cost.delivered_count, 1)
    assert.equal(
      costs.map((one: { session_id: string; delivered_count: number }) => [one.session_id, one.delivered_count]),
      [[peer('bob').session_id, 1]],
    )
    assert.ok(costs[0].prompt_size_bytes > 0 && costs[0].estimated_prompt_tokens > 0)
    const shown = (await request('GET', `/peers/${peer('bob').peer_id}`)).body.peer.metrics
    assert.equal([shown.delivered, shown.sent], [1, undefined])
  } finally {
    await scene.close()
  }
})

test('a message without a recipient wakes no peer and waits in every inbox', async () => {
  const { peer, say, disposition, inbox, wakesOf, close } = await openScene({ agents: ['ada', 'bob', 'eve'] })
  try {
    const message = await say('ada', 'say nothing')
    assert.equal(await disposition(message), { woken: 0, not_addressed: 2 })
    assert.equal(await inbox('bob'), [message.id])
    assert.equal(await inbox('ada'), [])
    const mentioned = await say('ada', 'say hello', { mentions: [peer('eve').peer_id] })
    assert.equal(await disposition(mentioned), { woken: 1, not_addressed: 1 })
    assert.equal(await wakesOf('bob'), [])
  } finally {
    await close()
  }
})

test('messages during a turn go into the next prompt, a repeated one once', async () => {
  const scene = await openScene()
  const { say, prompts, settled, disposition, gate, at, until, inbox } = scene
  try {
    const working = gate()
    await say('ada', working.line, { to: 'bob' })
    await until(at('bob'), ({ type }) => type === 'user_message')
    const first = await say('ada', 'say one', { to: 'bob', thread_id: 'thread_work' })
    const second = await say('ada', 'say two', { to: 'bob', thread_id: 'thread_work' })
    const again = await say('ada', 'say two', { to: 'bob', thread_id: 'thread_work' })
    assert.equal(await Promise.all([first, second, again].map(disposition)), [
      { woken: 1 },
      { woken: 0, coalesced: 1 },
      { woken: 0, duplicate: 1 },
    ])
    assert.equal(await inbox('bob'), [first.id, second.id, again.id])
    await working.open()
    await settled('bob', 2)
    const [, gathered = '', ...more] = await prompts('bob')
    assert.equal(more, [])
    assert.ok(gathered.indexOf('say one') < gathered.indexOf('say two') && gathered.includes('say one'))
    assert.is(gathered.split('say two').length, 2)
    assert.equal(await inbox('bob'), [])
  } finally {
    await scene.close()
  }
})

/** The kernel of a service with other members. */
const kernelWith = <K extends object>(kernel: K, more: Partial<Record<keyof K, unknown>>): K =>
  Object.create(
    kernel,
    Object.fromEntries(Object.entries(more).map(([name, value]) => [name, { value }])) as PropertyDescriptorMap,
  )

test('no session is woken by a disabled network, or when it is missing or permanently stopped', async () => {
  const { network, peer, say, workspaceId, close } = await openScene()
  try {
    const { id } = await say('ada', 'say nothing')
    const { kernel, wakes, participation } = network
    const message = messages.get(kernel.db, { workspaceId, id }) as MessageRow
    const { peer_id: peerId, session_id: sessionId } = peer('bob')
    const decided = async (more: Parameters<typeof kernelWith<typeof kernel>>[1]) => {
      const admission = new Admission(kernelWith(kernel, more), wakes.ledger, participation.budgetOf)
      const sender = { isRemote: true, confirmed: false, isStopped: false }
      const { decided, admitted } = await kernel.db.tx(t =>
        admission.decide(t, message, [{ peerId, sessionId, by: 'to' }], sender),
      )
      return { admitted: admitted.length, decided: decided.map(({ reason, isHeard }) => [reason, isHeard]) }
    }
    const skipped = (reason: SkipReason) => ({ admitted: 0, decided: [[reason, true]] })
    assert.equal(await decided({ config: { get: () => false } }), skipped('network_disabled'))
    const sessions = (session: unknown) => ({ needs: { ...kernel.needs, sessions: { get: () => session } } })
    for (const session of [
      undefined,
      { state: 'stopping' },
      { state: 'stopped', stopReason: 'user_canceled' },
      { state: 'stopped', stopReason: 'completed' },
    ])
      assert.equal(await decided(sessions(session)), skipped('not_live'), JSON.stringify(session))
    assert.is((await decided(sessions({ state: 'active' }))).admitted, 1)
  } finally {
    await close()
  }
})

test('old messages are deleted with their decisions; needed ones stay', async () => {
  const scene = await openScene()
  const { network, peer, say, post, settled, wakesOf, gate, at, until, request, inbox } = scene
  try {
    await say('ada', 'say yes', { to: 'bob' })
    await settled('bob', 1)
    const work = { to: peer('bob').peer_id, work_id: 'w1', thread_id: 'thread_work', body: { text: 'say fine' } }
    assert.is((await post('ada', work)).status, 200)
    await settled('bob', 2)
    const busy = gate()
    await say('ada', busy.line, { to: 'bob' })
    await until(at('bob'), ({ type, content }) => type === 'user_message' && content.text.includes(busy.line))
    const waits = await say('ada', 'say later', { to: 'bob', thread_id: 'thread_waits' })
    const { kernel } = network
    const { db } = kernel
    const count = (table: string) => db.get<{ n: number }>(`SELECT count(*) AS n FROM network_${table}`)?.n
    const counts = () => ['message', 'delivery', 'container', 'wake', 'work'].map(count)
    const sweep = (days: number) => {
      const clock = { now: () => kernel.clock.now() + days * 86_400_000 }
      return new Sweep(kernelWith(kernel, { clock })).sweep(new AbortController().signal)
    }
    const all = counts()
    await sweep(89)
    assert.equal(counts(), all, 'nothing is old')
    await sweep(91)
    // The message that a wake gathers, its thread, the thread of open work, and the wakes that are not over.
    assert.equal(counts(), [1, 1, 2, 2, 1])
    assert.equal(await inbox('bob'), [waits.id])
    const threads = (await request('GET', '/channels/team/threads')).body.threads
    assert.equal(threads.map((one: Reply) => one.thread_id).toSorted(), ['thread_waits', 'thread_work'])
    await busy.open()
    await eventually(async () => (await wakesOf('bob')).every(({ state }) => state === 'settled'), 'all wakes are over')
    await sweep(91)
    assert.equal(counts(), [0, 0, 1, 0, 1], 'work that is not over keeps its thread')
  } finally {
    await scene.close()
  }
})

test.run()
