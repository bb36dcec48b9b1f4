import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { CommandContext } from '../../../../kernel/plugin.js'
import { runStatus, runWake } from '../../../../plugins/agents/heartbeats/commands.js'
import * as sidecars from '../../../../plugins/agents/sidecars/commands.js'
import { openWorld, type World } from '../../../proofs/heartbeats/world.js'

const POLICY = '---\nsummary: Look.\ncontext: { include: [self, task] }\n---\nAsk.\n'

class Refused extends Error {
  constructor(readonly more: { readonly body: unknown }) {
    super(JSON.stringify(more.body))
  }
}

/** Runs a command as the command line would; what it printed and its exit code. */
async function run(
  world: World,
  command: (context: CommandContext) => Promise<number | undefined> | Promise<void>,
  args: Record<string, string>,
  options: CommandContext['options'] = {},
): Promise<{ code: number; text: string }> {
  let text = ''
  const line = (words: string) => {
    text += `${words}\n`
  }
  const code = await command({
    path: '',
    args,
    options,
    cwd: world.home,
    home: world.home,
    client: {
      async request(method, url, body) {
        const reply = await world.request(method, url, body)
        if (reply.status >= 400) throw new Refused({ body: reply.body })
        return reply.body
      },
      async *stream() {},
    },
    out: {
      json: false,
      line,
      text: line,
      id: () => {},
      value: value => line(JSON.stringify(value)),
      table: rows => line(JSON.stringify(rows)),
      color: (_name, words) => words,
    },
    readFile: async () => POLICY,
    stdin: async () => '',
    signal: new AbortController().signal,
    onInterrupt: () => () => {},
    fault: (fault, words) => {
      throw new Error(`${fault}: ${words}`)
    },
  })
  return { code: code ?? 0, text }
}

test('heartbeat commands show each state of a policy with the next step', async () => {
  const world = await openWorld({ start: Date.UTC(2026, 5, 1, 12) })
  const folder = await world.agent('able')
  const able = { name: 'able' }
  const tell = async (...of: Parameters<typeof run> extends [World, ...infer R] ? R : never) => run(world, ...of)
  assert.match((await tell(runStatus, able)).text, /has no HEARTBEAT\.md.*next: svc agent heartbeat write able/s)
  const none = await tell(runWake, able)
  assert.is(none.code, 1)
  assert.match(none.text, /skipped: heartbeat_no_policy\nnext: svc agent heartbeat write able/)
  const written = await tell(sidecars.heartbeatWrite, able, { file: 'HEARTBEAT.md' })
  assert.match(written.text, /^wrote .*next: svc agent heartbeat status able/s)
  const nobody = await tell(runWake, able)
  assert.is(nobody.code, 5)
  assert.match(nobody.text, /heartbeat_no_eligible_session\n.*next: svc session new --agent able/s)
  await world.session('ses_1', 'able')
  const dry = await tell(runWake, { ...able, session: 'ses_1' }, { 'dry-run': true, workspace: world.workspaceId })
  assert.equal([dry.code, world.prompts.length], [0, 0])
  assert.match(dry.text, 'would be sent')
  assert.match(
    (await tell(runWake, able, { workspace: world.workspaceId })).text,
    /sent: wake_sent.*no plugin provides "task"/s,
  )
  assert.is(world.prompts.length, 1)
  const status = await tell(runStatus, able, { session: 'ses_1', workspace: world.workspaceId })
  assert.match(status.text, /is active, every 30m.*ses_1.*wake_sent.*no plugin provides "task"/s)
  await writeFile(path.join(folder, 'HEARTBEAT.md'), '---\ncolour: red\n---\n')
  const broken = await tell(runWake, able)
  assert.is(broken.code, 1)
  assert.match(broken.text, /colour is not known.*next: svc agent heartbeat inspect able/s)
  const inspected = await tell(sidecars.heartbeatInspect, able)
  assert.is(inspected.code, 7)
  assert.match(inspected.text, 'heartbeat_unknown_field')
  assert.not.match(inspected.text, 'Every:', 'nobody wrote that')
  const judged = await tell(sidecars.heartbeatValidate, able, { file: 'mine.md' })
  assert.match(judged.text, /valid\n +File: +mine\.md/)
  const history = await tell(sidecars.heartbeatHistory, able)
  const [revision] = /rev_[0-9a-f]{16}/.exec(history.text) ?? []
  assert.match((await tell(sidecars.heartbeatRollback, { ...able, revision: revision ?? '' })).text, /^restored/)
  assert.match((await tell(sidecars.heartbeatRemove, able)).text, /^removed/)
  await world.close()
})

test.run()
