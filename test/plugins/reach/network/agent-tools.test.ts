import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { operator } from '../../../../kernel/plugin.js'
import { extensions, tools } from '../../../../plugins/index.js'
import type { RunRow } from '../../../../plugins/work/tasks/runs/run-row.js'
import type { TaskRow } from '../../../../plugins/work/tasks/tasks/task-row.js'
import { promptOf } from '../../../../plugins/work/tasks/workers/prompt.js'
import { Tools } from '../../../../plugins/work/tools/api.js'
import { probe } from '../../../../testing/traces.js'
import { eventually } from '../../../fixtures/session-world.js'
import { openAgents } from './agent-scene.js'

test('the reply tool of a woken agent needs no permission; other tools, rooms and turns do', async () => {
  const look = probe({ tools: Tools })
  const scene = await openAgents({
    permissions: 'approve-reads',
    plugins: [extensions, tools, { ...look.plugin, name: 'look' }],
  })
  try {
    const { session_id: sessionId } = scene.peer('bob')
    const by = { sessionId, workspaceId: scene.workspaceId, agentName: 'bob', actor: operator }
    const metadata = { message_kind: 'reply' }
    /** What comes of a call in the name of the agent. */
    const call = (name: string, input: object) =>
      look
        .kernel()
        .needs.tools.call(`service__${name}`, input, { ...by, signal: new AbortController().signal })
        .then(
          ({ result }) => (result.isError ? JSON.stringify(result) : 'done'),
          (error: { code?: string; message?: string }) =>
            error.code === 'tool_approval_required' ? error.code : `${error.code}: ${error.message}`,
        )
    const answer = (id: string) => call('channel_reply', { reply_to_message_id: id, body: 'fine', metadata })

    const go = path.join(scene.root, 'go')
    const before = await scene.say('ada', 'for nobody')
    assert.is(await answer(before.id), 'tool_approval_required', 'outside of a turn that a message began')
    const message = await scene.say('ada', `until ${go}`, { to: 'bob' })
    await eventually(async () => {
      const { session } = (await scene.kernel.request('GET', scene.at('bob'))).body
      return session.activity?.turn_source === 'network'
    }, 'the turn to run')
    assert.is(await answer(message.id), 'done')
    assert.is(await call('channel_send', { channel: 'team', body: 'fine', metadata }), 'tool_approval_required')
    const sent = { channel: 'team', kind: 'say', session_id: sessionId, body: { text: 'x' } }
    const further = { workspace_id: scene.workspaceId, body: sent }
    assert.is(await call('network_send', further), 'tool_approval_required')
    assert.is(await answer('msg_absent'), 'tool_approval_required')
    writeFileSync(go, '')
    await scene.settled('bob', 1)
    assert.is(await answer(message.id), 'tool_approval_required', 'after its turn')
  } finally {
    await scene.close()
  }
})

test('a session of a run with a channel gets the name of the channel', () => {
  const task = { id: 'task_1', title: 'work', description: null } as TaskRow
  const before = { earlier: [], handoff: undefined, branch: undefined, bodyBytes: 1024, lead: undefined }
  const of = (participation: object | null) => {
    const run = { id: 'trun_1', kind: 'worker', designation_brief: null, metadata: null } as unknown as RunRow
    return promptOf(task, { ...run, participation: participation && JSON.stringify(participation) }, before)
  }
  assert.match(of({ mode: 'live', channel_id: 'coord-1', workspace_id: 'ws_1' }), 'svc ch recv coord-1')
  for (const none of [null, { mode: 'local' }]) assert.not.match(of(none), 'svc ch')
})

test.run()
