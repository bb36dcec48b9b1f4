import { existsSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, Fault, surfaceOf } from '../../../../kernel/plugin.js'
import { Sessions, type SessionsApi } from '../../../../plugins/work/sessions/api.js'
import { openWorld, type World } from '../../../fixtures/session-world.js'

let world: World
let sessions: SessionsApi
/** Sessions that another plugin needs. */
const needed = new Set<string>()

class Other {
  constructor({ needs }: { readonly needs: { readonly sessions: SessionsApi } }) {
    sessions = needs.sessions
  }
}
const other = definePlugin({
  name: 'test.other',
  version: '1.0.0',
  requires: { sessions: Sessions },
  service: async () => Other,
}).surface({
  taps: [
    surfaceOf<unknown>().tap(
      Sessions,
      ({ points }) => points.retiring,
      () =>
        async ({ id }) =>
          needed.has(id) ? new Fault('test_needed', 409, 'needed') : undefined,
    ),
  ],
})

test.before(async () => {
  world = await openWorld({ plugins: [other] })
  await world.agent('plain')
})
test.after(() => world.close())

const later = () => Date.now() + 3_600_000
const status = async (at: string) => (await world.kernel.request('GET', at)).status

test('a stopped session of a removed run is deleted with its folder', async () => {
  const { id, at } = await world.session('plain')
  await world.prompt(at, 'say one')
  assert.is(await sessions.retire(id, later()), 'referred', 'it is active')
  assert.ok((await world.kernel.request('POST', `${at}/stop`)).status < 300)
  const folder = path.join(world.home, 'sessions', id)
  assert.ok(existsSync(folder))
  assert.is(await sessions.retire(id, later()), 'removed')
  assert.not.ok(existsSync(folder))
  assert.is(await status(at), 404)
  assert.is(await sessions.retire(id, later()), 'removed', 'once more')
})

test('a session continued after its run or archived by a user is kept', async () => {
  const { id, at } = await world.session('plain')
  await world.prompt(at, 'say one')
  await world.kernel.request('POST', `${at}/stop`)
  assert.is(await sessions.retire(id, 0), 'kept')
  assert.is((await world.kernel.request('POST', `${at}/archive`)).status < 300, true)
  assert.is(await sessions.retire(id, later()), 'kept')
  assert.is(await status(at), 200)
})

test('a session referenced by another session or a plugin stays until the reference ends', async () => {
  const origin = await world.session('plain')
  await world.prompt(origin.at, 'say one')
  await world.kernel.request('POST', `${origin.at}/stop`)
  needed.add(origin.id)
  assert.is(await sessions.retire(origin.id, later()), 'referred')
  needed.clear()
  const lineage = { parent_session_id: origin.id, root_session_id: origin.id, spawn_depth: 1 } as never
  const info = sessions.get(origin.id)
  assert.ok(info)
  const child = await sessions.create({
    ...{ workspaceId: info.workspaceId, agentName: 'plain', parent: origin.id, lineage },
    actor: { kind: 'operator', id: 'operator' } as never,
  })
  assert.is(await sessions.retire(origin.id, later()), 'referred')
  await sessions.stop(child.id, { reason: 'completed' })
  assert.is(await sessions.retire(child.id, later()), 'removed')
  assert.is(await sessions.retire(origin.id, later()), 'removed')
})

test.run()
