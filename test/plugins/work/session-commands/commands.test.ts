import { existsSync, mkdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { wrapSentence } from '../../../../cli/show/text.js'
import type { CommandContext } from '../../../../kernel/plugin.js'
import * as commands from '../../../../plugins/work/session-commands/commands.js'
import { EventLines } from '../../../../plugins/work/session-commands/event-lines.js'
import { openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { typescript } from '../../../harness/run-typescript.js'

let world: World

test.before(async () => {
  world = await openWorld()
  await world.agent('reads', { permissions: 'approve-reads' })
})
test.after(() => world.close())

class CommandFault extends Error {}

/** Ids that commands told of. */
const made: string[] = []

/** Runs a command as the command line would; returns what it printed. */
async function run(
  command: (context: CommandContext) => Promise<unknown>,
  args: Record<string, string>,
  options: CommandContext['options'] = {},
  json = false,
): Promise<string> {
  let printed = ''
  await command({
    path: '',
    args,
    options,
    cwd: world.root,
    home: world.home,
    client: {
      async request(method, url, body) {
        const reply = await world.kernel.request(method, url, body)
        if (reply.status >= 400) throw new CommandFault(`${reply.status} ${reply.body.code}`)
        return reply.body
      },
      async *stream() {},
    },
    out: {
      json,
      line: text => {
        printed += `${text}\n`
      },
      text: text => {
        printed += text
      },
      id: id => void made.push(id),
      value: value => {
        printed += `${JSON.stringify(value)}\n`
      },
      table: rows => {
        printed += `${JSON.stringify(rows)}\n`
      },
      color: (_name, text) => text,
    },
    readFile: async () => '',
    stdin: async () => '',
    signal: new AbortController().signal,
    onInterrupt: () => () => {},
    fault(code, text) {
      throw new CommandFault(`${code}: ${text}`)
    },
  })
  return printed.trimEnd()
}

const ask = (kind: string, rawInput: object) =>
  `ask ${JSON.stringify({
    toolCall: { toolCallId: 'p', title: 'git log', kind, rawInput },
    options: ['allow_once', 'allow_always', 'reject_once'].map(one => ({ optionId: one, name: one, kind: one })),
  })}`

test('session commands: new, events, approve, history, transcript, resume', async () => {
  const started = await run(commands.runNew, {}, { workspace: world.workspaceId, agent: 'reads', name: 'by hand' })
  const session_id = /ses_[0-9a-f]{16}/.exec(started)![0]
  assert.equal(made, [session_id], 'for --quiet')
  const at = `/api/workspaces/${world.workspaceId}/sessions/${session_id}`
  assert.is((await world.row(session_id)).workspace_path, world.root, 'the workspace of the folder')

  await rejects(run(commands.runApprove, { session_id }), /nothing waits for permission/)
  await world.kernel.request('POST', `${at}/prompt`, {
    text: `say working on it\nsay still\n${ask('execute', { command: 'git', args: ['log'] })}\nsay over`,
  })
  await world.until(at, event => event.type === 'permission')
  const shown = await run(commands.runEvents, { session_id })
  assert.match(shown, /^\d\d:\d\d:\d\d {2}> say working on it/)
  assert.match(shown, /:\d\d {2}working on it\nstill\n/)
  assert.match(shown, new RegExp(`\\? run: git log \\(svc session approve ${session_id}\\)$`))
  await rejects(run(commands.runApprove, { session_id }), /usage: without a terminal, approving needs --yes/)
  assert.match(await run(commands.runInteractions, { session_id }), /git log/)
  assert.is(await run(commands.runApprove, { session_id }, { yes: true }), 'run: git log\nallow-once: allowed')
  await world.until(at, event => event.type === 'done')
  await rejects(run(commands.runApprove, { session_id }), /nothing waits/)

  await world.kernel.request('POST', `${at}/prompt`, { text: ask('delete', {}) })
  await world.until(at, event => event.type === 'permission' && event.content.kind === 'delete')
  assert.match(await run(commands.runApprove, { session_id }, { reject: true }), /rejected/)
  await world.until(at, event => event.type === 'agent_message' && event.content.text.includes('answer: reject_once'))

  const call = { sessionUpdate: 'tool_call', toolCallId: 't', title: 'Build', kind: 'execute', status: 'failed' }
  await world.prompt(at, `update ${JSON.stringify(call)}`)
  const content = [{ type: 'content', content: { type: 'text', text: '```\n\n  no such target\nmore\n```' } }]
  await world.prompt(at, `update ${JSON.stringify({ ...call, toolCallId: 'u', content })}`)
  await world.kernel.request('POST', `${at}/stop`)
  const history = await run(commands.runHistory, { session_id })
  assert.match(history, /^turn trn_\w+, \d{4}-\d\d-\d\d\n\d\d:\d\d:\d\d /)
  assert.match(history, /• Build \[execute\] ✗\n/)
  assert.match(history, /• Build \[execute\] ✗: no such target\n/)
  assert.match(history, /session stopped \(user_canceled\)$/)
  const transcript = await run(commands.runTranscript, { session_id })
  assert.match(transcript, /assistant\n {2}working on it\n {2}still/)
  assert.match(transcript, /system\n {2}session stopped \(user_canceled\)$/)
  assert.not.match(transcript, /^\w+\n\w/m, 'no heading without a line')
  assert.is(JSON.parse(await run(commands.runEvents, { session_id }, { limit: 1 }, true)).events.length, 1)
  await rejects(run(commands.runResume, { session_id }), /409 session_stopped/)
  await rejects(run(commands.runEvents, { session_id: 'ses_0' }), /404/)
})

test('the report agent in mode approve-reads asks for its command and its write', async () => {
  const agent = fileURLToPath(new URL('../../../../examples/agents/report/agent.ts', import.meta.url))
  await world.agent('report', {
    permissions: 'approve-reads',
    command: [process.execPath, ...typescript, agent].join(' '),
  })
  // The agent asks for git only in a repository.
  mkdirSync(path.join(world.root, '.git'))
  const started = await run(
    commands.runNew,
    {},
    { workspace: world.workspaceId, agent: 'report', prompt: 'report to docs/REPORT.md' },
  )
  const session_id = /ses_[0-9a-f]{16}/.exec(started)![0]
  const at = `/api/workspaces/${world.workspaceId}/sessions/${session_id}`
  for (const kind of ['execute', 'edit']) {
    // A call is pending before permission is asked for it.
    const asks = (event: Reply) => event.type === 'permission' && event.content.status === 'pending'
    await world.until(at, event => asks(event) && event.content.kind === kind)
    assert.match(await run(commands.runApprove, { session_id }, { yes: true }), /allowed$/)
  }
  const done = await world.until(at, event => event.type === 'done' || event.type === 'error')
  assert.is(done.type, 'done', JSON.stringify(done.content))
  const report = path.join(world.root, 'docs', 'REPORT.md')
  assert.ok(existsSync(report))
  assert.match(await readFile(report, 'utf8'), /^# /)
  assert.match(await run(commands.runEvents, { session_id }), new RegExp(`Report: ${report}`))
})

async function rejects(work: Promise<unknown>, text: RegExp): Promise<void> {
  const error = await work.then(
    () => undefined,
    (error: Error) => error,
  )
  assert.match(error?.message ?? 'nothing was thrown', text)
}

test('texts of agents are wrapped on a terminal as they arrive; code stays whole', () => {
  const pieces: string[] = []
  const shown = () => pieces.join('')
  const out = {
    color: (_: string, text: string) => text,
    text: (text: string) => void pieces.push(text),
    width: 40,
    wrap: wrapSentence,
  }
  const lines = new EventLines('ses_1', { out } as never, 'elsewhere', true)
  const say = (text: string, type = 'agent_message') =>
    lines.show({ type, timestamp: '2026-01-01T12:00:00.000Z', content: { text } } as never)
  const code = `    ${'code '.repeat(20)}end`
  say('The agent looked at the files of this fol')
  say('der and found that three of them need a change')
  assert.is(shown().replace(/^\S+/, ''), '  The agent looked at the files\n          of this folder and found that\n')
  say('.\n\n- an item of a list that is longer than')
  say(` a row, and goes on\n\`\`\`\n${code}\n\`\`\`\nTo go on: svc session attach ses_0123456789abcdef --json\n`)
  say('a thought', 'thought')
  lines.end()
  assert.equal(
    shown()
      .split('\n')
      .map(line => line.replace(/^\d\d:\d\d:\d\d/, '00:00:00')),
    [
      '00:00:00  The agent looked at the files',
      '          of this folder and found that',
      '          three of them need a change.',
      '',
      '          - an item of a list that is',
      '            longer than a row, and goes',
      '            on',
      '          ```',
      `          ${code}`,
      '          ```',
      '          To go on:',
      '          svc session attach ses_0123456789abcdef --json',
      '00:00:00  a thought',
      '',
    ],
  )
})

test.run()
