// proof, timeout: 120s: agents that misbehave, one by one
import { readFile, stat } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pulseOf } from '../../../../plugins/work/acp/api.js'
import { testsAtOnce } from '../../../fixtures/at-once.js'
import { agentText, eventually, isAlive, openWorld, type World } from '../../../fixtures/session-world.js'

// What real agents do, and worse.
let world: World

const SHORT = {
  observability: { transcripts: { max_bytes_per_session: 1024 * 1024 } },
  session: {
    supervision: { timeout_cancel_grace: '3s', frozen_after: '600ms' },
    startup: { initialize_timeout: '30s', new_session_timeout: '30s' },
  },
}

test.before(async () => {
  world = await openWorld({ config: SHORT })
  await world.agent('plain')
})
test.after(() => world.close())

testsAtOnce({
  'an update before its tool_call, duplicates, repeated pending and missing members become one call and one result':
    async () => {
      const { at } = await world.session('plain')
      const update = (fields: object) => `update ${JSON.stringify({ toolCallId: 'c1', ...fields })}`
      const events = await world.prompt(
        at,
        [
          update({ sessionUpdate: 'tool_call_update', status: 'pending' }),
          update({ sessionUpdate: 'tool_call_update', status: 'pending' }),
          update({ sessionUpdate: 'tool_call', title: 'List files', kind: 'read', status: 'pending' }),
          update({ sessionUpdate: 'tool_call', title: 'List files', kind: 'read', status: 'pending' }),
          update({ sessionUpdate: 'tool_call_update' }),
          update({
            sessionUpdate: 'tool_call_update',
            status: 'completed',
            content: [{ type: 'content', content: { type: 'text', text: 'a' } }],
          }),
          update({
            sessionUpdate: 'tool_call_update',
            status: 'completed',
            content: [{ type: 'content', content: { type: 'text', text: 'a' } }],
          }),
          update({ sessionUpdate: 'tool_call_update', status: 'pending' }),
          `update ${JSON.stringify({ sessionUpdate: 'tool_call_update', title: 'no id' })}`,
          `update ${JSON.stringify({ sessionUpdate: 'something_new', x: 1 })}`,
          `update ${JSON.stringify({ sessionUpdate: 'tool_call_update', toolCallId: 'c2', status: 'failed' })}`,
        ].join('\n'),
      )
      const calls = events.filter(event => event.type === 'tool_call').map(event => event.content.title)
      assert.equal(calls, ['tool call', 'List files', 'tool call'])
      const results = events.filter(event => event.type === 'tool_result')
      assert.equal(
        results.map(event => [event.content.tool_call_id, event.content.status, event.content.title]),
        [
          ['c1', 'completed', 'List files'],
          ['c2', 'failed', 'tool call'],
        ],
      )
      assert.is(results[0].content.content[0].content.text, 'a')
    },

  'lines on stdout without a message are skipped': async () => {
    await world.agent('chatty', { flags: '--junk-first' })
    const { id, at } = await world.session('chatty')
    const events = await world.prompt(
      at,
      [
        'say a',
        'junk 20',
        'line {"jsonrpc":"2.0","id":999,"result":{}}',
        'line {"jsonrpc":"2.0","method":5}',
        'say b',
      ].join('\n'),
    )
    assert.is(agentText(events), 'a\nb\n')
    assert.is((await world.row(id)).state, 'active')
  },

  'output without any message ends the session as a protocol failure, and the daemon continues': async () => {
    const { id, at } = await world.session('plain')
    const events = await world.prompt(at, 'junk 1500\nsleep 20000')
    assert.is(events.at(-1).type, 'error')
    assert.is(events.at(-1).failure.kind, 'protocol_failure')
    const row = await eventually(async () => {
      const row = await world.row(id)
      return row.state === 'stopped' && row
    }, 'the stop')
    assert.is(row.stop_reason, 'error')
    assert.is(row.badge, 'failed')
    const bundle = JSON.parse(await readFile(row.failure.crash_bundle_path, 'utf8'))
    assert.match(bundle.process.other_output.join(), /npm warn/)
  },

  'an endless line is a protocol failure with bounded memory': async () => {
    const { at } = await world.session('plain')
    const events = await world.prompt(at, `big ${20 * 1024 * 1024}\nsleep 20000`)
    assert.is(events.at(-1).failure.kind, 'protocol_failure')
  },

  'a flood of updates is stored in few events': async () => {
    const { at } = await world.session('plain')
    const events = await world.prompt(at, 'flood 3000')
    const text = agentText(events)
    assert.is(text.split('\n').length, 3_001)
    assert.ok(text.startsWith('0 x') && text.includes('\n2999 x'))
    // What comes within 50 ms is one event: the slower the machine, the more there are.
    assert.ok(events.length < 600, `${events.length} events`)
  },

  'a flood on stderr is read, and only its end is kept': async () => {
    const { id, at } = await world.session('plain')
    const events = await world.prompt(at, 'stderr-flood 500\nstderr the last words\nsay done')
    assert.match(agentText(events), /done/)
    assert.is((await world.prompt(at, 'exit 2')).at(-1).type, 'error')
    const row = await eventually(async () => {
      const row = await world.row(id)
      return row.state === 'stopped' && row
    }, 'the stop')
    const tail = JSON.parse(await readFile(row.failure.crash_bundle_path, 'utf8')).process.stderr_tail
    assert.ok(tail.length <= 16 * 1024)
    assert.match(tail, /the last words/)
  },

  'a full journal drops agent updates with one notice, and the turn ends normally': async () => {
    const { at } = await world.session('plain')
    await world.prompt(at, 'flood 4000')
    const events = await world.prompt(at, 'flood 4000')
    const warnings = events.filter(event => event.type === 'runtime_warning')
    assert.equal(
      warnings.map(event => event.content.warning),
      ['journal_full'],
    )
    assert.is(events.at(-1).type, 'done')
    assert.is((await world.prompt(at, 'say more')).filter(event => event.type === 'agent_message').length, 0)
  },

  'an agent that ends during a turn fails it, stops its session and leaves a crash bundle': async () => {
    const { id, at } = await world.session('plain')
    const open = JSON.stringify({
      sessionUpdate: 'tool_call',
      toolCallId: 'c1',
      title: 'Run it',
      kind: 'execute',
      status: 'in_progress',
    })
    const events = await world.prompt(
      at,
      `update ${open}\nsay working\nstderr api_key=sk-abcdefghijklmnop123 then boom\nexit 3`,
    )
    const [result] = events.filter(event => event.type === 'tool_result')
    assert.is(result.content.synthetic, true)
    assert.is(events.at(-1).type, 'error')
    assert.is(events.at(-1).failure.kind, 'process_exit')
    assert.match(events.at(-1).failure.summary, /with code 3/)
    await world.until(at, event => event.type === 'session_stopped')
    const row = await eventually(async () => {
      const row = await world.row(id)
      return row.state === 'stopped' && row
    }, 'the stop')
    assert.is(row.stop_reason, 'agent_crashed')
    assert.is(row.failure.kind, 'process_exit')
    assert.is(row.health.health, 'dead')
    const file = row.failure.crash_bundle_path
    assert.is((await stat(file)).mode & 0o777, 0o600)
    const text = await readFile(file, 'utf8')
    assert.not.match(text, /sk-abcdefghij/)
    const bundle = JSON.parse(text)
    assert.match(bundle.process.stderr_tail, /then boom/)
    assert.is(bundle.session_id, id)
    assert.is(bundle.process.env.SVC_SESSION_ID, id)
  },

  'an exit between turns is a crash with an error, and a restart without one': async () => {
    const crash = await world.session('plain')
    await world.prompt(crash.at, 'exit-later 2')
    const row = await eventually(async () => {
      const row = await world.row(crash.id)
      return row.state === 'stopped' && row
    }, 'the stop')
    assert.is(row.stop_reason, 'agent_crashed')

    const calm = await world.session('plain')
    await world.prompt(calm.at, 'exit-later 0')
    await world.until(calm.at, event => event.content.warning === 'agent_exited')
    assert.is((await world.row(calm.id)).state, 'active')
    assert.match(agentText(await world.prompt(calm.at, 'pid')), /prompt 1/)
  },

  'an agent may exit while the end of its turn is stored': async () => {
    for (let i = 0; i < 3; i++) {
      const { id, at } = await world.session('plain')
      assert.is((await world.prompt(at, 'exit-behind 2')).at(-1)?.type, 'done')
      await eventually(async () => (await world.row(id)).state === 'stopped', 'the stop')
      assert.is((await world.row(id)).stop_reason, 'agent_crashed')
    }
    const calm = await world.session('plain')
    await world.prompt(calm.at, 'exit-behind 0')
    await world.until(calm.at, event => event.content.warning === 'agent_exited')
    assert.match(agentText(await world.prompt(calm.at, 'pid')), /prompt 1/)
  },
  'an error of the agent fails the turn and not the session': async () => {
    const { id, at } = await world.session('plain')
    const events = await world.prompt(at, 'error -32603 the model answered 500')
    assert.is(events.at(-1).failure.kind, 'prompt_failure')
    assert.match(events.at(-1).content.error, /model answered 500/)
    assert.is((await world.row(id)).state, 'active')
    assert.is(agentText(await world.prompt(at, 'say again')), 'again\n')
  },

  'agent output after a turn is kept with that turn': async () => {
    const { at } = await world.session('plain')
    const events = await world.prompt(at, 'later by the way')
    const late = await world.until(at, event => event.type === 'agent_message')
    assert.is(late.turn_id, events[0].turn_id)
  },

  'a cancel may be obeyed, answered with an error, or ignored': async () => {
    const cancel = async (at: string) => {
      const sent = await world.kernel.request('POST', `${at}/prompt`, { text: 'say started\nhang' })
      await world.until(at, event => event.type === 'agent_message')
      const reply = await world.kernel.request('POST', `${at}/prompt/cancel`)
      const done = await world.until(
        at,
        event => event.type === 'done' && event.turn_id === sent.body.prompt.new_turn_id,
      )
      return { reply, done }
    }
    const plain = await world.session('plain')
    const heeded = await cancel(plain.at)
    assert.is(heeded.reply.body.outcome, 'canceled')
    assert.is(heeded.done.content.status, 'canceled')
    assert.is((await world.kernel.request('POST', `${plain.at}/prompt/cancel`)).body.outcome, 'no_active_prompt')

    await world.agent('grumbler', { flags: '--cancel-as-error' })
    const grumbler = await world.session('grumbler')
    assert.is((await cancel(grumbler.at)).done.content.status, 'canceled')

    await world.agent('deaf', { flags: '--ignore-stdin-end --ignore-term' })
    const deaf = await world.session('deaf')
    await world.kernel.request('POST', `${deaf.at}/prompt`, { text: 'pid\nhang deaf' })
    const pid = Number(
      /pid (\d+)/.exec(agentText([await world.until(deaf.at, event => event.type === 'agent_message')]))![1],
    )
    await world.kernel.request('POST', `${deaf.at}/prompt/cancel`)
    await world.until(deaf.at, event => event.type === 'runtime_warning' && event.content.warning === 'cancel_ignored')
    assert.not(isAlive(pid))
    assert.is((await world.row(deaf.id)).state, 'active', 'the session goes on without the process')
    assert.match(agentText(await world.prompt(deaf.at, 'pid')), /prompt 1/)
  },

  'an unresponsive agent is detected and killed, a slow one is not; a prompt restarts it': async () => {
    const { id, at } = await world.session('plain')
    assert.is((await world.prompt(at, 'sleep 1500\nsay awake')).at(-1).type, 'done')
    const pid = Number(/pid (\d+)/.exec(agentText(await world.prompt(at, 'pid')))?.[1])
    const sent = await world.kernel.request('POST', `${at}/prompt`, { text: 'say x\nhang' })
    await world.until(at, event => event.type === 'agent_message' && event.content.text === 'x\n')
    process.kill(pid, 'SIGSTOP')
    await eventually(async () => (await world.row(id)).badge === 'hung', 'the badge')
    const turn = sent.body.prompt.new_turn_id
    const end = await world.until(at, event => event.turn_id === turn && event.type === 'error')
    assert.match(end.failure.summary, /frozen/)
    const row = await eventually(async () => {
      const row = await world.row(id)
      return row.state === 'stopped' && row
    }, 'the stop')
    assert.equal([row.stop_reason, row.stop_detail, row.failure.kind], ['agent_crashed', 'frozen', 'timeout'])
    assert.not(isAlive(pid))
    assert.match(agentText(await world.prompt(at, 'say back')), /back/)
  },

  'processor use is measured in all process groups of an agent': async () => {
    const { at } = await world.session('plain')
    const pid = Number(/pid (\d+)/.exec(agentText(await world.prompt(at, 'pid')))?.[1])
    const before = pulseOf(pid)
    await world.prompt(at, 'burn 200')
    const after = pulseOf(pid)
    assert.ok(before && after && after.cpuMs - before.cpuMs >= 100, `${before?.cpuMs} ms, then ${after?.cpuMs} ms`)
    assert.is(after.frozen, false)
    assert.is(pulseOf(2 ** 22 + 1), undefined)
  },

  'stopping ends a group that ignores the end of stdin and SIGTERM': async () => {
    await world.agent('stubborn', { flags: '--ignore-stdin-end --ignore-term' })
    const { id, at } = await world.session('stubborn')
    const pid = Number(/pid (\d+)/.exec(agentText(await world.prompt(at, 'child\npid')))![1])
    await world.kernel.request('POST', `${at}/stop`)
    assert.not(isAlive(pid), 'the group is gone')
    assert.is((await world.row(id)).state, 'stopped')
  },

  'processes in their own group end with the agent, at a stop and at a crash': async () => {
    for (const end of ['stop', 'crash']) {
      const { id, at } = await world.session('plain')
      const events = await world.prompt(at, 'child-apart\nchild-apart deaf')
      const children = [...agentText(events).matchAll(/child (\d+)/g)].map(match => Number(match[1]))
      assert.equal(children.map(isAlive), [true, true])
      if (end === 'stop') await world.kernel.request('POST', `${at}/stop`)
      else await world.prompt(at, 'exit 3')
      await eventually(async () => (await world.row(id)).state === 'stopped', 'the stop')
      await eventually(async () => !children.some(isAlive), `the end of the children after a ${end}`)
    }
  },

  'an agent that closes its output without ending has failed': async () => {
    const { at } = await world.session('plain')
    const events = await world.prompt(at, 'close')
    assert.is(events.at(-1).failure.kind, 'transport_failure')
  },
})

test.run()
