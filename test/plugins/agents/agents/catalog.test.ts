import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Clock, type Db, definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { AgentActivities } from '../../../../plugins/agents/agents/api.js'
import sessions from '../../../../plugins/work/sessions/index.js'
import { activityOf } from '../../../../plugins/work/sessions/lifecycle/activity.js'
import { until } from '../../../harness/until.js'
import { scene } from './agents-scene.js'

// biome-ignore lint/suspicious/noExplicitAny: replies of any shape
const names = (body: any) => body.agents.map((row: any) => row.agent?.name ?? row.name)
const catalog = '/api/agents/catalog?workspace=w'

/** Says that agents of these names are at work. */
function activity(active: () => readonly string[]) {
  const { contribute } = surfaceOf<object>()
  const one = { active: 1, failed: 0, total: 3, runtime_seconds: 9 }
  const plugin = definePlugin({ name: 'busy', version: '1.0.0', service: async () => class {} })
  return plugin.surface({
    registries: [
      contribute(AgentActivities, () => [
        { active: () => new Set(active()), counts: () => new Map(active().map(name => [name, one])) },
      ]),
    ],
  })
}

test('agents have filters, facets over the filtered ones, and activity', async () => {
  let busy: readonly string[] = ['coder']
  const s = await scene({
    plugins: [
      activity(() => {
        if (busy.includes('!')) throw new Error('no idea')
        return busy
      }),
    ],
  })
  await s.write(s.own, 'coder', ['category_path: [Engineering, Code]'])
  await s.write(s.own, 'reviewer', ['category_path: [Engineering, Review]'])
  await s.write(s.homeAgents, 'poet')
  const all = (await s.request('GET', catalog)).body
  assert.equal(names(all), ['coder', 'general', 'poet', 'reviewer'])
  assert.equal(all.facets, { total: 4, active: 1, idle: 3, categories: ['Engineering/Code', 'Engineering/Review'] })
  assert.equal(all.page, { has_more: false, limit: 50, total: 4 })
  assert.equal([all.agents[0].sessions.total, all.agents[1].sessions.total, all.sessions_available], [3, 0, true])
  const filtered = async (query: string) => names((await s.request('GET', `${catalog}&${query}`)).body)
  assert.equal(await filtered('name=poet'), ['poet'])
  assert.equal(await filtered('q=ENGIN'), ['coder', 'reviewer'])
  assert.equal(await filtered('q=OD'), ['coder'])
  assert.equal(await filtered('category=Engineering/Review'), ['reviewer'])
  assert.equal(await filtered('category=engineering'), [])
  assert.equal(await filtered('status=active'), ['coder'])
  const idle = (await s.request('GET', `${catalog}&status=idle&q=e`)).body
  assert.equal([names(idle), idle.facets.total, idle.facets.idle], [['general', 'poet', 'reviewer'], 3, 3])
  busy = ['!']
  const blind = (await s.request('GET', catalog)).body
  assert.equal([blind.agents.length, blind.sessions_available], [4, false])
  assert.is(await s.outcome('GET', `${catalog}&status=idle`), '503 agent_activity_unavailable')
  await s.end()
})

test('sessions of an agent are counted as active until stopped', async () => {
  const s = await scene({ plugins: [sessions] })
  await s.write(s.own, 'coder', ['command: node agent.js'])
  const body = { workspace: 'w', agent_name: 'coder' }
  const made = (await s.request('POST', '/api/sessions', body)).body.session
  const counted = async (status: string) => {
    const { agents, facets } = (await s.request('GET', `${catalog}&status=${status}&name=coder`)).body
    return [agents[0]?.sessions.active, agents[0]?.sessions.total, facets.active, facets.idle]
  }
  assert.equal(await counted('active'), [1, 1, 1, 0])
  await s.request('POST', `/api/workspaces/${s.workspaceId}/sessions/${made.id}/stop`)
  assert.equal(await counted('active'), [undefined, undefined, 0, 0])
  assert.equal(await counted('idle'), [0, 1, 0, 1])
  await s.end()
})

