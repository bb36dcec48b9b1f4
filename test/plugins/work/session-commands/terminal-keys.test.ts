// proof, timeout: 240s: the built program on real terminals
// biome-ignore-all lint/suspicious/noControlCharactersInRegex: what a terminal gets is looked at
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import { shellsOf } from '../../../fixtures/shell.js'
import type { Reply } from '../../../harness/kernel.js'

let world: World

test.before(async () => {
  world = await openWorld({ listen: ['socket'] })
  await world.agent('asks', { permissions: 'approve-reads', flags: '--modes=default,plan' })
  mkdirSync(path.join(world.root, 'src'))
  for (const name of ['main.ts', 'other.ts']) writeFileSync(path.join(world.root, 'src', name), 'export {}\n')
})
test.after(() => world.close())

const Shell = shellsOf(() => world.home)
const update = (fields: object) => `update ${JSON.stringify(fields)}`
const ask = (title: string) =>
  `ask ${JSON.stringify({
    toolCall: { toolCallId: title, title, kind: 'delete', rawInput: {} },
    options: ['allow_once', 'reject_once'].map(one => ({ optionId: one, name: one, kind: one })),
  })}`
const prompt = (at: string, text: string) => world.kernel.request('POST', `${at}/prompt`, { text })
const prompts = async (at: string) =>
  (await world.events(at)).filter(({ type }) => type === 'user_message').map(({ content }) => content.text)
/** An attached terminal at which one can type. */
async function attached(id: string, env: Readonly<Record<string, string>> = {}) {
  const shell = Shell.terminalIn(env, 'session', 'attach', id)
  await shell.shows(/Ctrl-D leaves/)
  return shell
}

test('a paste of three lines is one prompt', async () => {
  const { id, at } = await world.session('asks')
  const shell = await attached(id)
  shell.type('\x1b[200~say one\rsay two\rsay three\x1b[201~')
  shell.type('\r')
  await shell.shows(/one.*two.*three.*— done/s)
  assert.equal(await prompts(at), ['say one\nsay two\nsay three'])
  shell.type('\x04')
  assert.is(await shell.ended, 0, shell.text)
})

test('one key answers; "instead" refuses with an instruction for the agent', async () => {
  const { id, at } = await world.session('asks')
  const shell = await attached(id)
  await prompt(at, ask('one'))
  await shell.answers(/delete: one.*instead: /s, 'y')
  await shell.shows(/Allowed.*— done/s)
  const result = { toolCallId: 'two', status: 'failed' }
  await prompt(at, `${ask('two')}\n${update({ sessionUpdate: 'tool_call_update', ...result })}\nhang`)
  await shell.answers(/delete: two.*instead: /s, 'i')
  await shell.answers(/Do this instead/, 'say something else\r')
  await shell.shows(/Rejected/)
  await world.until(at, event => event.type === 'agent_message' && event.content.text === 'something else\n')
  await shell.shows(/something else.*— done/s)
  shell.type('\x04')
  assert.is(await shell.ended, 0, shell.text)
})

test('keys of a prompt being typed answer no question that appears meanwhile', async () => {
  const { id, at } = await world.session('asks')
  const shell = await attached(id)
  shell.type('say y')
  await shell.shows(/say y/)
  await prompt(at, ask('late'))
  await shell.shows(/delete: late.*instead: /s)
  for (const key of 'yay') shell.type(key)
  await new Promise(resolve => setTimeout(resolve, 1500))
  shell.type('n')
  await shell.shows(/Rejected/)
  await shell.shows(/say yyay/)
  shell.type('\r')
  await eventually(async () => (await prompts(at)).includes('say yyay'), 'the prompt')
  shell.type('\x04')
  assert.is(await shell.ended, 0, shell.text)
})

test('a tool is shown once, and Ctrl-O shows its output', async () => {
  const { id, at } = await world.session('asks')
  const shell = await attached(id)
  const call = { toolCallId: 'c', title: 'seq 1 50', kind: 'execute' }
  const output = `${Array.from({ length: 50 }, (_, line) => `row ${line + 1}`).join('\n')}\x1b]0;evil\x07`
  const lines = [
    update({ sessionUpdate: 'tool_call', ...call, status: 'pending' }),
    update({ sessionUpdate: 'tool_call_update', ...call, title: 'seq', status: 'in_progress' }),
    update({
      sessionUpdate: 'tool_call_update',
      ...call,
      status: 'completed',
      content: [{ type: 'content', content: { type: 'text', text: `\`\`\`\n${output}\n\`\`\`` } }],
    }),
  ]
  await prompt(at, lines.join('\n'))
  await shell.shows(/• seq 1 50 \[execute\] ✓ · 50 lines, Ctrl-O.*— done/s)
  assert.not.match(shell.text, / {4}row 7/)
  shell.type('\x0f')
  await shell.shows(/ {4}row 1\r\n.* {4}row 50/s)
  assert.not.match(shell.text, /\x1b\]0;evil/)
  shell.type('\x04')
  assert.is(await shell.ended, 0, shell.text)
  const piped = Shell.pipe('session', 'prompt', id, lines.join('\n'))
  assert.is(await piped.ended, 0)
  assert.is(piped.text.match(/seq 1 50/g)?.length, 1, piped.text)
})

