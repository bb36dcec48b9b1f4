import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { refusalOf, wordsOf } from '../../../../plugins/reach/network/wakes/restraint.js'
import { label } from '../../../fixtures/cases.js'
import { agentText } from '../../../fixtures/session-world.js'
import { openScene } from './scene.js'

const program = '/opt/own place/bin/svc'
const command = (line: string) => refusalOf({ kind: 'execute', command: line, program }) === undefined
const argv = (...words: string[]) => refusalOf({ kind: 'execute', argv: words, program }) === undefined

const ALLOWED = [
  "svc network send team 'all is well; $(really)' --reply-to msg_1",
  'svc network inbox ses_1',
  'svc network threads messages team "thread_1" -o json',
  'svc network channels list',
  'svc ch reply "done, thanks"',
  "  svc ch recv 'te'am\t--wait",
  'svc ch reply msg_1 "it is done!" --kind result',
  "svc ch reply msg_1 'it'\\''s done'",
  'svc ch reply msg_1 it\\ is\\ done',
  '"$SVC_BIN" ch list',
  '$SVC_BIN ch list',
  `"$\{SVC_BIN}" network inbox`,
  "'/opt/own place/bin/svc' network inbox",
  `bash -lc "svc network send team --kind trace --body '{\\"state\\":\\"working\\"}'"`,
  `/bin/sh -l -c 'svc ch list'`,
  `/usr/bin/bash -c "bash -c '\\"\\$SVC_BIN\\" ch list'"`,
]
const REFUSED = [
  '',
  'rm -rf .',
  'svc task create',
  'svc network channels create other',
  'svc network channels',
  'svc network coordination enable',
  'svc network join nats://example.com',
  'svc network send team hi; rm -rf .',
  'svc network send team $(cat secret)',
  'svc network send team "$HOME"',
  'svc network send team `id`',
  'svc network send team hi > file',
  'svc network send team hi\nrm -rf .',
  'svc network send team hi & id',
  'svc network send team *',
  'PATH=/tmp svc network inbox',
  './svc network inbox',
  '/tmp/svc network inbox',
  'svc network inbox --endpoint=http://example.com',
  'svc network inbox --home /tmp/other',
  "svc network send team 'open",
  'svc constructor call',
  'svc network threads promote team thread_1 msg_1',
  'svc ch reply msg_1 "it is !!"x',
  'svc ch reply msg_1 "!rm"',
  'svc ch list \\\n; id',
  '"$OTHER" ch list',
  '$SVC_BIN_OTHER ch list',
  'echo "$SVC_BIN" ch list',
  '"$SVC_BIN ch" list',
  'svc ch reply msg_1 "$SVC_BIN"',
  'bash -lc "svc ch list; id"',
  `bash -lc 'svc ch list' svc`,
  `bash -c 'bash -c "bash -c \\"svc ch list\\""'`,
  'bash -ic "svc ch list"',
  'bash --rcfile /tmp/x -c "svc ch list"',
  '/tmp/bash -c "svc ch list"',
  'bash',
  'bash -lc',
  'env svc ch list',
]

for (const line of ALLOWED) test(`a turn started by another agent runs: ${label(line)}`, () => assert.ok(command(line)))

for (const line of REFUSED)
  test(`a turn started by another agent does not run: ${label(line)}`, () => assert.not.ok(command(line)))

test('a turn started by another agent runs only network commands by argv, and reads', () => {
  assert.ok(argv('svc', 'network', 'send', 'team', '; rm -rf . $(id)'))
  assert.ok(argv('/bin/bash', '-lc', `"$SVC_BIN" network send team 'all is well'`))
  assert.ok(argv(program, 'ch', 'list'))
  assert.not.ok(argv('/bin/bash', '-lc', 'svc ch list && id'))
  assert.not.ok(argv('/bin/bash', '-lc', '"$SVC_BIN"', 'ch', 'list'))
  assert.ok(refusalOf({ kind: 'execute', command: '"$SVC_BIN" ch list' }), 'a program that is not known')
  assert.ok(refusalOf({ kind: 'execute', argv: ['svc', 'network', 'inbox'], setsEnvironment: true }))
  assert.not.ok(argv('sh', '-c', 'PATH=/tmp svc network inbox'))
  assert.ok(refusalOf({ kind: 'execute', argv: ['svc network inbox; id'] }))
  for (const kind of ['edit', 'delete', 'move']) assert.ok(refusalOf({ kind }))
  for (const kind of ['read', 'search', 'think', 'fetch', 'other']) assert.is(refusalOf({ kind }), undefined)
  assert.equal(wordsOf(`a 'b c'"d"e ""`), ['a', 'b cde', ''])
})

