import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { definePlugin, type EventType, event, type PluginKernel } from '../../../../kernel/plugin.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import observe from '../../../../plugins/reach/observe/index.js'
import { Logs } from '../../../../plugins/reach/observe/logs/logs.js'
import { EventReader } from '../../../../testing/index.js'
import { boot, type Reply, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

interface Told {
  readonly name: string
  readonly payload?: Readonly<Record<string, unknown>>
  readonly scope?: string
  readonly actor?: { readonly kind: string; readonly id: string }
}

interface World extends TestKernel {
  tell(...told: readonly Told[]): Promise<number>
  logs(query?: string): Promise<Reply>
  types(query: string): Promise<string[]>
  stream(query?: string, lastEventId?: string): Promise<EventReader>
}

const needs = { events: Events }

async function world(): Promise<World> {
  let inside: PluginKernel<typeof needs>
  const types = new Map<string, EventType<Record<string, unknown>>>()
  const typeOf = (name: string) => {
    const type = types.get(name) ?? event(name, v.record(v.string(), v.unknown()))
    types.set(name, type)
    return type
  }
  const teller = definePlugin({
    name: 'teller',
    version: '0.0.1',
    requires: needs,
    service: async () =>
      class {
        constructor(kernel: PluginKernel<typeof needs>) {
          inside = kernel
        }
      },
  }).surface({})
  const svc = await boot({ plugins: [daemon, workspaces, observe, teller], listen: ['socket'] })
  const logs = async (query = '') => {
    const { status, body } = await svc.request('GET', `/api/logs${query}`)
    assert.is(status, 200, JSON.stringify(body))
    return body
  }
  return {
    ...svc,
    tell: (...told) =>
      inside.db.tx(t => {
        let seq = 0
        for (const { name, payload = {}, scope, actor } of told)
          seq = inside.needs.events.emit(t, typeOf(name), payload, {
            scope,
            ...(actor && { actor: { ...actor, origin: 'cli' } }),
          } as never).seq
        return seq
      }),
    logs,
    types: async query => (await logs(query)).events.map(({ type }: { type: string }) => type),
    stream: (query = '', lastEventId) =>
      EventReader.open(
        { socket: svc.kernel.home.socket },
        `/api/logs/stream${query}`,
        lastEventId === undefined ? {} : { lastEventId },
      ),
  }
}

const test = suite<{ world: World }>('events of the daemon')
test.before.each(async context => {
  context.world = await world()
})
test.after.each(({ world }) => world.close())

test('events are filtered by type, type prefix, run, agent, session, actor, outcome and failure', async ({ world }) => {
  const ada = { kind: 'user', id: 'ada' }
  await world.tell(
    { name: 'alpha.made', payload: { run_id: 'run_1', agent_name: 'bob' }, actor: ada },
    { name: 'alpha.failed', payload: { run_id: 'run_1', error: 'no network', session_id: 'ses_1' } },
    { name: 'beta.ended', payload: { status: 'failed', provider: 'claude' } },
    { name: 'beta.ended', payload: { outcome: 'canceled', hook_name: 'guard' } },
  )
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['type=alpha.made', ['alpha.made']],
    ['type=alpha.*', ['alpha.made', 'alpha.failed']],
    ['run=run_1', ['alpha.made', 'alpha.failed']],
    ['agent_name=bob', ['alpha.made']],
    ['session_id=ses_1', ['alpha.failed']],
    ['actor=ada', ['alpha.made']],
    ['actor=user/ada', ['alpha.made']],
    ['actor=agent/ada', []],
    ['actor_kind=user&actor_id=ada', ['alpha.made']],
    ['provider=claude', ['beta.ended']],
    ['outcome=canceled', ['beta.ended']],
    ['component=beta', ['beta.ended', 'beta.ended']],
    ['error_only=true&component=alpha', ['alpha.failed']],
    ['error_only=true&component=beta', ['beta.ended']],
    ['component=beta&limit=1', ['beta.ended']],
    ['component=alpha&since=1h', ['alpha.made', 'alpha.failed']],
    ['component=alpha&since=2999-01-01T00:00:00Z', []],
    ['component=gamma', []],
  ]
  for (const [query, expected] of cases) assert.equal(await world.types(`?${query}`), expected, query)
  const [made] = (await world.logs('?type=alpha.failed')).events
  assert.is(made.summary, 'no network')
  assert.equal(made.content, { run_id: 'run_1', error: 'no network', session_id: 'ses_1' })
})

