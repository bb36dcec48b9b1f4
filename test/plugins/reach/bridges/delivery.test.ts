import { rmSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { openChat } from './chat.js'

const ada = { peer_id: 'ada' }

/** The commands that a refusal names, in their order. */
const commandsOf = (error = ''): string[] => error.split('end them: ')[1]?.split('; ') ?? []

/** What a command of the command line asks of the daemon. */
function follow({ world: { kernel, workspaceId } }: Awaited<ReturnType<typeof openChat>>, line = '') {
  const [, noun, verb, id, more] = line.split(' ')
  const url =
    noun === 'session'
      ? `/api/workspaces/${workspaceId}/sessions/${id}/prompt/${verb}`
      : more === undefined
        ? `/api/bridges/${id}/${verb}`
        : `/api/bridges/${id}/deliveries/${more}/${verb}`
  return kernel.request('POST', url)
}

test('an answer grows by edits of one message and ends with the whole text', async () => {
  const chat = await openChat()
  try {
    const gate = chat.world.gate()
    await chat.say(`say one\n${gate.line}\nsay two`)
    await chat.reads(texts => texts.length === 1 && texts[0] === 'one')
    await gate.open()
    await chat.reads(texts => texts.length === 1 && texts[0] === 'one\ntwo')
    assert.equal(chat.platform.messages[0]?.texts, ['one', 'one\ntwo'])
    assert.equal(
      chat.platform.requests.map(({ event }) => event).filter(event => event !== 'delta'),
      ['start', 'final'],
    )
  } finally {
    await chat.close()
  }
})

test('an answer on a platform without edits is sent at its end', async () => {
  const chat = await openChat({ capabilities: { edits: false } })
  try {
    const gate = chat.world.gate()
    const { session_id } = await chat.say(`say one\nsleep 1500\n${gate.line}\nsay two`)
    await chat.untilPrompted(session_id)
    await gate.open()
    await chat.reads(texts => texts.length === 1 && texts[0] === 'one\ntwo')
    assert.equal(
      chat.platform.requests.map(({ event }) => event),
      ['final'],
    )
  } finally {
    await chat.close()
  }
})

test('tools are shown while they run, and not at the end', async () => {
  const chat = await openChat({ spec: { delivery_defaults: { progress: { tool_progress: 'all' } } } })
  try {
    const gate = chat.world.gate()
    const call = {
      sessionUpdate: 'tool_call',
      toolCallId: 't1',
      title: 'read notes.txt',
      kind: 'read',
      status: 'in_progress',
    }
    await chat.say(`say Looking.\nupdate ${JSON.stringify(call)}\n${gate.line}\nsay Found.`)
    await chat.reads(texts => texts[0] === 'Looking.\n\n… read notes.txt')
    await gate.open()
    await chat.reads(texts => texts.length === 1 && texts[0] === 'Looking.\n\nFound.')
    assert.is(chat.platform.messages[0]?.texts[0], 'Looking.\n\n… read notes.txt')
  } finally {
    await chat.close()
  }
})

test('a long answer is sent in ordered parts and mentions no user', async () => {
  const chat = await openChat({ capabilities: { edits: false, textLimit: 200 } })
  try {
    const words = Array.from({ length: 100 }, (_, n) => `word${n}`).join(' ')
    await chat.say(`say @everyone ${words}`)
    const texts = await chat.reads(all => all.join(' ').includes('word99'))
    assert.ok(texts.length > 3 && texts.every(text => text.length <= 200))
    assert.is(texts.join(' ').replace('\u200b', ''), `@everyone ${words}`)
    assert.not.match(texts.join(' '), /@everyone/)
  } finally {
    await chat.close()
  }
})

test('a failed turn sends a message', async () => {
  const chat = await openChat()
  try {
    await chat.say('error -32000 the model is on holiday')
    const texts = await chat.reads(({ length }) => length === 1)
    assert.match(texts[0] ?? '', /^The agent failed: .*the model is on holiday.*Ask again\.$/)
    await chat.say('sleep 1')
    const [, second] = await chat.reads(({ length }) => length === 2)
    assert.is(second, 'The agent ended without an answer.')
  } finally {
    await chat.close()
  }
})

test('an unsent message is retried; a rejected one is listed and can be resent or discarded by the user', async () => {
  const chat = await openChat({ capabilities: { edits: false } })
  try {
    chat.platform.failNext({}, 2)
    await chat.say('say patient')
    await chat.reads(texts => texts[0] === 'patient')
    assert.is(chat.platform.requests.length, 3)
    assert.is(new Set(chat.platform.requests.map(({ nonce }) => nonce)).size, 1, 'the nonce stays')

    chat.platform.failNext({ permanent: true, kind: 'permission_denied', message: 'not in this room' })
    await chat.say('say rejected')
    const failed = await eventually(async () => (await chat.deliveries('?state=failed'))[0], 'a failure')
    assert.match(failed.reason, /permission_denied: not in this room/)
    assert.is(failed.text, 'rejected')
    assert.is((await chat.deliveries())[0]?.id, failed.id, 'failures come first')
    const { items } = (await chat.world.kernel.request('GET', '/api/doctor?only=bridges')).body
    assert.ok(
      items.some((item: { code: string }) => item.code === 'bridge_deliveries_failed'),
      JSON.stringify(items),
    )
    const at = `/api/bridges/b1/deliveries/${failed.id}`
    assert.is((await chat.world.kernel.request('POST', `${at}/resend`)).status, 200)
    await chat.reads(texts => texts[1] === 'rejected')
    await eventually(async () => (await chat.deliveries('?state=failed')).length === 0, 'no failure')
    assert.is((await chat.world.kernel.request('POST', `${at}/resend`)).body.code, 'bridge_delivery_not_failed')
    assert.is((await chat.world.kernel.request('POST', '/api/bridges/b1/deliveries/dlv_0/resend')).status, 404)
    assert.is((await chat.world.kernel.request('POST', '/api/bridges/b9/deliveries/dlv_0/resend')).status, 404)

    chat.platform.failNext({ permanent: true, kind: 'unknown_destination' })
    await chat.say('say gone')
    const second = await eventually(async () => (await chat.deliveries('?state=failed'))[0], 'a second failure')
    const discarded = await chat.world.kernel.request('POST', `/api/bridges/b1/deliveries/${second.id}/discard`)
    assert.is(discarded.body.delivery.state, 'suppressed')
    assert.equal(chat.platform.room(ada), ['patient', 'rejected'])
  } finally {
    await chat.close()
  }
})

test('a message accepted and then reported as undelivered has failed, once, also for its poster', async () => {
  const chat = await openChat({ capabilities: { edits: false } })
  try {
    const { host } = chat.platform
    const poster = chat.poster()
    const rejected = (remote_message_id: string, reason = 'no such mailbox') =>
      host.reportDelivery({ bridge_instance_id: 'b1', remote_message_id, status: 'failed', reason })
    const key = 'k1'
    await poster.post({ bridgeId: 'b1', key, target: ada, text: 'the disk is full', source: 'test' })
    await eventually(async () => poster.standing(key)?.state === 'delivered', 'a delivered message')
    const id = chat.platform.messages[0]?.id ?? ''

    assert.equal(await rejected('m-of-others'), { outcome: 'unknown' })
    assert.equal(await rejected(id, `550 5.1.1 \u202eno such mailbox\r\n${'x'.repeat(2000)}`), { outcome: 'recorded' })
    const [failed] = await chat.deliveries('?state=failed')
    assert.match(failed?.reason, /^rejected: 550 5\.1\.1 .*no such mailbox/)
    assert.ok(failed.reason.length < 600, 'the words of the other side are bounded')
    assert.not.match(failed.reason, /[\u202e\r\n]/)
    assert.is(poster.standing(key)?.state, 'failed')
    await eventually(async () => poster.ended.some(([of, { state }]) => of === key && state === 'failed'), 'its poster')
    assert.equal(await rejected(id), { outcome: 'unknown' }, 'a second report changes nothing')
    const { bridge, health } = (await chat.world.kernel.request('GET', '/api/bridges/b1')).body
    assert.match(JSON.stringify([bridge, health]), /no such mailbox/)

    // Its text was not kept once the platform had it, so that nothing could be sent again.
    const at = `/api/bridges/b1/deliveries/${failed.id}`
    assert.is((await chat.world.kernel.request('POST', `${at}/resend`)).body.code, 'bridge_delivery_text_gone')
    assert.is((await chat.world.kernel.request('POST', `${at}/discard`)).body.delivery.state, 'suppressed')
    assert.equal(chat.platform.room(ada), ['the disk is full'])
  } finally {
    await chat.close()
  }
})

test('a report about a message being sent is repeated; one of another extension is refused', async () => {
  const chat = await openChat({ capabilities: { edits: false } })
  try {
    const { host, provider } = chat.platform
    const report = { bridge_instance_id: 'b1', remote_message_id: 'm1', status: 'failed', reason: 'gone' } as const
    let sent = () => {}
    chat.platform.holdNext(new Promise<void>(resolve => (sent = resolve)))
    await chat.say('say hello')
    await eventually(async () => chat.platform.requests.length === 1, 'a message that is being sent')
    const refused = await host.reportDelivery(report).catch(error => error.code)
    assert.is(refused, 'bridge_not_accepting', 'it may be the one whose id is not known yet')
    sent()
    await eventually(async () => (await chat.deliveries())[0]?.state === 'delivered', 'a delivered message')
    assert.is(provider.extension, 'fakechat')
    const bad = { ...report, status: 'read' } as unknown as typeof report
    assert.is(await host.reportDelivery(bad).catch(error => error.code), 'bridge_report_invalid')
    const elsewhere = { ...report, bridge_instance_id: 'b9' }
    assert.is(await host.reportDelivery(elsewhere).catch(error => error.code), 'bridge_not_found')
    assert.equal(await host.reportDelivery(report), { outcome: 'recorded' })
  } finally {
    await chat.close()
  }
})

test('a message with an unknown result is settled by the platform: never duplicated, never lost', async () => {
  const chat = await openChat({ capabilities: { edits: false } })
  try {
    chat.platform.unknownNext({ arrives: true })
    await chat.say('say arrived')
    await eventually(async () => chat.platform.settled.length === 1, 'a settlement')
    chat.platform.unknownNext({ arrives: false })
    await chat.say('say lost')
    await chat.reads(texts => texts.includes('lost'))
    assert.equal(chat.platform.room(ada), ['arrived', 'lost'])
    await eventually(async () => (await chat.deliveries()).every(({ state }) => state === 'delivered'), 'all delivered')
  } finally {
    await chat.close()
  }
})

test('a message with an unknown result on a platform without queries is listed and not resent', async () => {
  const chat = await openChat({ capabilities: { edits: false, canSettle: false } })
  try {
    chat.platform.unknownNext({ arrives: true })
    await chat.say('say perhaps')
    const failed = await eventually(async () => (await chat.deliveries('?state=failed'))[0], 'a failure')
    assert.is(failed.reason, 'unknown_after_send')
    await chat.say('say next')
    await chat.reads(texts => texts.includes('next'))
    assert.equal(chat.platform.room(ada), ['perhaps', 'next'])
  } finally {
    await chat.close()
  }
})

test('a platform that cannot know is asked once; then the message is listed', async () => {
  const chat = await openChat({ capabilities: { edits: false } })
  try {
    chat.platform.settling = { outcome: 'unknown', final: true }
    chat.platform.unknownNext({ arrives: false })
    await chat.say('say perhaps')
    const failed = await eventually(async () => (await chat.deliveries('?state=failed'))[0], 'a failure')
    assert.is(failed.reason, 'unknown_after_send')
    await chat.say('say next')
    await chat.reads(texts => texts.includes('next'))
    assert.is(chat.platform.settled.length, 1)
  } finally {
    await chat.close()
  }
})

test('a retry delay of the platform is obeyed', async () => {
  const chat = await openChat({ capabilities: { edits: false } })
  try {
    chat.platform.rateLimitNext(700)
    const startedAt = performance.now()
    await chat.say('say slowly')
    await chat.reads(texts => texts[0] === 'slowly')
    assert.ok(performance.now() - startedAt >= 700)
  } finally {
    await chat.close()
  }
})

test('a platform that is slow in one room delays no other room', async () => {
  const chat = await openChat({ capabilities: { edits: false } })
  try {
    let release = () => {}
    chat.platform.holdNext(new Promise<void>(resolve => (release = resolve)))
    await chat.say('say slow')
    await eventually(async () => chat.platform.requests.length === 1, 'an attempt')
    await chat.say('say quick', { peer_id: 'bob', sender: { id: 'bob', authenticated: true } })
    await chat.reads(texts => texts[0] === 'quick', { peer_id: 'bob' })
    assert.equal(chat.platform.room(ada), [])
    release()
    await chat.reads(texts => texts[0] === 'slow')
  } finally {
    await chat.close()
  }
})

test('a daemon restarted during an answer repeats nothing and loses nothing', async () => {
  const chat = await openChat()
  try {
    const gate = chat.world.gate()
    const { session_id } = await chat.say(`say begun\n${gate.line}\nsay never`)
    await chat.say('say waiting')
    await chat.reads(texts => texts[0] === 'begun')
    await chat.untilPrompted(session_id)
    await chat.restart()
    await gate.open()
    const texts = await chat.reads(all => all.includes('waiting'))
    assert.is(texts.filter(text => text.startsWith('begun')).length, 1, JSON.stringify(texts))
    assert.ok(
      texts.some(text => /interrupted|stopped/.test(text)),
      JSON.stringify(texts),
    )
    assert.is(texts.filter(text => text === 'waiting').length, 1)
  } finally {
    await chat.close()
  }
})

test('an answer that ends while its first message is being sent is updated to the whole text', async () => {
  const chat = await openChat()
  try {
    const gate = chat.world.gate()
    let release = () => {}
    chat.platform.holdNext(new Promise<void>(resolve => (release = resolve)))
    const { session_id } = await chat.say(`say one\n${gate.line}\nsay two`)
    await eventually(async () => chat.platform.requests.length === 1, 'the first message')
    await gate.open()
    await eventually(async () => (await chat.events(session_id)).some(({ type }) => type === 'done'), 'the end')
    release()
    await chat.reads(texts => texts.length === 1 && texts[0] === 'one\ntwo')
    assert.equal(chat.platform.messages[0]?.texts, ['one', 'one\ntwo'])
  } finally {
    await chat.close()
  }
})

test('an answer with an unknown first message continues in the arrived message', async () => {
  const chat = await openChat()
  try {
    const gate = chat.world.gate()
    chat.platform.unknownNext({ arrives: true })
    await chat.say(`say one\n${gate.line}\nsay two`)
    await eventually(async () => chat.platform.messages.length === 1, 'the first message')
    await gate.open()
    await chat.reads(texts => texts[0] === 'one\ntwo')
    assert.is(chat.platform.messages.length, 1)
  } finally {
    await chat.close()
  }
})

test('a prompt without an available agent gets a reply', async () => {
  const chat = await openChat()
  try {
    const gate = chat.world.gate()
    const { session_id } = await chat.say(gate.line)
    await chat.say('say never')
    await chat.untilPrompted(session_id)
    await chat.restart(() => rmSync(path.join(chat.world.root, '.svc', 'agents'), { recursive: true }))
    const texts = await chat.reads(all => all.length === 2)
    assert.match(texts.join('\n'), /could not be passed to an agent: .*ada/)
  } finally {
    await chat.close()
  }
})

test('a posted message is sent once per key, and its end is reported', async () => {
  const chat = await openChat({ capabilities: { edits: false } })
  try {
    const { post, ended, standing } = chat.poster()
    const target = { group_id: '#ops' }
    const message = { bridgeId: 'b1', key: 'k1', target, text: 'a task failed', source: 'preset:x' }
    assert.equal(await post(message), 'queued')
    assert.equal(await post(message), 'known')
    assert.equal(await post({ ...message, bridgeId: 'b7', key: 'k2' }), 'missing')
    await chat.reads(texts => texts[0] === 'a task failed', target)
    await eventually(async () => ended.length === 1, 'the end')
    assert.equal(ended, [['k1', { state: 'delivered' }]])
    assert.equal(standing('k1'), { state: 'delivered' })
    assert.is(standing('k9'), undefined)
    assert.equal(await post({ ...message, key: 'k3', expiresAt: 1 }), 'queued')
    await eventually(async () => ended.length === 2, 'the second end')
    assert.equal(ended[1], ['k3', { state: 'failed', reason: 'expired' }])
    assert.equal(chat.platform.room(target), ['a task failed'])
    assert.is(chat.bridges().totals().delivery_failures_total, 1)
  } finally {
    await chat.close()
  }
})

test('a bridge with pending messages is not deleted, nor its workspace, and the next step is named', async () => {
  const chat = await openChat({ capabilities: { canSettle: false } })
  try {
    const { kernel, workspaceId } = chat.world
    const ask = (method: string, url: string, body?: unknown) => kernel.request(method, url, body)
    const bridge = `/api/bridges/${chat.bridge}`
    const record = `/api/resources/bridge.instance/${chat.bridge}`
    chat.platform.failNext({}, 1000)
    const poster = chat.poster()
    await poster.post({ bridgeId: chat.bridge, key: 'k', target: ada, text: 'news', source: 'test' })
    await eventually(async () => chat.platform.requests.length > 0, 'an attempt')
    const version = async () => (await ask('GET', record)).body.record?.version as number
    const refusals = [
      await ask('DELETE', record, { expected_version: await version() }),
      await ask('DELETE', `/api/workspaces/${workspaceId}`),
    ]
    assert.equal(
      refusals.map(({ status, body }) => [status, body.code]),
      [
        [409, 'bridge_busy'],
        [409, 'workspace_in_use'],
      ],
    )
    const [waiting] = await chat.deliveries()
    for (const { body } of refusals) {
      assert.match(body.error, `a message on the way, ${waiting?.id}; wait, or end them: `)
      assert.is(body.next ?? body.details?.next, `svc bridge deliveries ${chat.bridge}`)
    }
    // What the refusal of the workspace says is done, word for word.
    const [disable, ...discards] = commandsOf(refusals[1]?.body.error)
    assert.equal(
      [disable, ...discards],
      [`svc bridge disable ${chat.bridge}`, `svc bridge discard ${chat.bridge} ${waiting?.id}`],
    )
    // Nothing of the workspace went before the refusal.
    assert.is((await ask('GET', `/api/workspaces/${workspaceId}`)).status, 200)
    assert.is((await ask('GET', bridge)).body.bridge.status, 'ready')
    assert.is((await chat.deliveries()).length, 1)
    assert.is((await follow(chat, disable)).status, 200)
    // An attempt that has begun ends first.
    await eventually(async () => (await follow(chat, discards[0])).status === 200, 'a message that is let go')
    assert.equal(
      poster.ended.map(([, { state, reason }]) => [state, reason]),
      [['suppressed', 'discarded']],
    )
    assert.is((await ask('DELETE', `/api/workspaces/${workspaceId}`)).status, 204)
    assert.is((await ask('GET', bridge)).status, 404)
    assert.is((await ask('GET', record)).status, 404)
    await eventually(async () => chat.platform.running.length === 0, 'an adapter without instances')
  } finally {
    await chat.close()
  }
})

test('the refusal names the first of many pending messages, and the session of a growing answer', async () => {
  const chat = await openChat({ capabilities: { canSettle: false } })
  try {
    const { kernel } = chat.world
    const record = `/api/resources/bridge.instance/${chat.bridge}`
    const remove = async () => {
      const { version } = (await kernel.request('GET', record)).body.record
      return kernel.request('DELETE', record, { expected_version: version })
    }
    const { session_id } = await chat.say('hang')
    await chat.untilPrompted(session_id)
    const growing = await remove()
    assert.equal([growing.status, growing.body.code], [409, 'bridge_busy'])
    assert.equal(commandsOf(growing.body.error), [
      `svc bridge disable ${chat.bridge}`,
      `svc session cancel ${session_id}`,
    ])
    assert.is((await follow(chat, `svc session cancel ${session_id}`)).status, 200)
    await chat.reads(texts => texts[0] === 'Canceled.')
    assert.is((await follow(chat, `svc bridge disable ${chat.bridge}`)).status, 200)
    const poster = chat.poster()
    for (let n = 0; n < 5; n++)
      await poster.post({ bridgeId: chat.bridge, key: `k${n}`, target: ada, text: `news ${n}`, source: 'test' })
    const many = await remove()
    assert.match(many.body.error, /5 messages on the way, dlv_\w+, dlv_\w+, dlv_\w+ and 2 more; wait/)
    for (let left = 5; left > 0; left -= 3) {
      const [, ...discards] = commandsOf((await remove()).body.error)
      assert.is(discards.length, Math.min(left, 3))
      for (const discard of discards) assert.is((await follow(chat, discard)).status, 200, discard)
    }
    assert.is((await remove()).status, 204)
  } finally {
    await chat.close()
  }
})

test('a message with an unknown result can be discarded', async () => {
  const chat = await openChat()
  try {
    chat.platform.settling = { outcome: 'unknown' }
    chat.platform.unknownNext({ arrives: true })
    const poster = chat.poster()
    await poster.post({ bridgeId: chat.bridge, key: 'k', target: ada, text: 'news', source: 'test' })
    await eventually(async () => chat.platform.settled.length > 0, 'a platform that is asked')
    const [delivery] = await chat.deliveries()
    assert.is(delivery?.state, 'unknown_after_send')
    const url = `/api/bridges/${chat.bridge}/deliveries/${delivery?.id}/discard`
    assert.is((await chat.world.kernel.request('POST', url)).body.delivery.state, 'suppressed')
    chat.platform.settling = undefined
    await poster.post({ bridgeId: chat.bridge, key: 'k2', target: ada, text: 'more', source: 'test' })
    await chat.reads(texts => texts.at(-1) === 'more')
    assert.is((await chat.deliveries('?state=suppressed')).length, 1)
  } finally {
    await chat.close()
  }
})

test.run()
