import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { type SessionPoints, Sessions } from '../../../../plugins/work/sessions/api.js'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'

/** Payloads of each point that was called. */
const heard = new Map<keyof SessionPoints, unknown[][]>()
/** What a point that may refuse or change is to do; by its name. */
const does = new Map<keyof SessionPoints, (value: never) => unknown>()

const POINTS = [
  'preCreate',
  'postCreate',
  'preResume',
  'postResume',
  'preStop',
  'recoveryStarted',
  'recoverySucceeded',
  'recoveryExhausted',
  'attentionChanged',
  'messagePersisted',
  'inputPreSubmit',
  'promptPostAssemble',
  'eventRecorded',
  'agentPreStart',
  'agentSpawned',
  'agentCrashed',
  'agentStopped',
  'turnStart',
  'turnEnd',
  'messageEnd',
  'toolPreCall',
  'toolPostCall',
  'toolPostError',
  'permissionResolved',
  'permissionDenied',
  'contextCompacted',
] as const satisfies readonly (keyof SessionPoints)[]

const { tap } = surfaceOf<unknown>()
const listener = definePlugin({ name: 'test.points', version: '1.0.0', requires: { sessions: Sessions } }).surface({
  taps: POINTS.map(name =>
    tap(
      Sessions,
      sessions => sessions.points[name] as SessionPoints['preCreate'],
      () =>
        (...payload) => {
          heard.set(name, [...(heard.get(name) ?? []), payload])
          return does.get(name)?.(payload[0] as never) as undefined
        },
    ),
  ),
})

let world: World

test.before(async () => {
  world = await openWorld({ plugins: [listener] })
  await world.agent('plain')
  await world.agent('asks', { permissions: 'approve-reads' })
})
test.before.each(() => {
  heard.clear()
  does.clear()
})
test.after(() => world.close())

const prompt = (at: string, text: string) => world.kernel.request('POST', `${at}/prompt`, { text })
const names = () => [...heard.keys()].sort()

test('a session, its turns, messages, tools and its end are emitted with payloads', async () => {
  const { id, at } = await world.session('plain')
  const result = { sessionUpdate: 'tool_call', toolCallId: 'a', title: 'well', kind: 'read', status: 'completed' }
  const usage = (used: number) => `update ${JSON.stringify({ sessionUpdate: 'usage_update', used, size: 10_000 })}`
  const text = [
    'say hello',
    `update ${JSON.stringify(result)}`,
    `update ${JSON.stringify({ ...result, toolCallId: 'b', status: 'failed' })}`,
    usage(9000),
    usage(1000),
    `call fs/read_text_file ${JSON.stringify({ path: 'there' })}`,
  ]
  await writeFile(path.join(world.root, 'there'), 'x')
  const options = [{ optionId: 'no', kind: 'reject_once', name: 'no' }]
  const events = await world.prompt(at, text.join('\n'))
  const compacted = events.find(({ type }) => type === 'session.compaction_fired')
  assert.equal([compacted!.content.before, compacted!.content.after], [9000, 1000])
  await world.kernel.request('POST', `${at}/stop`)
  const asks = await world.session('asks')
  const request = {
    toolCall: {
      toolCallId: 'c',
      kind: 'read',
      title: 'r',
      locations: [{ path: path.join(world.home, 'config.json') }],
    },
    options,
  }
  await world.prompt(asks.at, `ask ${JSON.stringify(request)}`)
  const missing = [
    'preResume',
    'postResume',
    'recoveryStarted',
    'recoverySucceeded',
    'recoveryExhausted',
    'agentCrashed',
  ]
  const wanted = POINTS.filter(name => !missing.includes(name)).sort()
  await eventually(async () => wanted.every(name => heard.has(name)), `all of ${wanted} instead of ${names()}`)
  const about = (name: keyof SessionPoints) => heard.get(name)![0]![0] as Record<string, unknown>
  assert.equal(about('preCreate').agentName, 'plain')
  assert.is(about('postCreate').id, id)
  assert.is(about('inputPreSubmit').message, text.join('\n'))
  assert.equal([about('turnStart').sessionId, about('turnStart').type], [id, 'user_message'])
  assert.is((about('messageEnd').content as { text: string }).text, 'hello\n')
  assert.equal(about('toolPreCall'), { kind: 'read', title: path.join(world.root, 'there') })
  const ended = heard.get('toolPostError')!.map(([told]) => (told as { content: { tool_call_id: string } }).content)
  assert.equal(
    ended.map(({ tool_call_id }) => tool_call_id),
    ['b'],
  )
  await world.kernel.request('POST', `${asks.at}/stop`)
})

test('a crash and the recovery are emitted', async () => {
  const { at } = await world.session('plain')
  await prompt(at, 'exit 3')
  await eventually(async () => heard.has('agentCrashed'), 'the crash')
  await eventually(async () => (await prompt(at, 'say again')).status === 200, 'a restart')
  const wanted = ['preResume', 'recoveryStarted', 'recoverySucceeded', 'postResume'] as const
  await eventually(async () => wanted.every(name => heard.has(name)), `all of ${wanted} instead of ${names()}`)
  assert.not.ok(heard.has('recoveryExhausted'))
})

test('a guard refuses with its reason, and nothing is done', async () => {
  const deny = (value: object) => ({ ...value, deny: 'not today' })
  does.set('preCreate', deny)
  const none = await world.kernel.request('POST', '/api/sessions', {
    workspace: world.workspaceId,
    agent_name: 'plain',
  })
  assert.equal([none.status, none.body.code], [403, 'hook_denied'])
  assert.match(none.body.error, /not today/)
  does.clear()
  const { at } = await world.session('plain')
  does.set('inputPreSubmit', deny)
  assert.is((await prompt(at, 'say x')).body.code, 'hook_denied')
  assert.equal(await world.events(at), [])
  does.clear()
  await writeFile(path.join(world.root, 'there'), 'x')
  does.set('toolPreCall', deny)
  const events = await world.prompt(at, `call fs/read_text_file ${JSON.stringify({ path: 'there' })}`)
  assert.match(agentText(events), /error permission denied: not today/)
  does.clear()
  does.set('promptPostAssemble', deny)
  const refused = await world.prompt(at, 'say y')
  assert.match(JSON.stringify(refused.at(-1)), /not today/)
  does.clear()
  const other = await world.session('plain')
  does.set('agentPreStart', deny)
  assert.match(JSON.stringify((await world.prompt(other.at, 'say z')).at(-1)), /not today/)
  assert.is(heard.get('agentSpawned')?.length, 1)
})

test('a patch hook changes the agent input', async () => {
  does.set('preCreate', (wish: object) => ({ ...wish, sessionName: 'by a hook' }))
  does.set('inputPreSubmit', (input: object) => ({ ...input, message: 'echo' }))
  does.set('promptPostAssemble', (given: { texts: string[] }) => ({
    texts: ['first of all', ...given.texts.slice(-1)],
  }))
  const { id, at } = await world.session('plain')
  assert.is((await world.row(id)).name, 'by a hook')
  assert.is(agentText(await world.prompt(at, 'say something else')), '["first of all","echo"]\n')
})

test.run()
