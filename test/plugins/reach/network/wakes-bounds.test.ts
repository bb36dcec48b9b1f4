import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Reply } from '../../../harness/kernel.js'
import { openScene } from './scene.js'

test('a chain of wakes ends at its depth limit; a spontaneous message starts a new chain', async () => {
  const { say, disposition, gate, at, until, wakesOf, close } = await openScene({
    agents: ['ada', 'bob', 'eve', 'dan'],
  })
  try {
    const working = gate()
    const chain = ['ada', 'bob', 'eve', 'dan', 'ada']
    const messages: Reply[] = []
    for (const [n, from] of chain.slice(0, -1).entries()) {
      const to = chain[n + 1] as string
      messages.push(await say(from, working.line, { to }))
      if (n < 3) await until(at(to), ({ type, content }) => type === 'user_message' && content.source === 'network')
    }
    assert.equal(await Promise.all(messages.map(disposition)), [
      { woken: 1, not_addressed: 2 },
      { woken: 1, not_addressed: 2 },
      { woken: 1, not_addressed: 2 },
      { woken: 0, not_addressed: 2, depth_exceeded: 1 },
    ])
    const wakes = (await Promise.all(['bob', 'eve', 'dan'].map(wakesOf))).flat()
    assert.equal(
      wakes.map(({ depth, root_id }) => [depth, root_id]),
      [1, 2, 3].map(depth => [depth, messages[0]?.id]),
    )
    assert.equal(await wakesOf('ada'), [])
    await working.open()
    await until(at('dan'), ({ type }) => type === 'done')
    assert.equal(await disposition(await say('dan', 'say a new subject', { to: 'ada' })), {
      woken: 1,
      not_addressed: 2,
    })
  } finally {
    await close()
  }
})

test('reported tokens of an agent are charged, and a spent budget stops the wakes of its session', async () => {
  const { peer, say, settled, usage, disposition, inbox, prompts, close } = await openScene()
  try {
    const usageLine = (used: number) =>
      `update ${JSON.stringify({ sessionUpdate: 'usage_update', used, size: 300_000 })}`
    await say('ada', usageLine(1200), { to: 'bob' })
    await settled('bob', 1)
    await say('ada', usageLine(201_200), { to: 'bob' })
    const wakes = await settled('bob', 2)
    assert.equal(
      wakes.map(({ usage_state, input_tokens, output_tokens }) => [usage_state, input_tokens, output_tokens]),
      [
        ['actual', 1200, 0],
        ['actual', 200_000, 0],
      ],
    )
    const last = await say('ada', 'say more', { to: 'bob' })
    assert.equal(await disposition(last), { woken: 0, budget_exhausted: 1 })
    assert.equal(await inbox('bob'), [last.id])
    assert.is((await prompts('bob')).length, 2)
    const { budget, total } = await usage(`?owner_kind=session&owner_id=${peer('bob').session_id}&limit=1`)
    assert.equal([budget.exhausted_reason, budget.wakes_used], ['max_input_tokens', 2])
    assert.equal([total.wake_count, total.actual_wake_count, total.input_tokens], [2, 2, 201_200])
  } finally {
    await close()
  }
})

test('wakes are paged, and listed by owner and channel', async () => {
  const { peer, say, settled, usage, request, close } = await openScene()
  try {
    await say('ada', 'say one', { to: 'bob' })
    await say('bob', 'say two', { to: 'ada' })
    await Promise.all([settled('bob', 1), settled('ada', 1)])
    const first = await usage('?limit=1&channel=team')
    const second = await usage(`?limit=1&channel=team&cursor=${first.next_cursor}`)
    const owners = [first, second].map(({ details }) => details[0].participation_status.owner.id)
    assert.equal(owners.sort(), [peer('ada').session_id, peer('bob').session_id].sort())
    assert.equal([second.next_cursor, second.total.wake_count], [undefined, 2])
    assert.equal((await usage('?channel=other')).details, [])
    assert.is((await request('GET', `/usage?channel=other&cursor=${first.next_cursor}`)).body.code, 'invalid_cursor')
    for (const kind of ['automation_run', 'loop_run']) {
      const { status, body } = await request('GET', `/usage?owner_kind=${kind}&owner_id=x`)
      assert.equal([status, body.code], [400, 'network_owner_uncharged'])
    }
    assert.is((await usage(`?owner_kind=task_run&owner_id=${peer('bob').session_id}`)).total.wake_count, 0)
  } finally {
    await close()
  }
})