test('an approve-all agent changes nothing in a turn started by a message, and anything in its own', async () => {
  const { root, say, settled, at, events, prompt, close } = await openScene()
  try {
    const file = path.join(root, 'note.txt')
    writeFileSync(path.join(root, 'read.txt'), 'to be read')
    const call = (method: string, params: object) => `call ${method} ${JSON.stringify(params)}`
    const asking = (kind: string, title: string, rawInput: object) => {
      const options = ['allow_once', 'reject_once'].map(kind => ({ kind, name: kind, optionId: kind }))
      return `ask ${JSON.stringify({ toolCall: { toolCallId: title, kind, title, rawInput }, options })}`
    }
    const lines = [
      call('fs/write_text_file', { path: file, content: 'changed' }),
      call('terminal/create', { command: 'touch', args: [file] }),
      call('terminal/create', {
        command: 'svc',
        args: ['network', 'inbox'],
        env: [{ name: 'NODE_OPTIONS', value: '-r x' }],
      }),
      call('fs/read_text_file', { path: path.join(root, 'read.txt') }),
      asking('edit', 'change', {}),
      asking('execute', 'touch', { command: `touch ${file}` }),
      asking('execute', 'answer', { command: "svc network send team 'fine'" }),
    ]
    await say('ada', lines.join('\n'), { to: 'bob' })
    await settled('bob', 1)
    const reports = agentText(await events(at('bob')))
      .split('\n')
      .filter(line => /^(answer|fs|terminal)/.test(line))
    assert.equal(
      reports.map(line => (line.includes('error permission denied') ? 'denied' : line.replace(/^.*?: /, ''))),
      ['denied', 'denied', 'denied', '{"content":"to be read"}', 'reject_once', 'reject_once', 'allow_once'],
    )
    assert.not.ok(existsSync(file))
    await prompt(at('bob'), lines[0] as string)
    assert.ok(existsSync(file))
  } finally {
    await close()
  }
})

test('an approve-all agent is kept asking in a turn started by a message, and not in its own', async () => {
  const { say, settled, at, events, prompt, close } = await openScene({ flags: '--modes=default,bypassPermissions' })
  try {
    assert.is(agentText(await prompt(at('bob'), 'mode')), 'mode bypassPermissions\n')
    for (const wake of [1, 2]) {
      await say('ada', 'mode', { to: 'bob' })
      await settled('bob', wake)
      const modes = agentText(await events(at('bob'))).match(/mode \w+/g) ?? []
      assert.equal(modes.slice(-1), ['mode default'])
    }
    assert.is(agentText(await prompt(at('bob'), 'mode')), 'mode bypassPermissions\n')
  } finally {
    await close()
  }
})

test('an agent that cannot be kept asking is woken, and its session reports the missing restraint', async () => {
  const { say, settled, at, events, row, peer, close } = await openScene({
    flags: '--modes=bypassPermissions,acceptEdits',
  })
  try {
    const done = { sessionUpdate: 'tool_call', toolCallId: 'u1', title: 'Edit a.js', kind: 'edit', status: 'completed' }
    await say('ada', `update ${JSON.stringify(done)}\nsay afterwards`, { to: 'bob' })
    await settled('bob', 1)
    const entries = await events(at('bob'))
    const warnings = entries.filter(({ type }) => type === 'runtime_warning').map(({ content }) => content)
    const text = (warning: string) => warnings.find(content => content.warning === warning)?.text
    assert.match(
      text('permission_never_asked'),
      /restraint of turns that other agents begin does not restrict.*no mode in which it asks/,
    )
    assert.match(text('permission_not_asked'), /"Edit a.js" without asking: the restraint of turns/)
    assert.match(agentText(entries), /afterwards/)
    assert.is((await row(peer('bob').session_id)).state, 'active')
  } finally {
    await close()
  }
})

test('reply commands of agents need no permission, and a reject-all mode still rejects them', async () => {
  for (const [permissions, answers] of [
    ['approve-reads', ['allow_once', 'reject_once']],
    ['deny-all', ['reject_once', 'reject_once']],
  ] as const) {
    const { say, settled, at, events, close } = await openScene({ permissions })
    try {
      const options = ['allow_once', 'reject_once'].map(kind => ({ kind, name: kind, optionId: kind }))
      const asks = ["svc ch send team 'fine'", 'rm -rf .'].map(
        command =>
          `ask ${JSON.stringify({ toolCall: { toolCallId: command, kind: 'execute', title: command, rawInput: { command } }, options })}`,
      )
      await say('ada', asks.join('\n'), { to: 'bob' })
      await settled('bob', 1)
      assert.equal(agentText(await events(at('bob'))).match(/(allow|reject)_once/g), [...answers], permissions)
    } finally {
      await close()
    }
  }
})

test.run()