test('a page that is asked for again shows what changed since', async () => {
  let busy: ReadonlySet<string> = new Set()
  let counts = new Map([['coder', { active: 0, failed: 0, total: 1, runtime_seconds: 1 }]])
  const { contribute } = surfaceOf<object>()
  const known = definePlugin({ name: 'known', version: '1.0.0', service: async () => class {} }).surface({
    registries: [contribute(AgentActivities, () => [{ active: () => busy, counts: () => counts }])],
  })
  const s = await scene({ plugins: [known] })
  for (let i = 0; i < 3; i++) await s.write(s.homeAgents, `home-${i}`)
  await s.write(s.own, 'coder', ['model: one', 'command: node agent.js'])
  const page = async (query = '') => (await s.request('GET', `${catalog}${query}`)).body
  const shown = async () => {
    const { agents, facets } = await page()
    assert.equal(await page(), { ...(await page()), agents, facets }, 'asked for twice')
    const { agent, sessions } = agents[0]
    return [agents.length, agent.model, sessions.total, facets.active]
  }
  assert.equal(await shown(), [5, 'one', 1, 0])
  counts = new Map([['coder', { active: 1, failed: 0, total: 2, runtime_seconds: 2 }]])
  assert.equal(await shown(), [5, 'one', 2, 0])
  busy = new Set(['coder'])
  assert.equal(await shown(), [5, 'one', 2, 1])
  await s.write(s.own, 'coder', ['model: two', 'command: node agent.js'])
  assert.equal(await shown(), [5, 'two', 2, 1])
  await s.write(s.homeAgents, 'late')
  assert.equal(await shown(), [6, 'two', 2, 1])
  await rm(path.join(s.homeAgents, 'late'), { recursive: true })
  assert.equal(await shown(), [5, 'two', 2, 1])
  const limits = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
  for (const limit of [...limits, ...limits])
    assert.is((await page(`&limit=${limit}`)).agents.length, Math.min(limit, 5))
  for (const q of ['home', 'coder', 'home']) assert.is((await page(`&q=${q}`)).facets.total, q === 'home' ? 3 : 1)
  await s.end()
})

test('counts of sessions are those of the last transaction, and time of an active one goes on', async () => {
  const s = await scene({ plugins: [sessions] })
  await s.write(s.own, 'coder', ['command: node agent.js'])
  const counted = async () => {
    const { agents, facets } = (await s.request('GET', catalog)).body
    const { total, active } = agents[0].sessions
    return [total, active, facets.active]
  }
  const body = { workspace: 'w', agent_name: 'coder' }
  const at = `/api/workspaces/${s.workspaceId}/sessions`
  assert.equal(
    [await counted(), await counted()],
    [
      [0, 0, 0],
      [0, 0, 0],
    ],
  )
  for (const n of [1, 2]) {
    const { id } = (await s.request('POST', '/api/sessions', body)).body.session
    assert.equal(
      [await counted(), await counted()],
      [
        [n, 1, 1],
        [n, 1, 1],
      ],
    )
    await s.request('POST', `${at}/${id}/stop`)
    assert.equal(
      [await counted(), await counted()],
      [
        [n, 0, 0],
        [n, 0, 0],
      ],
    )
  }
  await s.end()
})

test('the time of a session is counted on as long as it is active', () => {
  const clock = { now: () => now } as Clock
  let [now, transactions, reads] = [10_000, 1, 0]
  const row = { name: 'coder', total: 1, active: 1, failed: 0, last: 1000 }
  const all = (sql: string) => (sql.includes('archived') ? [] : [{ ...row, ms: now + 0 * ++reads }])
  const db = {
    all,
    get transactions() {
      return transactions
    },
  } as unknown as Db
  const { counts } = activityOf(db, clock)
  const seconds = () => counts('ws', ['coder']).get('coder')?.runtime_seconds
  assert.is(seconds(), 10)
  now = 20_000
  assert.is(seconds(), 20)
  row.active = 0
  assert.equal([seconds(), seconds(), reads], [20, 20, 3])
  now = 30_000
  transactions++
  assert.is(seconds(), 30)
})