test('Ctrl-O shows the output of a terminal: a released one of the session and one of the agent', async () => {
  await world.agent('free')
  const { id, at } = await world.session('free')
  const shell = await attached(id)
  const call = { toolCallId: 't', title: 'rows', kind: 'execute' }
  const start = JSON.stringify({ command: 'sh', args: ['-c', 'seq 1 7 | sed "s/^/near row /"; exit 3'] })
  const ended = (terminalId: string, more: object = {}) => ({
    ...call,
    status: 'failed',
    content: [{ type: 'terminal', terminalId }],
    ...more,
  })
  const own = 'far row 1\nfar row 2\n'
  const steps = [
    `call terminal/create ${start}`,
    'terminal terminal/wait_for_exit',
    update({ sessionUpdate: 'tool_call', ...call, status: 'in_progress' }),
    'terminal terminal/release',
    update({ sessionUpdate: 'tool_call_update', ...ended('TERMINAL') }),
    update({
      sessionUpdate: 'tool_call',
      toolCallId: 'f',
      title: 'far',
      kind: 'execute',
      status: 'in_progress',
      content: [{ type: 'terminal', terminalId: 'own' }],
    }),
    ...[own.slice(0, 12), own.slice(12)].map(data =>
      update({
        sessionUpdate: 'tool_call_update',
        toolCallId: 'f',
        _meta: { terminal_output_delta: { terminal_id: 'own', data } },
      }),
    ),
    update({
      sessionUpdate: 'tool_call_update',
      toolCallId: 'f',
      status: 'completed',
      _meta: { terminal_exit: { terminal_id: 'own', exit_code: 0 } },
    }),
  ]
  await prompt(at, steps.join('\n'))
  await shell.shows(/rows \[execute\] ✗.*7 lines, Ctrl-O/s)
  await shell.shows(/far \[execute\] ✓ · 2 lines, Ctrl-O.*— done/s)
  shell.type('\x0f')
  await shell.shows(/ {4}far row 1\r\n.* {4}far row 2/s)
  const results = (await world.events(at)).filter(({ type }) => type === 'tool_result')
  assert.match(results[0]?.content.content[0].output, /near row 7/)
  assert.is(results[0]?.content.content[0].exitCode, 3)
  shell.type('\x04')
  assert.is(await shell.ended, 0, shell.text)
})

test('Escape cancels the running turn', async () => {
  const { id, at } = await world.session('asks')
  const shell = await attached(id)
  await prompt(at, 'say begun\nhang')
  await shell.shows(/begun/)
  shell.type('\x1b')
  await shell.shows(/Canceling….*— canceled/s)
  shell.type('\x04')
  assert.is(await shell.ended, 0, shell.text)
})

