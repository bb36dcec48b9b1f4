import { copyFileSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../../../kernel/clock.js'
import { definePlugin, Fault, surfaceOf } from '../../../../kernel/plugin.js'
import archives from '../../../../plugins/desk/archives/index.js'
import { hooks } from '../../../../plugins/index.js'
import { Sessions } from '../../../../plugins/work/sessions/api.js'
import type { SessionsService } from '../../../../plugins/work/sessions/service.js'
import { eventually, openWorld, type World, type WorldOptions } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

const DAY = 24 * 3_600_000

/** The service of the kernel that runs. */
let service: SessionsService
/** Sessions that another plugin needs. */
const needed = new Set<string>()
const other = definePlugin({
  name: 'test.other',
  version: '1.0.0',
  requires: { sessions: Sessions },
  service: async () =>
    class {
      constructor({ needs }: { needs: Record<string, unknown> }) {
        service = needs.sessions as SessionsService
      }
    },
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

type Pass = (days: number) => Promise<number>

/** @param run `pass` lets days go by and moves what is old; it resolves to the number of sessions moved */
async function withWorld(run: (world: World, pass: Pass) => Promise<void>, options: WorldOptions = {}): Promise<void> {
  let shift = 0
  const clock = { ...systemClock(), now: () => Date.now() + shift }
  const world = await openWorld({ plugins: [archives, other, hooks], clock, ...options })
  const pass: Pass = async days => {
    shift += days * DAY
    await service.context.promptFiles.sweep()
    return service.context.archive.sweep()
  }
  try {
    await world.agent('loads', { flags: '--load' })
    await run(world, pass)
  } finally {
    await world.close()
  }
}

const inCatalog = (id: string) => service.context.table.inCatalog(id)
const get = async (world: World, url: string): Promise<Reply> => {
  const { status, body } = await world.kernel.request('GET', url)
  assert.is(status, 200, `${url}: ${JSON.stringify(body)}`)
  return body
}
const act = async (world: World, method: string, url: string, body?: unknown): Promise<Reply> => {
  const reply = await world.kernel.request(method, url, body)
  assert.ok(reply.status < 300, `${method} ${url}: ${JSON.stringify(reply.body)}`)
  return reply.body
}
/** A session with one turn, stopped by a person. */
async function ended(world: World, body: object = {}): Promise<{ id: string; at: string }> {
  const session = await world.session('loads', { ...body })
  await world.prompt(session.at, 'say one')
  await act(world, 'POST', `${session.at}/stop`)
  return session
}
/** Every page of a list of sessions. */
async function listed(world: World, query: string): Promise<string[]> {
  const found: string[] = []
  for (let cursor = ''; ; ) {
    const { sessions, page } = await get(world, `/api/sessions?${query}${cursor}`)
    found.push(...sessions.map(({ id }: Reply) => id))
    if (!page.has_more) return found
    assert.ok(found.length <= 100, 'no page comes twice')
    cursor = `&cursor=${page.next_cursor}`
  }
}

test('a stopped session that rested long is shown, listed, found and counted as before, from the archive', () =>
  withWorld(async (world, pass) => {
    const fence = await ended(world, { name: 'paint the fence' })
    const door = await ended(world, { name: 'paint the door' })
    const urls = ['', '/events', '/history', '/transcript', '/usage', '/interactions', '/inspect', '/status']
    const read = async () => [
      await get(world, `/api/sessions/${fence.id}`),
      await get(world, `/api/sessions/${fence.id}/owner`),
      ...(await Promise.all(urls.map(url => get(world, `${fence.at}${url}`)))),
    ]
    const counted = async () => {
      const { daemon, sessions } = await get(world, '/api/status')
      return [daemon.total_sessions, sessions.total, sessions.by_status, sessions.by_badge]
    }
    const agent = async () => (await get(world, `/api/agents/loads?workspace=${world.workspaceId}`)).agent
    const before = [await read(), await counted(), await agent()]
    assert.is(await pass(29), 0, 'they are not old enough')
    const fresh = await ended(world, { name: 'paint the gate' })
    assert.is(await pass(2), 2)
    assert.equal(
      [fence, door, fresh].map(({ id }) => inCatalog(id)),
      [false, false, true],
    )
    await act(world, 'DELETE', fresh.at)
    assert.equal([await read(), await counted(), await agent()], before)
    const last = await ended(world, { name: 'paint the gate' })
    const all = [last.id, door.id, fence.id]
    assert.equal(await listed(world, 'limit=1'), all)
    assert.equal(await listed(world, 'limit=2&sort=last_activity'), all)
    assert.equal(await listed(world, `workspace=${world.workspaceId}`), all)
    assert.equal(await listed(world, 'q=FENCE&state=stopped'), [fence.id])
    assert.equal(await listed(world, 'agent=other'), [])
    assert.equal(await listed(world, 'state=active'), [])
    assert.equal(await listed(world, 'archived=true'), [])
    assert.equal(
      (await get(world, '/api/doctor')).items.filter(({ code }: Reply) => /rows_missing/.test(code)),
      [],
    )
    assert.is((await world.kernel.request('GET', '/api/sessions/ses_0000000000000000')).status, 404)
    await world.restart()
    assert.equal(await listed(world, 'limit=1'), all)
    assert.equal(await read(), before[0])
  }))

test('the hook runs of a session of the archive are listed as before', () => {
  const made = { event: 'session.post_create', mode: 'async', executor: { kind: 'subprocess', command: 'true' } }
  return withWorld(
    async (world, pass) => {
      const { id } = await ended(world)
      const runs = async () => (await get(world, `/api/workspaces/${world.workspaceId}/hooks/runs?session=${id}`)).runs
      const before = await eventually(async () => ((await runs()).length > 0 ? await runs() : undefined), 'a hook run')
      assert.is(await pass(31), 1)
      await world.restart()
      assert.equal([inCatalog(id), await runs()], [false, before])
    },
    { config: { hooks: { made } } },
  )
})

test('a session of the archive comes back with what it had when something changes it', () =>
  withWorld(async (world, pass) => {
    const { id, at } = await world.session('loads', { name: 'long' })
    const upload = await world.kernel.kernel.inject({
      ...{ method: 'POST', url: `${at}/attachments`, headers: { 'content-type': 'multipart/form-data; boundary=xYz' } },
      body: Buffer.from(
        '--xYz\r\nContent-Disposition: form-data; name="file"; filename="notes.txt"\r\nContent-Type: text/plain\r\n\r\nof the file\r\n--xYz--\r\n',
      ),
    })
    assert.is(upload.status, 201, upload.body)
    const file = `${at}/attachments/${JSON.parse(upload.body).attachment.id}/bytes`
    const prompt = { text: 'say one', idempotency_key: 'one' }
    await act(world, 'POST', `${at}/prompt`, prompt)
    await world.until(at, ({ type }) => type === 'done')
    await world.restart()
    assert.is(await pass(31), 1, 'it was stopped by the shutdown')
    await act(world, 'PATCH', at, { name: 'renamed' })
    assert.ok(inCatalog(id))
    assert.is((await world.row(id)).name, 'renamed')
    assert.is(await pass(0), 0, 'a request has just used it')
    assert.is(await pass(1), 1)
    assert.is((await get(world, at)).session.name, 'renamed')
    assert.is((await act(world, 'POST', `${at}/prompt`, prompt)).prompt.replayed, true, 'a repetition is known')
    assert.is(await pass(2), 1)
    assert.is((await world.kernel.request('GET', file)).status, 200)
    assert.ok(inCatalog(id))
    assert.is(await pass(2), 1)
    await world.prompt(at, 'say two')
    assert.is((await world.events(at)).filter(({ type }) => type === 'user_message').length, 2)
    assert.is((await get(world, `/api/sessions/${id}`)).session.state, 'active')
  }))

test('what is in use or needed stays, a removed one goes, and 0 days moves nothing', () =>
  withWorld(async (world, pass) => {
    const active = await world.session('loads')
    const [wanted, gone, left] = [await ended(world), await ended(world), await ended(world)]
    needed.add(wanted.id)
    assert.is(await pass(31), 2)
    assert.equal(
      [active, wanted, gone, left].map(({ id }) => inCatalog(id)),
      [true, true, false, false],
    )
    const folder = (id: string) => existsSync(path.join(world.home, 'sessions', id))
    await act(world, 'DELETE', gone.at)
    assert.not.ok(folder(gone.id))
    assert.is((await world.kernel.request('GET', gone.at)).status, 404)
    assert.is(await service.retire(left.id, Number.MAX_SAFE_INTEGER), 'removed', 'with the run that made it')
    assert.not.ok(folder(left.id))
    needed.clear()
    assert.is(await pass(1), 1)
    await act(world, 'DELETE', active.at)
    await act(world, 'DELETE', `/api/workspaces/${world.workspaceId}`)
    for (let n = 0; folder(wanted.id); n++) {
      assert.ok(n < 2000, 'the sessions of a deleted workspace are removed')
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    assert.equal(await listed(world, 'limit=10'), [])
    assert.is(service.context.archive.sums().sessions, 0)
  }).then(() =>
    withWorld(
      async (world, pass) => {
        const { id } = await world.session('loads')
        await act(world, 'POST', `/api/workspaces/${world.workspaceId}/sessions/${id}/stop`)
        assert.is(await pass(400), 0)
        assert.ok(inCatalog(id))
      },
      { config: { session: { archive_after_days: 0 } } },
    ),
  ))

test('a kill between archive and catalog loses no session and shows none twice, whichever way it moved', () =>
  withWorld(async (world, pass) => {
    const { id, at } = await ended(world, { name: 'before' })
    const db = path.join(world.home, 'svc.db')
    const segment = path.join(world.home, 'archives', 'sessions', '1.db')
    const saved = path.join(world.root, 'saved')
    const putBack = (file: string) => {
      for (const suffix of ['-wal', '-mark']) rmSync(`${file}${suffix}`, { force: true })
      copyFileSync(saved, file)
    }
    const once = async (name: string) => {
      assert.equal(await listed(world, 'limit=1'), [id])
      assert.is((await get(world, at)).session.name, name)
      assert.is((await get(world, '/api/status')).daemon.total_sessions, 1)
      assert.ok((await world.events(at)).some(({ type }) => type === 'user_message'))
    }
    // The segment is written, the catalog is as before.
    await world.restart({ meanwhile: () => copyFileSync(db, saved) })
    assert.is(await pass(31), 1)
    await world.restart({ meanwhile: () => putBack(db) })
    assert.ok(inCatalog(id))
    await once('before')
    await act(world, 'PATCH', at, { name: 'after' })
    assert.is(await pass(1), 1)
    await once('after')
    // The catalog has it again, and the segment still.
    await world.restart({ meanwhile: () => copyFileSync(segment, saved) })
    await act(world, 'PATCH', at, { name: 'last' })
    await world.restart({ meanwhile: () => putBack(segment) })
    await once('last')
    assert.is(await pass(1), 1)
    assert.not.ok(inCatalog(id))
    await once('last')
  }))

test('a damaged segment costs its own sessions: they are refused with its name, lists leave them out, doctor names it', () =>
  withWorld(async (world, pass) => {
    const { at } = await ended(world)
    assert.is(await pass(31), 1)
    const segment = path.join(world.home, 'archives', 'sessions', '1.db')
    await world.restart({ meanwhile: () => writeFileSync(segment, 'no database') })
    const recent = await ended(world)
    for (const [method, body] of [['GET'], ['PATCH', { name: 'other' }]] as const) {
      const refused = await world.kernel.request(method, at, body)
      assert.equal([refused.status, refused.body.code], [503, 'archive_damaged'])
      assert.match(refused.body.error, 'archives/sessions/1.db')
    }
    assert.equal(await listed(world, 'limit=10'), [recent.id])
    const { items } = await get(world, '/api/doctor')
    assert.ok(items.some(({ code }: Reply) => code === 'session_archive_unreadable'))
  }))

test.run()