test('a queued wake survives a restart and prompts once', async () => {
  const scene = await openScene()
  const { say, prompts, settled, gate, at, until, restart, wakesOf, prompt } = scene
  try {
    await prompt(at('bob'), 'say ready')
    const busy = gate()
    await scene.kernel.request('POST', `${at('bob')}/prompt`, { text: busy.line })
    await until(at('bob'), ({ type, content }) => type === 'user_message' && content.text === busy.line)
    await say('ada', 'say queued', { to: 'bob' })
    await until(at('bob'), () => true)
    while ((await wakesOf('bob'))[0]?.state !== 'queued') await new Promise(resolve => setImmediate(resolve))
    await say('ada', 'say gathered', { to: 'bob' })
    await restart()
    const wakes = await settled('bob', 2)
    assert.equal(
      wakes.map(({ state }) => state),
      ['settled', 'settled'],
    )
    const texts = await prompts('bob')
    assert.equal(
      texts.map(text => /say (queued|gathered)/.exec(text)?.[1]),
      ['queued', 'gathered'],
    )
  } finally {
    await scene.close()
  }
})

test('a turn beyond the time limit of a wake is canceled, and its session can be woken again', async () => {
  const { say, settled, gate, at, until, prompts, inbox, close } = await openScene({
    config: { network: { live: { defaults: { max_wake_wall_time: '400ms', coalesce_window: '100ms' } } } },
  })
  try {
    await say('ada', gate().line, { to: 'bob' })
    const [wake] = await settled('bob', 1)
    assert.equal([wake?.state, wake?.reason], ['settled', 'max_wake_wall_time'])
    const done = await until(at('bob'), ({ type }) => type === 'done' || type === 'error')
    assert.is(done.content.stop_reason, 'cancelled', JSON.stringify(done))
    assert.equal(await inbox('bob'), [], 'the messages were given to the turn')
    await say('ada', 'say yes', { to: 'bob' })
    const [, next] = await settled('bob', 2)
    assert.equal([next?.state, next?.reason], ['settled', undefined])
    assert.is((await prompts('bob')).length, 2)
  } finally {
    await close()
  }
})

for (const how of ['stopped', 'deleted'] as const)
  test(`a wake of a session that is ${how} permanently returns its reservation`, async () => {
    const scene = await openScene()
    const { say, settled, gate, at, until, wakesOf, usage, peer, told } = scene
    try {
      const busy = gate()
      await scene.kernel.request('POST', `${at('bob')}/prompt`, { text: busy.line })
      await until(at('bob'), ({ type }) => type === 'user_message')
      await say('ada', 'say queued', { to: 'bob' })
      while ((await wakesOf('bob'))[0]?.state !== 'queued') await new Promise(resolve => setImmediate(resolve))
      await say('ada', 'say gathered', { to: 'bob' })
      assert.is((await usage()).total.input_tokens, 50_000)
      const [method, url] =
        how === 'stopped' ? (['POST', `${at('bob')}/stop`] as const) : (['DELETE', at('bob')] as const)
      assert.is((await scene.kernel.request(method, url)).status, 204)
      const wakes = await settled('bob', 2)
      assert.equal(
        wakes.map(({ state, usage_state, input_tokens, charged_wall_time }) => [
          state,
          usage_state,
          input_tokens,
          charged_wall_time,
        ]),
        [
          ['not_live', 'returned', 0, '0s'],
          ['not_live', 'returned', 0, '0s'],
        ],
      )
      const { budget } = await usage(`?owner_kind=session&owner_id=${peer('bob').session_id}`)
      assert.equal([budget.wakes_used, budget.participation_status.reason], [0, 'not_live'])
      assert.is((await told('network.message.persisted')).length, 2)
    } finally {
      await scene.close()
    }
  })

test.run()
