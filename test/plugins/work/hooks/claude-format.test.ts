import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { claudeGlobs, claudeInput, claudePatch, claudeTest } from '../../../../plugins/work/hooks/claude-format.js'
import { specOf } from '../../../../plugins/work/hooks/hook-kind.js'
import { agentText } from '../../../fixtures/session-world.js'
import { openScene, type Scene } from './scene.js'

/** As the documentation of Claude Code has them. */
const GUARD = `#!/usr/bin/env python3
import json, re, sys
data = json.load(sys.stdin)
open(sys.argv[1], "a").write(json.dumps(data) + "\\n")
if data["hook_event_name"] == "PreToolUse" and data["tool_name"] == "Bash":
    if re.search(r"\\brm -rf\\b", data["tool_input"].get("command", "")):
        print("Blocked: rm -rf is not allowed here", file=sys.stderr)
        sys.exit(2)
sys.exit(0)
`
const CONTEXT = `#!/usr/bin/env python3
import json, sys
data = json.load(sys.stdin)
if "password" in data["prompt"]:
    print(json.dumps({"decision": "block", "reason": "no secrets in prompts"}))
else:
    print("Today is a holiday.")
`
const DECIDES = `#!/bin/sh
cat >/dev/null
echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not in this project"}}'
`

let scene: Scene
let heard: string
const lines = async () =>
  (await readFile(heard, 'utf8'))
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))

test.before(async () => {
  scene = await openScene()
  heard = path.join(scene.home, 'heard.jsonl')
  const guard = await scene.program('guard.py', GUARD)
  const context = await scene.program('context.py', CONTEXT)
  const decides = await scene.program('decides.sh', DECIDES)
  const claude = (event: string, command: string, args: readonly string[], matcher?: string, more = {}) => ({
    ...{ event, command, args, format: 'claude', mode: 'sync', timeout: '30s', ...more },
    ...(matcher !== undefined && { metadata: { claude_matcher: matcher } }),
  })
  await scene.configure({
    guard: claude('permission.request', 'sh', ['-c', `'${guard}' '${heard}'`], 'Bash|Edit'),
    context: claude('input.pre_submit', context, []),
    fetches: claude('permission.request', decides, [], 'WebFetch'),
    elsewhere: {
      ...claude('permission.request', decides, []),
      metadata: { claude_project: '/somewhere/else' },
    },
  })
  await scene.agent('free')
})
test.after(() => scene.close())

const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, kind, name: kind }))
const ask = (kind: string, title: string) =>
  `ask ${JSON.stringify({ toolCall: { toolCallId: title, kind, title, rawInput: { command: title } }, options })}`

test('exit status 2 blocks with standard error as the reason, for the tools of its matcher', async () => {
  const { id, at } = await scene.session('free')
  const events = await scene.prompt(at, [ask('execute', 'rm -rf /'), ask('execute', 'ls'), ask('read', 'x')].join('\n'))
  assert.is(agentText(events), 'answer: reject_once\nanswer: allow_once\nanswer: allow_once\n')
  const runs = await scene.runs(id, '&event=permission.request')
  assert.equal(
    runs.map(({ hook_name, outcome }) => [hook_name, outcome]),
    [
      ['guard', 'denied'],
      ['guard', 'applied'],
    ],
  )
  const [resolved] = events.filter(({ type, content }) => type === 'permission' && content.status === 'resolved')
  assert.match(resolved!.content.note, 'Blocked: rm -rf is not allowed here (hook guard)')
  const [first] = await lines()
  assert.equal(first, {
    session_id: id,
    transcript_path: '',
    cwd: scene.root,
    permission_mode: 'default',
    hook_event_name: 'PreToolUse',
    tool_name: 'Bash',
    tool_input: { command: 'rm -rf /', description: 'rm -rf /' },
  })
})

test('a JSON decision denies; the output of a prompt hook becomes context', async () => {
  const { id, at } = await scene.session('free')
  const events = await scene.prompt(at, ask('fetch', 'https://example.org'))
  assert.is(agentText(events), 'answer: reject_once\n')
  await scene.prompt(at, 'echo hello')
  const runs = await scene.runs(id, '&event=input.pre_submit')
  assert.equal(runs.at(-1).patch_applied, { context_blocks: ['Today is a holiday.'] })
  const refused = await scene.kernel.request('POST', `${at}/prompt`, { text: 'my password is x' })
  assert.ok(refused.status >= 400)
  assert.match(refused.body.error, 'no secrets in prompts')
})

