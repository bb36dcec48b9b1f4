import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { EventReader } from '../../../../testing/index.js'
import { whileTimePasses } from '../../../harness/kernel.js'
import { FakePlatform } from './fake-platform.js'
import { outcome, scene } from './scene.js'

type Scene = Awaited<ReturnType<typeof scene>>

const open = (s: Scene, ids: readonly string[], more = '', lastEventId?: string) =>
  EventReader.open(
    { socket: s.inside().home.socket },
    `/api/bridges/health/stream?bridge_ids=${ids.join(',')}${more}`,
    lastEventId === undefined ? {} : { lastEventId },
    work => whileTimePasses(s.clock, work),
  )

test('the health stream begins with all named bridges and then sends only changes', async () => {
  const platform = new FakePlatform()
  const s = await scene([platform], { listen: ['socket'] })
  const a = await s.create({ display_name: 'a' })
  const b = await s.create({ display_name: 'b' })
  const c = await s.create({ display_name: 'c' })
  for (const { id } of [a, b, c]) await s.reaches(id, 'ready')
  await s.clock.advance(1000)
  const stream = await open(s, [a.id, b.id, a.id, ''])
  const first = await stream.next()
  assert.is(first.event, 'snapshot')
  const { bridge_health: all } = first.data as { bridge_health: Record<string, { status: string }> }
  assert.equal(Object.keys(all).sort(), [a.id, b.id].sort())
  assert.equal(
    Object.values(all).map(({ status }) => status),
    ['ready', 'ready'],
  )
  // A change of one that is not followed is no frame: the next one is of the one that is.
  await platform.host.report(c.id, { status: 'degraded', message: 'not followed' })
  await platform.host.report(b.id, { status: 'degraded', reason: 'rate_limited', message: 'slow down' })
  const second = await stream.next()
  assert.is(second.event, 'changed')
  const { bridge_health: changed } = second.data as {
    bridge_health: Record<string, { status: string; degradation: object }>
  }
  assert.equal(Object.keys(changed), [b.id])
  assert.equal(changed[b.id]?.degradation, { reason: 'rate_limited', message: 'slow down' })
  // What was missed comes to a reader that comes back, and nothing else.
  stream.close()
  await platform.host.report(a.id, { status: 'degraded', message: 'missed' })
  const again = await open(s, [a.id, b.id], '', stream.lastEventId)
  const missed = await again.next()
  assert.is(missed.event, 'changed')
  assert.equal(Object.keys((missed.data as { bridge_health: object }).bridge_health), [a.id])
  await s.request('DELETE', `/api/resources/bridge.instance/${a.id}`, { expected_version: 1 })
  const gone = await again.next()
  assert.equal((gone.data as { deleted: string[] }).deleted, [a.id])
  again.close()
  // A position of another process is none.
  const reset = await open(s, [b.id], '', '17')
  assert.is((await reset.next()).event, 'snapshot')
  reset.close()
  await s.end()
})

test('a stream follows 200 bridges, refuses 201, and hides unknown or out-of-scope ones', async () => {
  const platform = new FakePlatform()
  const s = await scene([platform], { listen: ['socket'] })
  const workspace = await s.workspace()
  const ids: string[] = []
  for (let n = 0; n < 201; n++) ids.push((await s.create({ display_name: `b${n}` })).id)
  const own = await s.create({ scope: 'workspace', workspace_id: workspace })
  const refused = async (all: readonly string[], more = '') =>
    outcome(await s.request('GET', `/api/bridges/health/stream?bridge_ids=${all.join(',')}${more}`))
  assert.is(await refused(ids), '400 bridge_invalid')
  assert.is(await refused([]), '400 bridge_invalid')
  assert.is(outcome(await s.request('GET', '/api/bridges/health/stream')), '400 invalid_query')
  assert.is(await refused([ids[0] as string, 'nosuch']), '404 bridge_not_found')
  assert.is(await refused([ids[0] as string], '&scope=workspace'), '404 bridge_not_found')
  assert.is(await refused([own.id], '&scope=global'), '404 bridge_not_found')
  assert.is(await refused([own.id], '&workspace=nosuch'), '404 workspace_not_found')
  const followed = ids.slice(0, 200)
  for (const id of [followed[0], followed[199]]) await s.reaches(id as string, 'ready')
  const stream = await open(s, [...followed, ...followed])
  const { data } = await stream.next('snapshot')
  assert.is(Object.keys((data as { bridge_health: object }).bridge_health).length, 200)
  // A burst over all of them is told in few frames, each bridge as it is then.
  await Promise.all(followed.map(id => platform.host.report(id, { status: 'degraded', message: 'flood' })))
  const heard = new Map<string, string>()
  let frames = 0
  while (heard.size < 200) {
    const frame = await stream.next('changed')
    frames++
    const { bridge_health } = frame.data as { bridge_health: Record<string, { status: string }> }
    for (const [id, { status }] of Object.entries(bridge_health)) if (status === 'degraded') heard.set(id, status)
  }
  assert.ok(frames <= 5, `${frames} frames`)
  stream.close()
  await s.end()
})

test.run()
