import { writeFile } from 'node:fs/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openStore } from '../../../../kernel/store/index.js'
import archives from '../../../../plugins/desk/archives/index.js'
import { EventReader } from '../../../../testing/index.js'
import { type Reply, temporaryFolder, whileTimePasses } from '../../../harness/kernel.js'
import { type Scene, type SceneOptions, scene } from './scene.js'

const DAY = 24 * 3_600_000
const HOUR = 3_600_000

const open = (more: SceneOptions = {}) => scene({ plugins: [archives], ...more })

/** A task that an agent has completed. */
async function done(world: Scene, more: object = {}): Promise<string> {
  const { task, run } = await world.queued(more)
  const agent = world.agent()
  assert.is((await agent.claim({ run_id: run })).status, 200)
  assert.is((await agent.act('complete', run, { result: { text: `of ${task}` } })).status, 200)
  return task
}

const get = async (world: Scene, url: string): Promise<Reply> => (await world.request('GET', url)).body
const inCatalog = async (world: Scene): Promise<number> => (await get(world, '/api/tasks?limit=1')).page.total

/** Has the daemon look for old tasks until so many are left in the catalog. */
async function swept(world: Scene, left: number): Promise<void> {
  for (let n = 0; (await inCatalog(world)) !== left; n++) {
    if (n > 2000) throw new Error(`${await inCatalog(world)} tasks are left instead of ${left}`)
    await new Promise(resolve => setTimeout(resolve, 2))
    await world.clock.advance(n < 100 ? 60_000 : 10)
  }
}

/** Ids of the events of a task that its stream begins with. */
async function frames(world: Scene, task: string, lastEventId?: string): Promise<string[]> {
  const { timeline } = await get(world, `/api/tasks/${task}/timeline?after_sequence=${lastEventId ?? 0}`)
  const during = <T>(work: Promise<T>) => whileTimePasses(world.clock, work)
  const behind = lastEventId === undefined ? {} : { lastEventId }
  const reader = await EventReader.open(
    { socket: world.kernel.home.socket },
    `/api/tasks/${task}/stream`,
    behind,
    during,
  )
  const ids: string[] = []
  while (ids.length < timeline.length) ids.push((await reader.next()).id ?? '')
  reader.close()
  return ids
}

/** Every page of a list. */
async function listed(world: Scene, query: string): Promise<string[]> {
  const found: string[] = []
  for (let cursor = ''; ; ) {
    const { tasks, page } = await get(world, `/api/tasks?${query}${cursor}`)
    found.push(...tasks.map(({ id }: { id: string }) => id))
    assert.is(page.has_more, page.next_cursor !== undefined)
    if (!page.has_more) return found
    assert.ok(found.length <= 100, 'no page comes twice')
    cursor = `&cursor=${page.next_cursor}`
  }
}

test('an old finished task is shown, listed and found unchanged from the archive', async () => {
  const world = await open()
  const old = await done(world, { title: 'paint the fence' })
  world.clock.jump(1000)
  const child = await done(world, { title: 'a child' })
  const before = {
    detail: await get(world, `/api/tasks/${old}`),
    timeline: await get(world, `/api/tasks/${old}/timeline`),
    runs: await get(world, `/api/tasks/${old}/runs`),
    tree: await get(world, `/api/tasks/${old}/tree`),
  }
  const totals = (await get(world, '/api/status')).tasks
  world.clock.jump(29 * DAY)
  const recent = await done(world, { title: 'paint the door' })
  world.clock.jump(DAY + 1)
  await swept(world, 1)
  const after = {
    detail: await get(world, `/api/tasks/${old}`),
    timeline: await get(world, `/api/tasks/${old}/timeline`),
    runs: await get(world, `/api/tasks/${old}/runs`),
    tree: await get(world, `/api/tasks/${old}/tree`),
  }
  assert.equal(after, before)
  assert.equal(await listed(world, 'limit=1'), [recent, child, old])
  assert.equal(await listed(world, 'limit=2&sort=priority'), [recent, child, old])
  assert.equal(await listed(world, 'query=fence'), [old])
  assert.equal(await listed(world, 'query=paint'), [recent, old])
  assert.equal(await listed(world, 'status=failed'), [])
  assert.ok(totals)
  await world.close()
})

