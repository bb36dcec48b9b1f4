import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel, surfaceOf } from '../../../../kernel/plugin.js'
import {
  type HookPayload,
  Hooks,
  type HooksApi,
  type NativeHook,
  NativeHooks,
} from '../../../../plugins/work/hooks/api.js'
import { label } from '../../../fixtures/cases.js'
import { AGENT, agentText, eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { openScene, type Scene } from './scene.js'

let service: HooksApi
let natives: NativeHook[] = []
const other = definePlugin({
  name: 'test.natives',
  version: '1.0.0',
  requires: { hooks: Hooks },
  service: async () =>
    class {
      constructor({ needs }: PluginKernel<{ hooks: typeof Hooks }>) {
        service = needs.hooks
      }
    },
}).surface({ registries: [surfaceOf().contribute(NativeHooks, () => natives)] })

let scene: Scene

test.before(async () => {
  scene = await openScene({}, { plugins: [other] })
  await scene.agent('free')
})
test.after(() => scene.close())

function use(...hooks: NativeHook[]) {
  natives = hooks
  service.refresh()
}
const hook = (name: string, run: NativeHook['run'], more: Partial<NativeHook> = {}): NativeHook => ({
  name,
  event: 'input.pre_submit',
  mode: 'sync',
  run,
  ...more,
})
const add = (word: string) => (payload: HookPayload) => ({ message: `${payload.message} ${word}` })
const about = () => ({ workspaceId: scene.workspaceId })
const names = async (event = 'input.pre_submit') =>
  (await scene.kernel.request('GET', `/api/hooks/catalog?event=${event}`)).body.hooks

test('hooks run by source, then priority, then name; each sees the patched payload', async () => {
  const program = await scene.program(
    'config.sh',
    `#!/bin/sh\nsed 's/.*"message":"\\([^"]*\\)".*/{"message":"\\1 config"}/'\n`,
  )
  await scene.configure({
    strong: { event: 'input.pre_submit', command: program, mode: 'sync', priority: 9999, timeout: '30s' },
  })
  use(hook('b', add('b')), hook('a', add('a')), hook('z', add('z'), { priority: 2000 }))
  const { payload } = await service.dispatch('input.pre_submit', about(), { message: 'x' })
  assert.is(payload.message, 'x z a b config')
  assert.equal(
    (await names()).map(({ name, order, priority }: Reply) => [name, order, priority]),
    [
      ['z', 1, 2000],
      ['a', 2, 1000],
      ['b', 3, 1000],
      ['strong', 4, 9999],
    ],
  )
  await scene.kernel.request('DELETE', '/api/settings/hooks/strong')
})

test('a patch may turn allow into deny, but not deny into allow', async () => {
  let says: string | undefined = 'allow'
  use(hook('judge', () => ({ decision: says }), { event: 'permission.request' }))
  const ask = (payload: HookPayload) => service.dispatch('permission.request', about(), payload)
  for (const decision of ['deny', undefined]) {
    const { payload } = await ask({ decision })
    assert.is(payload.decision, decision, 'the answer is rejected, and the payload as it was')
  }
  assert.is((await ask({ decision: 'allow' })).deny, undefined)
  const rejected = (await scene.runs('none')).filter(run => run.hook_name === 'judge' && run.outcome === 'rejected')
  assert.is(rejected.length, 2, JSON.stringify(rejected))
  says = 'deny'
  assert.match((await ask({ decision: 'allow' })).deny ?? '', /denied by a hook/)
  use()
})

test('an earlier source shadows a hook of the same name and event, even when disabled', async () => {
  const command = await scene.program('noop.sh', '#!/bin/sh\n')
  const ran: string[] = []
  use(hook('same', () => void ran.push('native')))
  await scene.configure({ same: { event: 'input.pre_submit', command, mode: 'sync' } })
  const [entry, ...rest] = await names()
  assert.equal([entry.source, entry.shadowed_sources, rest.length], ['native', ['config'], 0])
  await scene.kernel.request('DELETE', '/api/settings/hooks/same')
  use()
  const off = { name: 'shipped', event: 'input.pre_submit', command, mode: 'sync' }
  const put = await scene.kernel.request('PUT', '/api/resources/hook.binding/hok_1', {
    scope: { kind: 'global' },
    spec: off,
  })
  assert.is(put.status, 201, JSON.stringify(put.body))
  await eventually(async () => (await names()).length === 1, 'the hook of the record')
  await scene.kernel.request('DELETE', '/api/resources/hook.binding/hok_1', { expected_version: 1 })
  await eventually(async () => (await names()).length === 0, 'the end of the record')
})

test('a denial stops the chain and the async hooks; a failed required hook denies too', async () => {
  const ran: string[] = []
  use(
    hook('first', () => ({ deny: 'no' })),
    hook('second', () => void ran.push('second')),
    hook('later', () => void ran.push('later'), { mode: 'async' }),
  )
  assert.is((await service.dispatch('input.pre_submit', about(), { message: 'x' })).deny, 'no (hook first)')
  use(
    hook('breaks', () => {
      throw new Error('broken')
    }),
    hook('second', () => void ran.push('second')),
  )
  assert.is((await service.dispatch('input.pre_submit', about(), { message: 'x' })).deny, undefined)
  assert.equal(ran, ['second'])
  use(
    hook(
      'must',
      () => {
        throw new Error('broken')
      },
      { required: true },
    ),
  )
  assert.is(
    (await service.dispatch('input.pre_submit', about(), { message: 'x' })).deny,
    'required hook must failed: broken',
  )
})

test('a patch that escalates a decision or sets an unknown field is rejected', async () => {
  use(hook('soft', () => ({ decision: 'allow' }), { event: 'permission.request' }))
  const given = { decision: 'deny' }
  const { payload } = await service.dispatch('permission.request', about(), given)
  assert.is(payload.decision, 'deny')
  use(
    hook('other', () => ({ prompt: ['x'] })),
    hook('wrong', () => ({ message: 7 })),
  )
  assert.is((await service.dispatch('input.pre_submit', about(), { message: 'x' })).payload.message, 'x')
  const runs = await scene.runs('none')
  assert.equal(
    runs.slice(-3).map(({ hook_name, outcome }) => [hook_name, outcome]),
    [
      ['soft', 'rejected'],
      ['other', 'rejected'],
      ['wrong', 'rejected'],
    ],
  )
})

test('a matcher compares texts by pattern and tool_read_only exactly', async () => {
  const ran: string[] = []
  const on = (name: string, matcher: NativeHook['matcher']) =>
    hook(name, () => void ran.push(name), { event: 'tool.pre_call', ...(matcher && { matcher }) })
  use(
    on('all', { tool_name: '*' }),
    on('glob', { tool_name: 'ex?c[tu]*' }),
    on('exact', { tool_name: 'read' }),
    on('reads', { tool_read_only: true }),
    on('both', { tool_name: 'execute', tool_read_only: true }),
  )
  await service.dispatch('tool.pre_call', about(), { tool_name: 'execute', tool_read_only: false })
  assert.equal(ran, ['all', 'glob'])
})

test('hook dispatch nests at most three levels deep', async () => {
  const depths: unknown[] = []
  use(
    hook('again', async ({ dispatch_depth: depth }) => {
      depths.push(depth)
      const { deny } = await service.dispatch('input.pre_submit', about(), { message: 'x' })
      return deny === undefined ? undefined : { deny }
    }),
  )
  const { deny } = await service.dispatch('input.pre_submit', about(), { message: 'x' })
  assert.equal(depths, [1, 2, 3])
  assert.match(String(deny), /maximum depth of 3/)
  use(hook('quietly', async () => void (await service.dispatch('input.pre_submit', about(), {})), { mode: 'async' }))
  await service.dispatch('input.pre_submit', about(), { message: 'x' })
  await scene.ran('none', run => run.hook_name === 'quietly' && run.outcome === 'skipped' && run.dispatch_depth === 4)
})

test('four async hooks run concurrently, 64 are queued, further ones are dropped', async () => {
  let open = () => {}
  const gate = new Promise<void>(resolve => {
    open = resolve
  })
  let most = 0
  let now = 0
  use(
    hook(
      'slow',
      async () => {
        most = Math.max(most, ++now)
        await gate
        now--
        return undefined
      },
      { mode: 'async', timeout: '60s' },
    ),
  )
  for (let sent = 0; sent < 70; sent++) await service.dispatch('input.pre_submit', about(), {})
  open()
  const runs = async (outcome: string) =>
    (await scene.runs('none', `&last=1000&outcome=${outcome}`)).filter(({ hook_name }) => hook_name === 'slow').length
  await eventually(async () => (await runs('applied')) === 68, '68 runs')
  assert.is(await runs('dropped'), 2)
  assert.is(most, 4)
})

test('hooks of an agent definition run only for its sessions; an invalid hook prevents their start', async () => {
  use()
  const command = await scene.program('mark.sh', `#!/bin/sh\necho '{"message":"say marked"}'\n`)
  const write = async (name: string, line: string) => {
    const folder = path.join(scene.root, '.svc', 'agents', name)
    await mkdir(folder, { recursive: true })
    const head = `name: ${name}\npermissions: approve-all\ncommand: '${process.execPath} ${AGENT}'\nhooks:\n  - ${line}`
    await writeFile(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nYou do what you are told.\n`)
  }
  await write('marked', `{ name: mark, event: input.pre_submit, mode: sync, command: ${command}, timeout: 30s }`)
  const marked = await scene.session('marked')
  // Its hooks are taken up with the start of its agent.
  await scene.prompt(marked.at, 'say first')
  assert.is(agentText(await scene.prompt(marked.at, 'say plain')), 'marked\n')
  const free = await scene.session('free')
  assert.is(agentText(await scene.prompt(free.at, 'say plain')), 'plain\n')
  assert.is((await scene.runs(marked.id)).at(-1)!.source, 'agent_definition')
  await write('broken', '{ name: mark, event: never.heard, mode: sync, command: x }')
  const body = { workspace: scene.workspaceId, agent_name: 'broken' }
  const refused = await scene.kernel.request('POST', '/api/sessions', body)
  assert.equal([refused.status, refused.body.code], [403, 'hook_denied'])
  assert.match(refused.body.error, /hook mark of agent broken is invalid/)
})

const declare = async (name: string, declaration: object) => {
  const { status, body } = await scene.kernel.request('PUT', `/api/settings/hooks/${name}`, {
    declaration: { name, matcher: {}, ...declaration },
  })
  return [status, body.code]
}
const command = '/bin/true'

for (const wrong of [
  { event: 'turn.start' },
  { event: 'message.delta', command, mode: 'sync' },
  { event: 'turn.start', command, executor_kind: 'wasm' },
  { event: 'turn.start', command, executor_kind: 'native' },
  { event: 'turn.start', command, matcher: { tool_name: 'x' } },
  { event: 'turn.start', command, timeout: 'soon' },
  { event: 'turn.start', command, secret_env: { A: 'hunter2' } },
  { event: 'never.heard', command },
])
  test(`a declaration is refused: ${label(wrong)}`, async () => assert.is((await declare('wrong', wrong))[0], 400))

test('a refused declaration is not stored', async () => {
  assert.is((await declare('wrong', { event: 'turn.start', command, name: 'other' }))[0], 400)
  assert.equal((await scene.kernel.request('GET', '/api/settings/hooks')).body.hooks, [])
  assert.equal((await scene.kernel.request('DELETE', '/api/settings/hooks/none')).status, 404)
})

test('runs before a session exists are listed without a session', async () => {
  use(hook('doorkeeper', () => ({ deny: true, reason: 'not today' }), { event: 'session.pre_create' }))
  const refused = await scene.kernel.request('POST', '/api/sessions', {
    agent_name: 'free',
    workspace: scene.workspaceId,
  })
  assert.equal([refused.status, refused.body.code], [403, 'hook_denied'])
  const run = await scene.ran('none', ({ hook_name: name }) => name === 'doorkeeper')
  assert.equal([run.event, run.outcome], ['session.pre_create', 'denied'])
  use()
})

test.run()