test('standard output: every decision of Claude Code is supported', () => {
  const patch = (event: Parameters<typeof claudePatch>[0], output: unknown, payload = {}) =>
    claudePatch(event, payload, typeof output === 'string' ? output : JSON.stringify(output))
  assert.is(patch('permission.request', ''), undefined)
  assert.is(patch('permission.request', 'some words'), undefined)
  assert.is(patch('permission.request', { decision: 'approve', reason: 'fine' }), undefined)
  assert.is(patch('permission.request', { hookSpecificOutput: { permissionDecision: 'ask' } }), undefined)
  assert.equal(patch('permission.request', { decision: 'block', reason: 'no' }), { deny: 'no' })
  assert.equal(patch('permission.request', { continue: false, stopReason: 'stop it' }), { deny: 'stop it' })
  assert.equal(patch('permission.request', { hookSpecificOutput: { decision: { behavior: 'deny' } } }), { deny: true })
  const context = { hookSpecificOutput: { hookEventName: 'UserPromptSubmit', additionalContext: 'more' } }
  assert.equal(patch('input.pre_submit', context, { context_blocks: ['a'] }), { context_blocks: ['a', 'more'] })
  const changed = { hookSpecificOutput: { permissionDecision: 'allow', updatedInput: { command: 'ls' } } }
  assert.equal(patch('tool.pre_call', changed), { input: { command: 'sh', args: ['-c', 'ls'] } })
  assert.throws(() => patch('permission.request', changed), 'only possible for a command of tool.pre_call')
  assert.throws(() => patch('turn.end', { decision: 'block', reason: 'go on' }), 'turn.end has happened already')
  assert.is(patch('permission.request', '{"decision": broken'), undefined)
})

test('matchers: names joined by |, with .* for anything; other regular expressions are refused', () => {
  const matches = (matcher: string, tool: object) => claudeTest({ claude_matcher: matcher })(tool as never)
  assert.ok(matches('', { tool_name: 'execute' }))
  assert.ok(matches('*', { tool_name: 'execute' }))
  assert.ok(matches('Edit|Write', { tool_name: 'edit' }))
  assert.ok(matches('^(Write|Bash)$', { tool_name: 'execute' }))
  assert.not.ok(matches('Write', { tool_name: 'execute' }))
  assert.not.ok(matches('bash', { tool_name: 'execute' }))
  assert.ok(matches('mcp__github__.*', { tool_id: 'mcp__github__search', tool_name: 'mcp__github__search' }))
  assert.not.ok(matches('mcp__github__.*', { tool_id: 'mcp__gitlab__search' }))
  assert.is(claudeGlobs('(a+)+$'), undefined)
  const declared = { name: 'h', event: 'permission.request', command: 'x', format: 'claude' }
  assert.ok('spec' in specOf(declared))
  for (const [wrong, words] of [
    [{ metadata: { claude_matcher: '(a+)+$' } }, 'metadata.claude_matcher'],
    [{ warm: true }, 'started for each event'],
    [{ event: 'task.blocked' }, 'format: claude has no event for task.blocked'],
    [{ format: 'other' }, 'format'],
  ] as const) {
    const read = specOf({ ...declared, ...wrong })
    assert.ok('problem' in read && read.problem.includes(words), JSON.stringify(read))
  }
})

test('input of other events and tools is converted', () => {
  const about = { session_id: 's', workspace_root: '/w' }
  const input = (event: Parameters<typeof claudeInput>[0], more: object, metadata = {}) =>
    claudeInput(event, { ...about, event, ...more }, metadata) as Record<string, unknown>
  assert.is(input('session.post_create', {}).source, 'startup')
  assert.is(input('session.post_resume', {}).source, 'resume')
  assert.is(input('session.post_stop', {}).hook_event_name, 'SessionEnd')
  assert.is(input('input.pre_submit', { message: 'do it' }).prompt, 'do it')
  assert.equal(input('turn.end', {}).hook_event_name, 'Stop')
  const edit = input('permission.request', { tool_name: 'edit', paths: ['/w/a.ts'] }, { claude_matcher: 'Write' })
  assert.equal([edit.tool_name, edit.tool_input], ['Write', { file_path: '/w/a.ts' }])
  const call = input('tool.pre_call', {
    tool_name: 'execute',
    title: 't',
    input: { command: 'git', args: ['log', "it's"] },
  })
  assert.equal(call.tool_input, { command: `git log 'it'\\''s'`, description: 't' })
  const script = input('tool.pre_call', { tool_name: 'execute', input: { command: '/bin/sh', args: ['-c', 'a && b'] } })
  assert.equal(script.tool_input, { command: 'a && b' })
  const own = input('tool.pre_call', { tool_name: 'search', tool_id: 'mcp__gh__search', input: { q: 'x' } })
  assert.equal([own.tool_name, own.tool_input], ['mcp__gh__search', { q: 'x' }])
})

test.run()
