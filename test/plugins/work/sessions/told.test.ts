import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { Sessions } from '../../../../plugins/work/sessions/api.js'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'

/** What the plugin was told, in order. */
const told: string[] = []
let open: () => void = () => {}
const gate = new Promise<void>(resolve => {
  open = resolve
})

const { tap } = surfaceOf<unknown>()
const listener = definePlugin({ name: 'test.told', version: '1.0.0', requires: { sessions: Sessions } }).surface({
  taps: [
    tap(
      Sessions,
      sessions => sessions.stopped,
      () => async () => {
        told.push('stopping')
        await gate
        told.push('stopped')
      },
    ),
    tap(
      Sessions,
      sessions => sessions.prepare,
      () => async () => {
        told.push('prepared')
        return undefined
      },
    ),
  ],
})

let world: World

test.before(async () => {
  world = await openWorld({ plugins: [listener] })
  await world.agent('dies')
})
test.after(() => world.close())

test('the process of a session starts again when all plugins were told that the session stopped', async () => {
  const { id, at } = await world.session('dies')
  await world.kernel.request('POST', `${at}/prompt`, { text: 'exit 3' })
  await eventually(async () => told.includes('stopping'), 'the stop')
  const { status, body } = await world.kernel.request('POST', `${at}/prompt`, { text: 'say back' })
  assert.is(status, 200, JSON.stringify(body))
  await eventually(async () => (await world.row(id)).state !== 'stopped', 'the start')
  // A process that does not wait is prepared in this time.
  for (let n = 0; n < 100 && told.length < 3; n++) await new Promise(resolve => setTimeout(resolve, 5))
  open()
  const turn = body.prompt.new_turn_id
  await world.ended(at, turn)
  assert.is(agentText(await world.events(at, `?turn_id=${turn}`)), 'back\n')
  assert.equal(told, ['prepared', 'stopping', 'stopped', 'prepared'])
})

test.run()