test('/help lists keys and agent commands; /mode, /queue and /steer have their effect', async () => {
  const { id, at } = await world.session('asks')
  const commands = [{ name: 'compact', description: 'Shorten the context' }]
  await world.prompt(at, update({ sessionUpdate: 'available_commands_update', availableCommands: commands }))
  const shell = await attached(id)
  shell.type('/help\r')
  await shell.shows(/Ctrl-G .*\/queue.*Commands of the agent:.*\/compact +Shorten the context/s)
  const [, help = ''] = /(Enter {2}[\s\S]*)$/.exec(shell.text.replace(/\x1b\[[\d;?]*[A-Za-z]/g, '')) ?? []
  assert.ok(help.split('\r\n').length > 20, help)
  for (const line of help.split('\r\n')) assert.ok(line.length <= 80, line)
  shell.type('/mode plan\r')
  await shell.shows(/mode of the agent: plan/)
  shell.type('/mode foo\r')
  await shell.shows(/there is no mode foo.*modes of the agent: default, plan/s)
  const gate = world.gate()
  const call = { toolCallId: 'g', title: 'wait', kind: 'execute' }
  const ends = update({ sessionUpdate: 'tool_call', ...call, status: 'completed' })
  await prompt(at, `say begun\n${gate.line}\n${ends}\nhang`)
  await shell.shows(/begun/)
  shell.type('say later\r')
  await shell.shows(/Queued \(1st\)/)
  shell.type('/queue\r')
  await shell.shows(/1 {2}say later/)
  shell.type('/queue drop 1\r')
  await shell.shows(/removed: say later/)
  shell.type('/steer say steered\r')
  await shell.shows(/next tool result/)
  await gate.open()
  await world.until(at, event => event.type === 'agent_message' && event.content.text === 'steered\n')
  await shell.shows(/steered.*— done/s)
  assert.not.ok((await prompts(at)).includes('say later'))
  shell.type('\x04')
  assert.is(await shell.ended, 0, shell.text)
})

test('Tab completes a workspace file, and Ctrl-G opens the editor', async () => {
  const { id, at } = await world.session('asks')
  const editor = path.join(world.root, 'editor.sh')
  writeFileSync(editor, '#!/bin/sh\nprintf "\\nsay from the editor\\n" >> "$1"\n')
  chmodSync(editor, 0o755)
  const shell = await attached(id, { EDITOR: editor })
  shell.type('say @src/ma\t')
  await shell.shows(/@src\/main\.ts/)
  shell.type('\x07')
  await shell.shows(/say from the editor/)
  shell.type('\r')
  await eventually(async () => (await prompts(at)).length === 1, 'the prompt')
  assert.equal(await prompts(at), ['say @src/main.ts \nsay from the editor'])
  shell.type('\x04')
  assert.is(await shell.ended, 0, shell.text)
})

test('a second terminal takes over the session, and the first one leaves', async () => {
  const { id } = await world.session('asks')
  const first = await attached(id)
  const second = Shell.terminal('session', 'attach', id)
  await second.shows(/terminal-\w+ \(.*@.*\) is attached|is attached to this session/)
  await second.answers(/Take it over\? That terminal is detached\. \[y\/N\]/, 'y\r')
  await second.shows(/Ctrl-D leaves/)
  first.type('say lost\r')
  assert.is(await first.ended, 10, first.text)
  assert.match(first.text, /Another terminal is attached now/)
  second.type('\x04')
  assert.is(await second.ended, 0, second.text)
})

test('attach without a terminal ends with its input, or with the turn of the input', async () => {
  const { id, at } = await world.session('asks')
  await world.prompt(at, 'say before')
  const empty = Shell.pipe('session', 'attach', id)
  assert.is(await empty.ended, 0, empty.text)
  assert.match(empty.text, /before/)
  const fed = Shell.fed('say one\nsay two\n', 'session', 'attach', id)
  assert.is(await fed.ended, 0, fed.text)
  assert.match(fed.text, /one\ntwo\n— done/)
  assert.equal((await prompts(at)).at(-1), 'say one\nsay two')
  const failed = Shell.fed('error -32000 no more credit', 'session', 'attach', id)
  assert.is(await failed.ended, 1, failed.text)
})

test('a run reads standard input, prints only the answer, and fails when the agent did not finish', async () => {
  const run = (input: string, ...args: string[]) =>
    Shell.fed(input, 'run', '--workspace', world.root, '--agent', 'asks', ...args)
  const call = update({ sessionUpdate: 'tool_call', toolCallId: 'c', title: 'ls', kind: 'read', status: 'completed' })
  const printed = run('', '--print', `say working on it\n${call}\nsay the answer`)
  assert.is(await printed.ended, 0, printed.text)
  assert.is(printed.text, 'the answer\n')
  const beside = run('from\nthe pipe\n', '--print', 'echo')
  assert.is(await beside.ended, 0, beside.text)
  assert.match(beside.text, 'echo\\n\\n<stdin>\\nfrom\\nthe pipe\\n</stdin>')
  for (const reason of ['max_tokens', 'refusal', 'max_turn_requests']) {
    const cut = run('', '--print', `say half\nstop-reason ${reason}`)
    assert.is(await cut.ended, 1, cut.text)
    assert.match(cut.text, /half\n.*stopped before it had finished/s)
  }
  const { id } = await world.session('asks')
  assert.is(await Shell.pipe('session', 'prompt', id, 'say half\nstop-reason max_tokens').ended, 1)
})

test('pending questions are shown and answered by number', async () => {
  const { at } = await world.session('asks')
  await prompt(at, ask('numbered'))
  await world.until(at, event => event.type === 'permission')
  const listed = Shell.pipe('inbox')
  assert.is(await listed.ended, 0)
  assert.match(listed.text, /^NO +SESSION/)
  const [, number = ''] = /^(\d+) +ses_/m.exec(listed.text) ?? []
  const unseen = Shell.pipe('inbox', number)
  assert.is(await unseen.ended, 0, unseen.text)
  assert.match(unseen.text, /delete: numbered[\s\S]*answer: svc session approve/)
  const shell = Shell.terminal('inbox', number)
  await shell.answers(/delete: numbered.*Enter leaves it: /s, 'n\r')
  assert.is(await shell.ended, 0, shell.text)
  const { content } = await world.until(at, (event: Reply) => event.content.decision !== undefined)
  assert.is(content.decision, 'reject-once')
  assert.match(agentText(await world.events(at)), /reject_once/)
  assert.is(await Shell.pipe('inbox', '99').ended, 4)
})

test.run()
