import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openWorld, type World } from '../../../fixtures/session-world.js'

let world: World

test.before(async () => {
  world = await openWorld({ config: { session: { limits: { max_iterations: 2, timeout: '10m' } } } })
  await world.agent('plain')
})
test.after(() => world.close())

const calls = (count: number) =>
  Array.from({ length: count }, (_, i) => {
    const update = {
      sessionUpdate: 'tool_call',
      toolCallId: `c${i}`,
      title: `call ${i}`,
      kind: 'read',
      status: 'completed',
    }
    return `update ${JSON.stringify(update)}`
  }).join('\n')

test('a turn shows its limits and is canceled by the tool call beyond them', async () => {
  const { id, at } = await world.session('plain')
  const { body } = await world.kernel.request('POST', `${at}/prompt`, { text: `${calls(2)}\nhang` })
  const turn = body.prompt.new_turn_id
  await world.until(at, event => event.turn_id === turn && event.content.tool_call_id === 'c1')
  const { activity } = await world.row(id)
  assert.equal([activity.iteration_current, activity.iteration_max], [2, 2])
  assert.is(Date.parse(activity.deadline_at) - Date.parse(activity.turn_started_at), 600_000)
  await world.kernel.request('POST', `${at}/prompt/cancel`)
  await world.until(at, event => event.turn_id === turn && event.type === 'done')

  const end = (await world.prompt(at, `${calls(3)}\nhang`)).at(-1)
  assert.equal([end?.type, end?.failure.kind], ['error', 'cancellation'])
  assert.match(end?.failure.summary, /more than 2 tool calls/)
  assert.is((await world.row(id)).state, 'active', 'the session goes on')
  assert.is((await world.prompt(at, `${calls(2)}\nsay within`)).at(-1)?.type, 'done')
})

test.run()