test('a workspace is named by ID, name or path; an unknown one and an invalid query are refused', async ({ world }) => {
  const root = await temporaryFolder('logs')
  await mkdir(path.join(root, 'w'))
  const made = await world.request('POST', '/api/workspaces', { root_dir: path.join(root, 'w'), name: 'docs' })
  const { id, root_dir: dir } = made.body.workspace
  await world.tell({ name: 'alpha.made', scope: id })
  for (const reference of [id, 'docs', dir])
    assert.equal(await world.types(`?component=alpha&workspace_id=${encodeURIComponent(reference)}`), ['alpha.made'])
  assert.is((await world.request('GET', '/api/logs?workspace_id=nowhere')).body.code, 'workspace_not_found')
  for (const query of ['limit=0', 'limit=1001', 'since=yesterday', 'after_seq=x', 'error_only=maybe'])
    assert.is((await world.request('GET', `/api/logs?${query}`)).status, 400, query)
  await rm(root, { recursive: true })
})

test('the newest events come first, and a page continues after the last position', async ({ world }) => {
  const names = Array.from({ length: 1200 }, (_, n) => ({ name: 'alpha.made', payload: { n } }))
  const last = await world.tell({ name: 'rare.made' }, ...names)
  const newest = await world.logs('?limit=3&component=alpha')
  assert.equal(
    newest.events.map(({ content }: { content: { n: number } }) => content.n),
    [1197, 1198, 1199],
  )
  // What stands far behind in the log is found as well.
  assert.equal(await world.types('?component=rare'), ['rare.made'])
  const read: number[] = []
  for (let after = 0; after < last; ) {
    const page = await world.logs(`?component=alpha&limit=500&after_seq=${after}`)
    read.push(...page.events.map(({ content }: { content: { n: number } }) => content.n))
    after = page.last_seq
  }
  assert.equal(
    read,
    Array.from({ length: 1200 }, (_, n) => n),
  )
})

test('a stream begins at the present, resumes at a position, replays the newest, and filters', async ({ world }) => {
  await world.tell({ name: 'alpha.made', payload: { n: 1 } }, { name: 'alpha.made', payload: { n: 2 } })
  const live = await world.stream('?component=alpha')
  const replayed = await world.stream('?component=alpha&replay=true&limit=1')
  await world.tell({ name: 'beta.made' }, { name: 'alpha.made', payload: { n: 3 } })
  const numberOf = async (reader: EventReader) => {
    const { event: type, id, data } = await reader.next()
    if (type === 'error') throw new Error(JSON.stringify(data))
    return { type, id, n: (data as { content: { n: number } }).content.n }
  }
  const third = await numberOf(live)
  assert.equal([third.type, third.n], ['alpha.made', 3])
  assert.equal([(await numberOf(replayed)).n, (await numberOf(replayed)).n], [2, 3])
  await world.tell({ name: 'alpha.made', payload: { n: 4 } })
  const back = await world.stream('?component=alpha', third.id)
  assert.is((await numberOf(back)).n, 4)
  await world.tell({ name: 'alpha.made', payload: { n: 5 } })
  for (const reader of [live, back]) while ((await numberOf(reader)).n < 5);
  for (const reader of [live, replayed, back]) reader.close()
})

test('a reader with a position ahead of the log learns that it starts again', async ({ world }) => {
  const last = await world.tell({ name: 'alpha.made' })
  const ahead = await world.stream('', `${last + 1000}`)
  const { event: type, data } = await ahead.next()
  assert.equal([type, (data as { to: number }).to >= last], ['reset', true])
  ahead.close()
})

test('a reader behind the retention gets a gap notice and the remaining events', async () => {
  const stored = Array.from({ length: 20 }, (_, n) => ({ ...told, seq: 51 + n, id: `evt_${51 + n}` }))
  const events = {
    last: () => 70,
    list: async ({ after = 0, limit = 200 }) => stored.filter(({ seq }) => seq > after).slice(0, limit),
  }
  const kernel = { needs: { events, sessions: {} }, redact: { value: <T>(value: T) => value }, scope: { defer() {} } }
  const frames = await new Logs(kernel as never).stream({}, '10')
  const stop = new AbortController()
  const seen: unknown[] = []
  for await (const { id, event: type, data } of frames(stop.signal)) {
    seen.push(type === 'gap' ? data : Number(id))
    if (id === '70') break
  }
  stop.abort()
  assert.equal(seen, [{ reason: 'gap', from: 11, to: 50 }, ...stored.map(({ seq }) => seq)])
})

const told = { at: 0, name: 'alpha.made', actor: { kind: 'user', id: 'ada' }, payload: {} }

test.run()
