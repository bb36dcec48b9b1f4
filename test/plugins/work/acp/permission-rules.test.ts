import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as rules from '../../../../plugins/work/acp/requests/permission-rules.js'

const option = (kind: string, optionId = kind) => ({ optionId, name: kind, kind })

test('options are chosen by kind, never by position', () => {
  const all = [
    option('reject_always'),
    option('allow_always', 'a1'),
    option('allow_always', 'a2'),
    option('reject_once'),
    option('allow_once', 'o1'),
    option('allow_once', 'o2'),
  ]
  assert.is(rules.optionFor(all, 'allow-once')?.optionId, 'o1')
  assert.is(rules.optionFor(all, 'allow-always')?.optionId, 'a1')
  assert.is(rules.optionFor(all, 'reject-once')?.optionId, 'reject_once')
  assert.is(rules.optionFor([option('allow_once'), option('reject_once')], 'allow-always')?.optionId, 'allow_once')
  assert.is(rules.optionFor([option('allow_always')], 'allow-once'), undefined, 'once never becomes always')
  assert.is(rules.optionFor([option('reject_always')], 'reject-once')?.optionId, 'reject_always')
  assert.is(rules.automaticAllow([option('reject_once'), option('allow_always')])?.optionId, 'allow_always')
  assert.is(rules.automaticAllow([option('reject_once')]), undefined)
})

for (const [mode, kind, verdict] of [
  ['approve-all', 'execute', 'allow'],
  ['approve-reads', 'read', 'allow'],
  ['approve-reads', 'search', 'allow'],
  ['approve-reads', 'edit', 'ask'],
  ['approve-reads', 'fetch', 'ask'],
  ['approve-reads', 'other', 'ask'],
  ['deny-all', 'read', 'reject'],
] as const)
  test(`${mode} gives ${verdict} to ${kind}`, () => assert.is(rules.decideByMode(mode, kind), verdict))

for (const [mode, kind, verdict] of [
  ['approve-all', 'read', 'allow'],
  ['approve-all', 'edit', 'ask'],
  ['approve-all', 'execute', 'ask'],
  ['approve-reads', 'read', 'ask'],
  ['deny-all', 'read', 'reject'],
] as const)
  test(`${mode} gives ${verdict} to ${kind} outside the workspace`, () =>
    assert.is(rules.decideByMode(mode, kind, true), verdict))

test('an answered request covers the same action', () => {
  const call = (fields: object) => rules.wantedAction({ toolCallId: 'x', rawInput: undefined, ...fields } as never)
  const git = call({ title: 'git', rawInput: { command: 'git', args: ['log', '-n', '1'] } })
  assert.is(git.kind, 'execute', 'a command without a kind is one all the same')
  assert.ok(rules.coversCommand(git, ['git', 'log', '-n', '1']))
  assert.not(rules.coversCommand(git, ['git', 'log']))
  assert.not(rules.coversCommand(git, ['git', 'log', '-n', '1', '--exec=x']))
  const shell = call({ kind: 'execute', rawInput: { command: 'ls | wc' } })
  assert.ok(rules.coversCommand(shell, ['bash', '-lc', 'ls | wc']))
  assert.not(rules.coversCommand(shell, ['bash', '-lc', 'ls | wc; rm x']))
  for (const line of ['cd /w && ls | wc', "cd '/w' && ls | wc"]) {
    assert.ok(rules.coversCommand(shell, ['bash', '-c', line], '/w'), line)
    assert.not(rules.coversCommand(shell, ['bash', '-c', line], '/w/other'), line)
    assert.not(rules.coversCommand(shell, ['bash', '-c', `${line}; rm x`], '/w'), line)
    assert.not(rules.coversCommand(shell, ['bash', '-c', line]), line)
  }
  assert.ok(rules.coversCommand(shell, ['sh', '-c', "cd '/w'\\''s; rm x' && ls | wc"], "/w's; rm x"))
  assert.ok(rules.coversCommand(call({ kind: 'execute', rawInput: { cmd: ['a', 'b'] } }), ['a', 'b']))
  assert.not(rules.coversCommand(call({ kind: 'execute' }), ['anything']), 'one that names no command covers none')
  const text = (text: string) => [{ type: 'content', content: { type: 'text', text } }]
  const written = call({ kind: 'execute', title: 'Bash', content: text('{"command":"rm -rf /tmp/x"}') })
  assert.equal(
    [written.written, written.command],
    ['rm -rf /tmp/x', undefined],
    'the input stands in the content alone',
  )
  assert.is(call({ kind: 'execute', content: text('{"command":') }).written, undefined)
  assert.is(call({ kind: 'edit', content: text('{"command":"view"}') }).written, undefined)
  assert.not(rules.coversCommand(call({ kind: 'edit' }), ['anything']))
  assert.ok(rules.coversCommand(written, ['rm -rf /tmp/x']))
  const write = (action: ReturnType<typeof call>, places: readonly string[], more: object = {}, isLasting = false) =>
    rules.coversWrite(action, places, isLasting, { target: '/w/a', content: 'x', before: undefined, ...more })
  assert.not(write(call({ kind: 'edit' }), []), 'one that names no file covers none')
  assert.ok(write(call({ kind: 'edit' }), ['/w/a']))
  assert.not(write(call({ kind: 'edit' }), ['/w/b']))
  assert.not(write(git, []))
  const edit = (oldText: string | null, newText: string) =>
    call({ kind: 'edit', content: [{ type: 'diff', path: 'a', oldText, newText }] })
  assert.ok(write(edit(null, 'x'), ['/w/a']))
  assert.not(write(edit(null, 'y'), ['/w/a']), 'another text than the one that was shown')
  assert.ok(write(edit(null, 'y'), ['/w/a'], {}, true), 'for the session')
  assert.ok(write(edit('b', 'B'), ['/w/a'], { before: 'a b c b', content: 'a B c b' }))
  assert.ok(write(edit('b', 'B'), ['/w/a'], { before: 'a b c b', content: 'a B c B' }))
  assert.not(write(edit('b', 'B'), ['/w/a'], { before: 'a b c b', content: 'a B c evil' }))
})

test.run()