test('pages list every agent once during changes; a cursor belongs to its filter', async () => {
  const s = await scene()
  for (let i = 0; i < 9; i++) await s.write(s.own, `a${i}`)
  const first = (await s.request('GET', `${catalog}&limit=4&q=a`)).body
  assert.equal([names(first), first.page.has_more], [['a0', 'a1', 'a2', 'a3'], true])
  await s.write(s.own, 'a00')
  await rm(path.join(s.own, 'a3'), { recursive: true })
  const next = encodeURIComponent(first.page.next_cursor)
  const second = (await s.request('GET', `${catalog}&limit=3&q=a&cursor=${next}`)).body
  assert.equal(names(second), ['a4', 'a5', 'a6'])
  for (const query of [`q=b&cursor=${next}`, `cursor=${next}`, 'q=a&cursor=nonsense', 'q=a&cursor=W10']) {
    assert.is(await s.outcome('GET', `${catalog}&${query}`), '400 agent_cursor_invalid', query)
  }
  for (const limit of ['0', '101', 'x'])
    assert.is(await s.outcome('GET', `${catalog}&limit=${limit}`), '400 invalid_query')
  assert.is(await s.outcome('GET', '/api/agents/catalog'), '400 invalid_query')
  assert.is(await s.outcome('GET', '/api/agents/catalog?workspace=none'), '404 workspace_not_found')
  await s.end()
})

test('manual changes are seen: in a small folder at once, in a large one soon, by name at once', async () => {
  const s = await scene()
  const model = async (name: string) => {
    const { agents } = (await s.request('GET', '/api/agents?workspace=w')).body
    return agents.find((one: { name: string }) => one.name === name)?.model
  }
  await s.write(s.own, 'a', ['model: one'])
  assert.is(await model('a'), 'one')
  await s.write(s.own, 'a', ['model: two'])
  assert.is(await model('a'), 'two')
  for (let i = 0; i < 140; i++) await s.write(s.own, `b${i}`)
  await model('a')
  await s.write(s.own, 'a', ['model: six'])
  assert.is((await s.request('GET', '/api/agents/a?workspace=w')).body.agent.model, 'six')
  await s.write(s.own, 'b7', ['model: new'])
  await s.write(s.own, 'c', ['model: new'])
  assert.is(await model('c'), 'new', 'a new name is seen at once')
  await until(async () => (await model('b7')) === 'new', 'the new model')
  await rm(path.join(s.own, 'b7'), { recursive: true })
  assert.is(await model('b7'), undefined, 'a name that is gone is not there')
  await s.end()
})

test('binary, huge, empty and oddly named files are reported and affect no other', async () => {
  const s = await scene()
  await s.write(s.own, 'fine')
  const put = async (name: string, bytes: Uint8Array | string) => {
    await mkdir(path.join(s.own, name), { recursive: true })
    await writeFile(path.join(s.own, name, 'AGENT.md'), bytes)
  }
  await put('binary', Buffer.from([0xff, 0xfe, 0, 1]))
  await put('empty', '')
  await put('huge', Buffer.alloc(600 * 1024, 'x'))
  await put('Fine', '---\nname: fine\n---\nx')
  await put('odd name; rm -rf', '---\nname: x\n---\nx')
  await mkdir(path.join(s.own, 'only-notes'))
  await mkdir(path.join(s.own, 'led-away'))
  await symlink(path.join(s.own, 'nothing'), path.join(s.own, 'led-away', 'AGENT.md'))
  const { agents, diagnostics } = (await s.request('GET', '/api/agents?workspace=w')).body
  assert.equal(names({ agents }), ['fine', 'general'])
  const kinds = diagnostics.map((one: { error_kind: string }) => one.error_kind).sort()
  assert.equal(kinds, ['name', 'name', 'no_frontmatter', 'too_large', 'unreadable', 'unreadable'])
  const { items } = (await s.request('GET', '/api/doctor?only=agents')).body
  assert.is(items.length, 6)
  for (const item of items) {
    assert.is(item.code, 'agent_invalid')
    assert.match(item.message, item.evidence.path)
    assert.match(item.suggested_command, /^svc agent (info [\w-]+|list) --workspace ws_/)
  }
  assert.is(await s.outcome('GET', '/api/agents/Fine?workspace=w'), '422 agent_invalid')
  await s.end()
})

test.run()