test('an unfinished task, a needed one and members of such a tree stay', async () => {
  const world = await open()
  const { task: queued } = await world.queued({ title: 'queued' })
  const origin = await done(world, { title: 'origin' })
  const { task: waiting } = (await world.post('/api/tasks', { title: 'waits', scope: 'global' })).body
  const made = await world.post(`/api/tasks/${waiting.id}/dependencies`, { depends_on_task_id: origin })
  assert.ok(made.status < 300, JSON.stringify(made.body))
  const parent = (await world.post('/api/tasks', { title: 'parent', scope: 'global' })).body.task.id
  const child = (await world.post(`/api/tasks/${parent}/children`, { title: 'child', scope: 'global' })).body.task.id
  await world.post(`/api/tasks/${child}/cancel`, {})
  const over = await done(world, { title: 'over' })
  world.clock.jump(40 * DAY)
  await swept(world, 5)
  const rows = (await get(world, '/api/tasks?limit=5')).tasks.map(({ id }: { id: string }) => id)
  assert.equal(rows.toSorted(), [queued, origin, waiting.id, parent, child].toSorted())
  assert.is((await get(world, `/api/tasks/${over}`)).task.task.status, 'completed')
  await world.close()
})

test('an archived task is changed only after its tree is restored', async () => {
  const world = await open()
  const parent = (await world.post('/api/tasks', { title: 'parent', scope: 'global' })).body.task.id
  const child = (await world.post(`/api/tasks/${parent}/children`, { title: 'child', scope: 'global' })).body.task.id
  await world.post(`/api/tasks/${parent}/cancel`, {})
  const before = await get(world, `/api/tasks/${parent}`)
  world.clock.jump(31 * DAY)
  await swept(world, 0)
  const refused = await world.request('PATCH', `/api/tasks/${child}`, { title: 'other' })
  assert.equal([refused.status, refused.body.code], [409, 'task_archived'])
  assert.match(JSON.stringify(refused.body), `svc task restore ${child}`)
  assert.is((await world.request('POST', '/api/tasks/task_0000000000000000/restore')).status, 404)
  const back = await world.request('POST', `/api/tasks/${child}/restore`)
  assert.equal([back.status, back.body.task.title], [200, 'child'])
  assert.is(await inCatalog(world), 2)
  assert.equal(await get(world, `/api/tasks/${parent}`), before)
  assert.is((await world.request('PATCH', `/api/tasks/${child}`, { title: 'other' })).status, 200)
  assert.is((await world.request('POST', `/api/tasks/${child}/restore`)).status, 200, 'one that is there stays')
  // Its last activity is new; a month later it is moved once more, as it is now.
  world.clock.jump(31 * DAY)
  await swept(world, 0)
  assert.is((await get(world, `/api/tasks/${child}`)).task.task.title, 'other')
  assert.equal((await listed(world, 'limit=10')).toSorted(), [child, parent].toSorted())
  await world.close()
})

test('an idempotency key is free again once its run is archived, and no run is lost', async () => {
  const world = await open()
  const run = async () => {
    const task = await done(world)
    world.clock.jump(31 * DAY)
    await swept(world, 0)
    return (await get(world, `/api/tasks/${task}/runs`)).runs.length
  }
  assert.equal([await run(), await run()], [1, 1])
  await world.close()
})

test('parts of an archived task are read unchanged: runs, reviews, profile, stream', async () => {
  const world = await open({ listens: true })
  const { task, run } = await world.queued({})
  const agent = world.agent()
  assert.is(
    (await world.request('PUT', `/api/tasks/${task}/execution-profile`, { worker: { mode: 'none' } })).status,
    400,
  )
  const profile = { worker: { mode: 'inherit' }, review: {} }
  assert.is((await world.request('PUT', `/api/tasks/${task}/execution-profile`, profile)).status, 200)
  assert.is((await agent.claim({ run_id: run })).status, 200)
  assert.is((await agent.act('complete', run, { result: { text: 'it is done' } })).status, 200)
  const deadline_at = new Date(world.clock.now() + HOUR).toISOString()
  const reply = await world.post(`/api/task-runs/${run}/reviews`, {
    run_id: run,
    task_id: task,
    deadline_at,
    reason: 'look at it',
  })
  assert.is(reply.status, 201, JSON.stringify(reply.body))
  const review = reply.body.review.review_id
  assert.is((await world.post(`/api/task-reviews/${review}/cancel`, {})).status, 200)
  const urls = [
    `/api/task-runs/${run}`,
    `/api/task-runs/${run}/reviews`,
    `/api/tasks/${task}/reviews`,
    `/api/task-reviews/${review}`,
    `/api/tasks/${task}/execution-profile`,
  ]
  const all = () => Promise.all(urls.map(url => get(world, url)))
  const inspected = async () => {
    const { inspect } = await get(world, `/api/runs/${run}/inspect`)
    const { inspect: of } = await get(world, `/api/tasks/${task}/inspect`)
    return [inspect, of].map(({ as_of: _, current_run: now, recent_runs: runs, ...rest }) => [
      rest,
      now.run_id,
      runs.length,
    ])
  }
  const before = [await all(), await inspected()]
  const streamed = await frames(world, task)
  assert.ok(streamed.length > 3)
  world.clock.jump(31 * DAY)
  await swept(world, 0)
  assert.equal([await all(), await inspected()], before)
  assert.equal(await frames(world, task), streamed)
  assert.equal(await frames(world, task, streamed[1]), streamed.slice(2))
  for (const [method, url] of [
    ['POST', `/api/task-runs/${run}/reviews`],
    ['PUT', `/api/tasks/${task}/execution-profile`],
  ] as const) {
    const { status } = await world.request(
      method,
      url,
      method === 'POST' ? { run_id: run, task_id: task, deadline_at } : profile,
    )
    assert.ok(status === 404 || status === 409, `${method} ${url} changes nothing there: ${status}`)
  }
  assert.is((await world.request('GET', '/api/task-runs/trun_0000000000000000')).status, 404)
  assert.is((await world.request('GET', '/api/task-reviews/trev_0000000000000000')).status, 404)
  assert.is((await world.post(`/api/tasks/${task}/restore`, {})).status, 200)
  assert.equal([await all(), await inspected()], before)
  await world.close()
})

