import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { refusalOf, wordsOf } from '../../../../plugins/reach/network/wakes/restraint.js'
import { said } from '../../../fixtures/session-world.js'
import { openScene } from './scene.js'

const command = (line: string) => refusalOf({ kind: 'execute', command: line }) === undefined

test('a turn that another agent began runs only plain commands by which agents talk', () => {
  const allowed = [
    "svc network send team 'all is well; $(really)' --reply-to msg_1",
    'svc network inbox ses_1',
    'svc network threads messages team "thread_1" -o json',
    'svc network channels list',
    'svc ch reply "done, thanks"',
    "  svc ch recv 'te'am\t--wait",
  ]
  for (const line of allowed) assert.ok(command(line), line)
  const refused = [
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
  ]
  for (const line of refused) assert.not.ok(command(line), line)
  assert.is(refusalOf({ kind: 'execute', argv: ['svc', 'network', 'send', 'team', '; rm -rf . $(id)'] }), undefined)
  assert.ok(refusalOf({ kind: 'execute', argv: ['svc', 'network', 'inbox'], setsEnvironment: true }))
  assert.ok(refusalOf({ kind: 'execute', argv: ['sh', '-c', 'svc network inbox'] }))
  assert.ok(refusalOf({ kind: 'execute', argv: ['svc network inbox; id'] }))
  for (const kind of ['edit', 'delete', 'move']) assert.ok(refusalOf({ kind }))
  for (const kind of ['read', 'search', 'think', 'fetch', 'other']) assert.is(refusalOf({ kind }), undefined)
  assert.equal(wordsOf(`a 'b c'"d"e ""`), ['a', 'b cde', ''])
})

test('an agent that may do all changes nothing in a turn that a message began, and what it likes in its own', async () => {
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
    const told = said(await events(at('bob')))
      .split('\n')
      .filter(line => /^(answer|fs|terminal)/.test(line))
    assert.equal(
      told.map(line => (line.includes('error permission denied') ? 'denied' : line.replace(/^.*?: /, ''))),
      ['denied', 'denied', 'denied', '{"content":"to be read"}', 'reject_once', 'reject_once', 'allow_once'],
    )
    assert.not.ok(existsSync(file))
    await prompt(at('bob'), lines[0] as string)
    assert.ok(existsSync(file))
  } finally {
    await close()
  }
})

test.run()
