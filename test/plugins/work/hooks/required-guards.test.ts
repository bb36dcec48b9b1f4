import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { specOf } from '../../../../plugins/work/hooks/hook-kind.js'
import { AGENT, agentText, eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene, type Scene } from './scene.js'

let scene: Scene

test.before(async () => {
  scene = await openScene()
  const deny = await scene.program('deny.sh', '#!/bin/sh\ncat > /dev/null\necho "the reason: no" >&2\nexit 2\n')
  const hook = { event: 'permission.request', required: true, matcher: { tool_name: 'execute' }, timeout: '30s' }
  await scene.configure({ guard: { ...hook, command: deny } })
})
test.after(() => scene.close())

const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, kind, name: kind }))
const ask = (title: string, kind = 'execute') =>
  `ask ${JSON.stringify({ toolCall: { toolCallId: title, kind, title, rawInput: { command: title } }, options })}`

const ended = (id: string) =>
  eventually(async () => {
    const row = await scene.row(id)
    return row.state === 'stopped' ? row : undefined
  }, 'the end of the session')

test('an agent with a mode that never asks is kept asking, and the hook refuses despite approve-all', async () => {
  await scene.agent('free', { flags: '--modes=default,bypassPermissions' })
  const { id, at } = await scene.session('free')
  const events = await scene.prompt(at, ['mode', ask('touch x'), ask('look', 'read')].join('\n'))
  assert.is(agentText(events), 'mode default\nanswer: reject_once\nanswer: allow_once\n')
  const [run] = await scene.runs(id, '&event=permission.request')
  assert.equal(run.patch_applied, { deny: 'the reason: no' }, 'exit status 2 denies with standard error as the reason')
  assert.is(run.outcome, 'denied')
})

test('an agent stays asking when its session is switched to approve-all', async () => {
  await scene.agent('strict', { flags: '--modes=default,bypassPermissions', permissions: 'approve-reads' })
  const { at } = await scene.session('strict')
  await scene.prompt(at, 'say hello')
  const changed = await scene.kernel.request('PATCH', at, { name: 'x', permissions: 'approve-all' })
  assert.is(changed.status, 200, JSON.stringify(changed.body))
  assert.is(
    agentText(await scene.prompt(at, ['mode', ask('touch x')].join('\n'))),
    'mode default\nanswer: reject_once\n',
  )
})

test('an agent without an asking mode is not started', async () => {
  await scene.agent('reckless', { flags: '--modes=bypassPermissions,acceptEdits' })
  const { id, at } = await scene.session('reckless')
  const events = await scene.prompt(at, 'say hello')
  assert.match(JSON.stringify(events), /the required hook guard must approve each operation/)
  assert.not.match(agentText(events), 'hello')
  assert.is((await ended(id)).failure?.kind, 'startup_failure')
})

test('an agent known to never ask is not started', async () => {
  const program = path.join(scene.root, 'pi-acp')
  await writeFile(program, `#!/bin/sh\nexec ${process.execPath} ${AGENT}\n`, { mode: 0o755 })
  await scene.agent('silent', { command: program })
  const { at } = await scene.session('silent')
  const events = await scene.prompt(at, 'say hello')
  assert.match(JSON.stringify(events), /Pi never asks/)
  assert.not.match(agentText(events), 'hello')
})

test('the process of an agent that edits without asking is killed at the first edit', async () => {
  await scene.agent('sly')
  const { id, at } = await scene.session('sly')
  const done = { sessionUpdate: 'tool_call', toolCallId: 'u1', title: 'Edit a.js', kind: 'edit', status: 'completed' }
  const events = await scene.prompt(at, `update ${JSON.stringify(done)}\nsay first\nhang`)
  const warned = events.find(({ content }: Reply) => content?.warning === 'permission_not_asked')
  assert.match(warned?.content.text, /"Edit a.js" without asking/)
  const { failure } = await ended(id)
  assert.is(failure?.kind, 'permission_failure')
  assert.match(failure?.summary, /"Edit a.js" without asking, although the required hook guard must approve/)
})

test('a patch over 64 KiB fails with the reason, and a shorter one is read whole', async () => {
  const long = (bytes: number) =>
    `#!/bin/sh\ncat > /dev/null\nprintf '{"message": "'\nhead -c ${bytes} /dev/zero | tr '\\0' x\nprintf '"}'\n`
  await scene.configure({
    long: {
      event: 'input.pre_submit',
      mode: 'sync',
      command: await scene.program('long.sh', long(60_000)),
      timeout: '30s',
    },
  })
  await scene.agent('plain', { permissions: 'approve-reads' })
  const { id, at } = await scene.session('plain')
  await scene.prompt(at, 'say x')
  await scene.program('long.sh', long(70_000))
  await scene.prompt(at, 'say y')
  const runs = await scene.runs(id, '&event=input.pre_submit')
  assert.equal(
    runs.map(({ outcome, error }) => [outcome, error ?? '']),
    [
      ['applied', ''],
      ['failed', 'the patch on standard output is longer than 65536 bytes'],
    ],
  )
})

test('a matcher that can match no value is refused with a suggested pattern', () => {
  const problem = (event: string, matcher: object) =>
    (specOf({ name: 'x', event, command: 'true', matcher }) as { problem?: string }).problem
  assert.is(
    problem('permission.request', { tool_name: 'execute|edit' }),
    'matcher.tool_name: "execute|edit" matches no value, because | is no part of a pattern; write e*',
  )
  assert.is(
    problem('permission.request', { decision_class: 'read|edit' }),
    'matcher.decision_class: "read|edit" matches no value, because | is no part of a pattern; declare a hook for each of read, edit',
  )
  assert.is(
    problem('permission.request', { tool_name: 'Read' }),
    'matcher.tool_name: "Read" matches no value; write read',
  )
  assert.match(
    problem('permission.request', { tool_name: 'bash' }) ?? '',
    /"bash" matches no value; values are read, edit/,
  )
  assert.match(problem('message.start', { message_role: 'robot' }) ?? '', /values are user, assistant/)
  for (const matcher of [{}, { tool_name: '' }, { tool_name: '*' }, { tool_name: 'e*' }, { decision_class: '[re]*' }])
    assert.is(problem('permission.request', matcher), undefined)
  assert.is(problem('tool.pre_call', { tool_name: 'mcp__github__*' }), undefined, 'names of tools are not known')
})

test.run()