test('a damaged segment affects only its tasks: they are refused, lists omit them, doctor reports it', async () => {
  const home = await temporaryFolder('tasks-damaged')
  const world = await open({ home })
  const old = await done(world)
  world.clock.jump(31 * DAY)
  await swept(world, 0)
  const kept = await done(world, { title: 'recent' })
  await world.kernel.close()
  await writeFile(`${home}/archives/tasks/1.db`, 'no database')
  const again = await open({ home, clock: world.clock })
  const { status, body } = await again.request('GET', `/api/tasks/${old}`)
  assert.equal([status, body.code], [503, 'archive_damaged'])
  assert.match(body.error, 'archives/tasks/1.db')
  assert.equal(await listed(again, 'limit=10'), [kept])
  const { items: findings } = await get(again, '/api/doctor')
  assert.ok(findings.some(({ code }: { code: string }) => code === 'task_archive_unreadable'))
  await again.close()
})

test('text ids of an earlier version and custom ids are found, and restored once', async () => {
  const home = await temporaryFolder('tasks-ids')
  const world = await open({ home })
  const chosen = await done(world, { id: 'my-own-id' })
  const made = await done(world)
  const ids = [chosen, made]
  const runs = await Promise.all(ids.map(async id => (await get(world, `/api/tasks/${id}/runs`)).runs[0].id))
  world.clock.jump(31 * DAY)
  await swept(world, 0)
  await world.kernel.close()
  const store = await openStore({ path: `${home}/svc.db`, now: () => world.clock.now() })
  await store.db.tx(t => {
    for (const [table, texts, all] of [
      ['tasks_archived_task', 'tasks_archived', ids],
      ['tasks_archived_run', 'tasks_archived_part', runs],
    ] as const) {
      assert.ok(t.run(`DELETE FROM ${table}`).changes > 0)
      for (const id of all) t.run(`INSERT OR REPLACE INTO ${texts} (id, segment) VALUES (?, 1)`, [id])
    }
  })
  await store.close()
  const again = await open({ home, clock: world.clock })
  const found = async () => {
    for (const id of ids) assert.is((await again.request('GET', `/api/tasks/${id}`)).status, 200, id)
    for (const id of runs) assert.is((await again.request('GET', `/api/task-runs/${id}`)).status, 200, id)
    assert.equal((await listed(again, 'limit=10')).toSorted(), ids.toSorted())
  }
  await found()
  world.clock.jump(31 * DAY)
  await done(again)
  world.clock.jump(31 * DAY)
  await swept(again, 0)
  for (const id of ids) assert.is((await again.request('GET', `/api/tasks/${id}`)).status, 200, id)
  assert.is((await again.post(`/api/tasks/${chosen}/restore`, {})).status, 200)
  assert.is((await again.post(`/api/tasks/${made}/restore`, {})).status, 200)
  assert.is(await inCatalog(again), 2)
  assert.is((await listed(again, 'limit=10')).length, 3)
  await again.kernel.close()
  const after = await openStore({ path: `${home}/svc.db`, now: () => world.clock.now() })
  for (const table of ['tasks_archived', 'tasks_archived_part'])
    assert.equal(after.db.rows(`SELECT id FROM ${table}`), [], `${table}: all are integers, or back`)
  await after.close()
})

test('0 days archives nothing', async () => {
  const world = await scene({ plugins: [archives], config: { tasks: { archive_after_days: 0 } } })
  await done(world)
  world.clock.jump(400 * DAY)
  await world.clock.advance(HOUR)
  for (let n = 0; n < 20; n++) await new Promise(resolve => setImmediate(resolve))
  assert.is(await inCatalog(world), 1)
  await world.close()
})

test.run()
