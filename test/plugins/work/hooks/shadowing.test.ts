import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText } from '../../../fixtures/session-world.js'
import { openScene, type Scene, warmPython } from './scene.js'

let scene: Scene

test.before(async () => {
  scene = await openScene()
})
test.after(() => scene.close())

const event = 'input.pre_submit'
const prompted = async (at: string) => agentText(await scene.prompt(at, 'say plain'))

test('a disabled configuration hook disables that of an agent, and its program ends', async () => {
  const command = await scene.program('mark.py', warmPython('return {"message": "say marked"}'))
  const hook = `{ name: mark, event: ${event}, mode: sync, command: ${command}, warm: true, timeout: 30s }`
  await scene.agent('marked', { lines: ['hooks:', `  - ${hook}`] })
  const { at, id } = await scene.session('marked')
  await prompted(at)
  assert.is(await prompted(at), 'marked\n')
  await scene.configure({ mark: { event, command: '/bin/true', mode: 'sync', enabled: false } })
  assert.is(await prompted(at), 'plain\n')
  const { hooks } = (await scene.kernel.request('GET', `/api/hooks/catalog?event=${event}&agent=marked`)).body
  assert.equal(
    hooks.map((one: { source: string; enabled: boolean; shadowed_sources?: string[] }) => [one.source, one.enabled]),
    [['config', false]],
  )
  await scene.kernel.request('DELETE', '/api/settings/hooks/mark')
  assert.is(await prompted(at), 'marked\n')
  const runs = await scene.runs(id, `&event=${event}`)
  assert.equal(new Set(runs.map(({ source }) => source)), new Set(['agent_definition']))
})

test('disabled hooks alone cause no wait, and one of another event shadows nothing', async () => {
  await scene.agent('free')
  await scene.configure({ mark: { event: 'turn.start', command: '/bin/false', mode: 'sync', enabled: false } })
  const { at, id } = await scene.session('free')
  assert.is(await prompted(at), 'plain\n')
  assert.equal(await scene.runs(id), [])
  const marked = await scene.session('marked')
  await prompted(marked.at)
  assert.is(await prompted(marked.at), 'marked\n')
})

test.run()
