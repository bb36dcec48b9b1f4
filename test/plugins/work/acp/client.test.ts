import { readFile, realpath } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Actor, definePlugin } from '../../../../kernel/plugin.js'
import { acp as plugin } from '../../../../plugins/index.js'
import { Processes, type ProcessesApi } from '../../../../plugins/platform/processes/api.js'
import { Acp, type AcpApi, AgentGuards, type EventContent } from '../../../../plugins/work/acp/api.js'
import { AGENT, eventually } from '../../../fixtures/session-world.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'

let acp: AcpApi
let processes: ProcessesApi
let actor: Actor
class Holder {
  constructor(kernel: {
    readonly needs: { readonly acp: AcpApi; readonly processes: ProcessesApi }
    readonly actor: Actor
  }) {
    actor = kernel.actor
    acp = kernel.needs.acp
    processes = kernel.needs.processes
  }
}
const holding = definePlugin({
  name: 'test.holding',
  version: '1.0.0',
  requires: { acp: Acp, processes: Processes },
  service: async () => Holder,
}).surface({})

test('an agent asks and is answered without the plugin sessions', async () => {
  const root = await realpath(await temporaryFolder('acp'))
  const kernel = await boot({ plugins: [plugin, holding] })
  const recorded: EventContent[] = []
  const updates: unknown[] = []
  const client = acp.clientFor({
    sessionId: 'ses_1',
    agentName: 'writer',
    mode: 'approve-reads',
    tools: undefined,
    guards: new AgentGuards(),
    territory: () => ({ roots: [root], forbidden: kernel.home }),
    env: {},
    spawn: async () => {
      throw new Error('no terminal is started')
    },
    watch: { before: async call => call, after() {} },
    turnId: () => 'trn_1',
    isAttended: () => true,
    known: () => undefined,
    gate: async ({ toolKind }) => ({ judgedAs: toolKind, isAllowed: false }),
    record: (_turn, content) => void recorded.push(content),
    note() {},
    warn() {},
  })
  const argv = [process.execPath, AGENT]
  const handle = await processes.spawn({
    label: 'agent',
    argv,
    cwd: root,
    env: { PATH: `${process.env.PATH}` },
    stdio: 'pipe',
  })
  const agent = await client.connect({
    owner: 'ses_1 writer',
    handle,
    cwd: root,
    addDirs: [],
    mcpServers: [],
    mode: 'approve-reads',
    load: undefined,
    update: params => void updates.push(params),
    room: async () => {},
    activity() {},
    fault: error => assert.unreachable(error.message),
    leftOut() {},
    askingModes: [],
    withholds: [],
    mcpTransports: undefined,
    login: undefined,
    withheld: () => undefined,
    log() {},
  })
  try {
    const file = path.join(root, 'a.txt')
    const write = `call fs/write_text_file ${JSON.stringify({ path: file, content: 'written' })}`
    const turn = agent.prompt([`${write}\nsay done`])
    await eventually(async () => client.permissions.pending.length === 1, 'the question')
    const [question] = client.permissions.pending
    assert.equal([question?.question.kind, question?.question.paths], ['edit', [file]])
    const answered = client.permissions.answer(`${question?.requestId}`, 'trn_1', 'allow-once', actor)
    assert.is(await answered, true)
    assert.is(await turn, 'end_turn')
    assert.is(await readFile(file, 'utf8'), 'written')
    assert.equal(
      recorded.map(({ status, resolved_by }) => [status, resolved_by]),
      [
        ['pending', undefined],
        ['resolved', 'person'],
      ],
    )
    assert.ok(JSON.stringify(updates).includes('done'))
  } finally {
    await agent.stop()
    await kernel.close()
  }
})

test.run()
