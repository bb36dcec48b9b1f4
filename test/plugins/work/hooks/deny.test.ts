import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { EventLines } from '../../../../plugins/work/session-commands/event-lines.js'
import { agentText } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene, type Scene, warmPython } from './scene.js'

let scene: Scene

test.before(async () => {
  scene = await openScene()
  const guard = await scene.program(
    'guard.py',
    warmPython(`if "rm -rf" in (p.get("command") or p.get("title") or ""):
    return {"deny": True, "reason": "nothing is removed for good"}
return None`),
  )
  const rewrite = await scene.program(
    'rewrite.py',
    warmPython(`words = [p["input"]["command"], *p["input"].get("args", [])] if "command" in p["input"] else []
if " ".join(words).startswith("rm -rf"):
    return {"input": {"command": "echo", "args": ["would remove", words[-1]]}}
if p["input"].get("path", "").endswith("moved.txt"):
    return {"input": {"path": "/elsewhere"}}
return None`),
  )
  await scene.configure({
    guard: {
      event: 'permission.request',
      command: guard,
      warm: true,
      required: true,
      matcher: { tool_name: 'execute' },
      timeout: '30s',
    },
    rewrite: { event: 'tool.pre_call', command: rewrite, warm: true, mode: 'sync', timeout: '30s' },
  })
  await scene.agent('free')
  await scene.agent('asks', { permissions: 'approve-reads' })
})
test.after(() => scene.close())

const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, kind, name: kind }))
const ask = (title: string, more = {}) =>
  `ask ${JSON.stringify({ toolCall: { toolCallId: title, kind: 'execute', title, rawInput: { command: title }, ...more }, options })}`

test('a warm sync hook denies a permission, and the run records hook, duration and patch', async () => {
  const { id, at } = await scene.session('free')
  const events = await scene.prompt(at, [ask('rm -rf /'), ask('ls')].join('\n'))
  assert.is(agentText(events), 'answer: reject_once\nanswer: allow_once\n')
  const runs = await scene.runs(id, '&event=permission.request')
  assert.equal(
    runs.map(({ outcome, hook_name, source, mode }) => [outcome, hook_name, source, mode]),
    [
      ['denied', 'guard', 'config', 'sync'],
      ['applied', 'guard', 'config', 'sync'],
    ],
  )
  assert.equal(runs[0].patch_applied, { deny: true, reason: 'nothing is removed for good' })
  assert.ok(runs[0].duration_us > 0)
  const [resolved] = events.filter(({ type, content }) => type === 'permission' && content.status === 'resolved')
  assert.is(resolved!.content.resolved_by, 'hook')
  assert.match(resolved!.content.note, /nothing is removed for good \(hook guard\)/)
  // Its journal says so as well, each in a line, behind what it is about.
  const noted = events.filter(({ type }) => type === 'hook_run').map(({ content }) => content)
  assert.equal(
    noted.map(({ hook, event, outcome }) => [hook, event, outcome]),
    [
      ['guard', 'permission.request', 'denied'],
      ['guard', 'permission.request', 'applied'],
    ],
  )
  assert.match(noted[0].text, /^hook guard \(config\): denied permission\.request, \d+ [mµ]s$/)
  assert.is(noted[0].duration_us, runs[0].duration_us)
})

test('a request denied by a hook is not shown to the user, any other request is', async () => {
  const { id, at } = await scene.session('asks')
  const permissions = (events: readonly Reply[]) =>
    events.filter(({ type }) => type === 'permission').map(({ content }) => [content.status, content.resolved_by])
  const refused = await scene.prompt(at, ask('rm -rf /'))
  assert.is(agentText(refused), 'answer: reject_once\n')
  assert.equal(permissions(refused), [['resolved', 'hook']])
  const lines: string[] = []
  const out = { color: (_: string, text: string) => text, line: (text: string) => void lines.push(text), text() {} }
  const shown = new EventLines(id, { out } as never)
  for (const event of refused) shown.show(event as never)
  const line = '  Rejected by a hook: run: rm -rf / — nothing is removed for good (hook guard)'
  assert.ok(lines.includes(line), lines.join('\n'))
  const { body } = await scene.kernel.request('POST', `${at}/prompt`, { text: ask('ls') })
  const turn_id = body.prompt.new_turn_id
  const question = await scene.until(at, event => event.turn_id === turn_id && event.content.status === 'pending')
  const answer = { request_id: question.content.request_id, turn_id, decision: 'allow-once' }
  assert.is((await scene.kernel.request('POST', `${at}/approve`, answer)).status, 200)
  await scene.until(at, event => event.turn_id === turn_id && event.type === 'done')
  const allowed = await scene.events(at, `?turn_id=${turn_id}&limit=1000`)
  assert.is(agentText(allowed), 'answer: allow_once\n')
  assert.equal(permissions(allowed), [
    ['pending', undefined],
    ['resolved', 'person'],
  ])
  const outcomes = (await scene.runs(id, '&event=permission.request')).map(({ outcome }) => outcome)
  assert.equal(outcomes, ['denied', 'applied'])
})

test('a hook rewrites a command before it is authorized and run', async () => {
  const { id, at } = await scene.session('free')
  const create = `call terminal/create ${JSON.stringify({ command: 'rm', args: ['-rf', 'precious'] })}`
  const events = await scene.prompt(
    at,
    [create, 'terminal terminal/wait_for_exit', 'terminal terminal/output'].join('\n'),
  )
  assert.match(agentText(events), /would remove precious/)
  const { content: note } = events.find(({ type }) => type === 'hook_run') as Reply
  // What it was changed to may be a secret: the journal names the member.
  assert.match(note.text, /^hook rewrite \(config\): patched input at tool\.pre_call, /)
  assert.not.match(JSON.stringify(note), /precious/)
  const [run] = await scene.runs(id, '&event=tool.pre_call')
  assert.equal(run.patch_applied, { input: { command: 'echo', args: ['would remove', 'precious'] } })
})

test('a hook that patches a file access gets the error that only commands can be changed', async () => {
  const { at } = await scene.session('free')
  const read = `call fs/read_text_file ${JSON.stringify({ path: path.join(scene.root, 'moved.txt') })}`
  const events = await scene.prompt(at, read)
  assert.match(agentText(events), 'a hook changed the input of a read; only commands can be changed')
})

test.run()
