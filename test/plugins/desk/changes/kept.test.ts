import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { changes } from '../../../../plugins/index.js'
import { openWorld } from '../../../fixtures/session-world.js'

test('the last 200 changes are kept: older ones are neither listed nor undone', async () => {
  const world = await openWorld({ plugins: [changes] })
  try {
    const ids: string[] = []
    const all = async () => (await world.kernel.request('GET', '/api/changes?limit=200')).body.changes
    // The registration of the workspace is a change.
    const before = (await all()).length
    for (let n = 0; n < 215; n++) {
      const body = { scope: { kind: 'global' }, spec: { n } }
      const put = await world.kernel.request('PUT', `/api/resources/bench.note/n${n}`, body)
      assert.is(put.status, 201)
      const [newest] = (await world.kernel.request('GET', '/api/changes?limit=1')).body.changes
      assert.is(newest.subject, `resources/bench.note/n${n}`)
      ids.push(newest.id)
      if (n % 40 === 0 || n > 198) assert.is((await all()).length, Math.min(before + n + 1, 200))
    }
    const status = async (n: number) => (await world.kernel.request('GET', `/api/changes/${ids[n]}`)).status
    assert.is(await status(14), 404)
    assert.is(await status(15), 200)
    const undone = await world.kernel.request('POST', `/api/changes/${ids[14]}/undo`, {})
    assert.is(undone.body.code, 'change_not_found')
    assert.is((await world.kernel.request('POST', `/api/changes/${ids[20]}/undo`, {})).status, 200)
  } finally {
    await world.close()
  }
})

test.run()
