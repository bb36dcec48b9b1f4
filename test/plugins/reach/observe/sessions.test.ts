import { test } from 'uvu'
import * as assert from 'uvu/assert'
import observe from '../../../../plugins/reach/observe/index.js'
import { eventually, openWorld } from '../../../fixtures/session-world.js'

test('the overview has the usage of real sessions, and the longest of them', async () => {
  const world = await openWorld({ plugins: [observe] })
  try {
    await world.agent('plain')
    const overview = async (query = '') =>
      (await world.kernel.request('GET', `/api/observe/overview${query}`)).body.overview
    assert.equal([(await overview()).usage.total_tokens, (await overview()).pulse.longest_session], [0, null])
    const { at, id } = await world.session('plain')
    const usage = (used: number, amount: number) =>
      `update ${JSON.stringify({ sessionUpdate: 'usage_update', used, size: 1000, cost: { amount, currency: 'USD' } })}`
    await world.prompt(at, usage(100, 0.5))
    await world.prompt(at, usage(250, 0.75))
    // What a turn used is written after it.
    await eventually(async () => (await overview()).usage.total_tokens === 250, 'what the second turn used')
    for (const query of ['', `?workspace=${world.workspaceId}`]) {
      const { usage: told, pulse } = await overview(query)
      assert.equal([told.total_tokens, told.estimated_cost, told.cost_status], [250, 0.75, 'actual'], query)
      assert.equal(told.agent_share, [{ agent_name: 'plain', tokens: 250, fraction: 1 }])
      assert.is(told.days.at(-1).tokens, 250)
      assert.equal([pulse.longest_session.session_id, pulse.longest_session.agent_name], [id, 'plain'])
    }
    await world.kernel.request('POST', `${at}/stop`)
    assert.is((await overview()).pulse.longest_session.session_id, id)
  } finally {
    await world.close()
  }
})

test.run()
