import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openWorld, type World } from '../../../fixtures/session-world.js'

let world: World

test.before(async () => {
  world = await openWorld()
  await world.agent('plain')
})
test.after(() => world.close())

test('usage of turns is counted by day as reported by the agent', async () => {
  const { at } = await world.session('plain')
  const usage = (used: number, amount: number) =>
    `update ${JSON.stringify({ sessionUpdate: 'usage_update', used, size: 1000, cost: { amount, currency: 'EUR' } })}`
  const day = async () => (await world.kernel.request('GET', `${at}/usage`)).body.days
  assert.equal(await day(), [])
  await world.prompt(at, 'say nothing told')
  await world.prompt(at, usage(100, 0.5))
  await world.prompt(at, usage(250, 0.75))
  await world.kernel.request('POST', `${at}/stop`)
  const [today, more] = await day()
  assert.is(more, undefined)
  assert.equal([today.turns, today.tokens, today.cost, today.currency], [3, 250, 0.75, 'EUR'])
  assert.match(today.date, /^\d{4}-\d\d-\d\d$/)
})

test.run()
