import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { methods, type RequestError } from '@agentclientprotocol/sdk'
import * as assert from 'uvu/assert'
import { agentSuite, type Behaviour, gate, REPORT, SMALL } from './report-agent-client.js'

const test = agentSuite('report agent: sessions')

test('session/cancel ends the turn at once in every wait', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  const never = new Promise<never>(() => {})
  const waits: [name: string, behaviour: Behaviour, prompt: string, until: string][] = [
    ['reading', { beforeRead: () => never }, 'Report.', 'fs/read_text_file'],
    ['asking', { answer: () => never }, 'Report.', 'permission execute'],
    ['running', { replaceCommand: ['sleep', '600'] }, 'Report.', 'terminal/wait_for_exit'],
    ['pausing', {}, 'Report. pause 5s between steps', 'update agent_message_chunk'],
  ]
  for (const [name, behaviour, prompt, until] of waits) {
    const agent = await start(behaviour)
    const session = await agent.open(cwd)
    const turn = agent.prompt(session, prompt)
    while (!agent.log.includes(until)) await new Promise(resolve => setTimeout(resolve, 5))
    await agent.cancel(session)
    assert.is(await turn, 'cancelled', name)
    assert.ok(
      agent.toolCalls(session).every(call => /(completed|failed)$/.test(call)),
      name,
    )
    assert.not(existsSync(join(cwd, '.svc')), name)
    for (const terminal of agent.terminals.values()) await terminal.exit
    assert.is(await agent.end(), 0, name)
  }
})

test('a cancel right after its prompt is not lost, and the next turn works', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  const agent = await start()
  const session = await agent.open(cwd)
  const [stopReason] = await Promise.all([agent.prompt(session, 'pause 5s between steps'), agent.cancel(session)])
  assert.is(stopReason, 'cancelled')
  assert.is(await agent.prompt(session), 'end_turn')
  assert.ok(existsSync(join(cwd, REPORT)))
})

test('concurrent sessions are isolated', async ({ scratch, start }) => {
  const slow = scratch.workspace('slow', { 'slow.py': '# FIXME slow\n' })
  const quick = scratch.workspace('quick', { 'quick.go': '// TODO quick\n' })
  const [reading, other] = [gate(), gate()]
  const agent = await start({
    beforeRead: async ({ path }) => {
      if (!path.endsWith('slow.py')) return
      reading.open()
      await other.opened
    },
  })
  const [slowSession, quickSession] = [await agent.open(slow), await agent.open(quick)]
  const turn = agent.prompt(slowSession)
  await reading.opened
  const busy = await agent.prompt(slowSession).catch((error: RequestError) => error)
  assert.equal((busy as RequestError).data, { code: 'turn_running', sessionId: slowSession })
  assert.is(await agent.prompt(quickSession), 'end_turn')
  other.open()
  assert.is(await turn, 'end_turn')
  assert.match(agent.said(slowSession), 'top language Python')
  assert.match(agent.said(quickSession), 'top language Go')
  assert.match(readFileSync(join(slow, REPORT), 'utf8'), 'FIXME slow')
  assert.not.match(readFileSync(join(quick, REPORT), 'utf8'), 'slow')
})

test('a session is replayed in a new process', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  const first = await start()
  const sessionId = await first.open(cwd)
  await first.prompt(sessionId, 'The first question')
  assert.is(await first.end(), 0)

  const second = await start()
  assert.ok(second.loadSession)
  await second.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] })
  const [question] = second.updates
  assert.equal(question?.update, {
    sessionUpdate: 'user_message_chunk',
    content: { type: 'text', text: 'The first question' },
  })
  assert.is(second.said(sessionId), first.said(sessionId))
  const statuses = second.updates.flatMap(({ update }) => (update.sessionUpdate === 'tool_call' ? [update.status] : []))
  assert.is(statuses.length, first.toolCalls(sessionId).length)
  assert.ok(statuses.every(status => status === 'completed' || status === 'failed'))
  assert.is(await second.prompt(sessionId), 'end_turn')

  for (const unknown of ['report-00000000-0000-0000-0000-000000000000', '../../etc/passwd']) {
    const load = second.agent.request(methods.agent.session.load, { sessionId: unknown, cwd, mcpServers: [] })
    assert.is(((await load.catch((error: RequestError) => error)) as RequestError).code, -32002)
  }
})

test('the agent ends with its stdin, also within a turn', async ({ scratch, start }) => {
  const reading = gate()
  const agent = await start({
    beforeRead: () => {
      reading.open()
      return new Promise(() => {})
    },
  })
  const session = await agent.open(scratch.workspace('project', SMALL))
  const turn = agent.prompt(session).catch(() => 'connection closed')
  await reading.opened
  assert.is(await agent.end(), 0)
  assert.is(await turn, 'connection closed')
})

test.run()
