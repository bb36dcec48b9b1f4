import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { describe } from '../../../kernel/kit/annotations/index.js'
import { openStore } from '../../../kernel/platform.js'
import {
  type Actor,
  definePlugin,
  event,
  kind,
  ok,
  operator,
  type PluginKernel,
  Requests,
  routeOf,
  surfaceOf,
} from '../../../kernel/plugin.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import { AuditedEvents } from '../../../plugins/platform/audit/api.js'
import { auditMigrations, Chain, NOBODY } from '../../../plugins/platform/audit/chain.js'
import type { NewEntry } from '../../../plugins/platform/audit/entry.js'
import audit from '../../../plugins/platform/audit/index.js'
import { Events } from '../../../plugins/platform/events/api.js'
import resources from '../../../plugins/platform/resources/index.js'
import type { AuditEntry } from '../../../schemas/daemon/audit.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'

const Note = kind({ name: 'acme.note', spec: v.object({ text: v.string() }), maxBytes: 1024, onDemand: true })
const notes = definePlugin({ name: 'notes', version: '1' }).surface({ kinds: [Note] })
const plugins = [audit, daemon, resources, notes]
const spec = (text: string, expected_version: number) => ({
  scope: { kind: 'global' },
  spec: { text },
  expected_version,
})
const put = (host: Awaited<ReturnType<typeof boot>>, id: string, text: string, version: number) =>
  host.request('PUT', `/api/resources/acme.note/${id}`, spec(text, version))
const entriesOf = async (host: Awaited<ReturnType<typeof boot>>, query = ''): Promise<AuditEntry[]> =>
  (await host.request('GET', `/api/audit${query}`)).body.entries

/** Changes the tables of the audit of a stopped home, as somebody can who may write the database. */
async function tamper(home: string, ...statements: readonly string[]): Promise<void> {
  const store = await openStore({ path: path.join(home, 'svc.db'), now: () => 0 })
  const db = store.db.bind({ name: 'audit', tables: 'audit' })
  await db.tx(t => {
    for (const sql of statements) t.run(sql)
  })
  await store.close()
}

test('a change of a record is an entry with actor, origin, request, event and both digests', async () => {
  const host = await boot({ plugins })
  await put(host, 'one', 'a', 0)
  await put(host, 'one', 'b', 1)
  await put(host, 'two', 'a', 0)
  await host.request('DELETE', '/api/resources/acme.note/one', { expected_version: 2 })
  const [removed, other, changed, made] = (await entriesOf(host, '?action=record')) as [
    AuditEntry,
    AuditEntry,
    AuditEntry,
    AuditEntry,
  ]
  assert.equal(
    [made, changed, other, removed].map(({ action, subject, version }) => [action, subject, version]),
    [
      ['record.put', 'acme.note/one', 1],
      ['record.put', 'acme.note/one', 2],
      ['record.put', 'acme.note/two', 1],
      ['record.deleted', 'acme.note/one', 2],
    ],
  )
  for (const entry of [made, changed, removed]) {
    assert.equal(entry.actor, { kind: 'human', id: 'operator' })
    assert.is(entry.origin, 'uds')
    assert.match(entry.cause ?? '', /^req_[0-9a-f]{16}$/)
  }
  assert.is(made.request, 'PUT /api/resources/{kind}/{id}')
  assert.match(made.event ?? '', /^evt_/)
  assert.equal([made.before, changed.before, removed.before], [undefined, made.after, changed.after])
  assert.is(removed.after, undefined)
  assert.is(other.after, made.after, 'equal content has equal digests')
  await host.close()
})

test('a refused change leaves no entry', async () => {
  const host = await boot({ plugins })
  await put(host, 'one', 'a', 0)
  assert.is((await put(host, 'one', 'b', 7)).status, 409)
  assert.is((await host.request('PUT', '/api/resources/acme.note/three', spec('x', 5))).status, 404)
  assert.is((await entriesOf(host, '?action=record')).length, 1)
  await host.close()
})

test('switches of the daemon and events named by a plugin are entries', async () => {
  const Rung = event('acme.rung', v.object({ times: v.number() }))
  const Silent = event('acme.silent', v.object({}))
  const { contribute } = surfaceOf<unknown>()
  const bell = definePlugin({ name: 'bell', version: '1', requires: { events: Events } }).surface({
    events: [Rung, Silent],
    registries: [contribute(AuditedEvents, () => [Rung.name])],
    services: [
      {
        name: 'ring',
        run: async (self, signal) => {
          const { db, needs } = self as unknown as {
            db: { tx(fn: (t: never) => unknown): Promise<unknown> }
            needs: { events: { emit(t: unknown, type: unknown, payload: unknown, options: unknown): unknown } }
          }
          await db.tx(t => {
            needs.events.emit(t, Rung, { times: 3 }, { subject: 'bell' })
            needs.events.emit(t, Silent, {}, {})
          })
          if (!signal.aborted) await new Promise(done => signal.addEventListener('abort', done, { once: true }))
        },
      },
    ],
  })
  const host = await boot({ plugins: [...plugins, bell] })
  await host.request('POST', '/api/drain')
  await host.request('POST', '/api/undrain')
  const seen = await entriesOf(host)
  const drained = seen.find(({ action }) => action === 'daemon.draining')
  assert.is(drained?.request, 'POST /api/drain')
  assert.is(drained?.origin, 'uds')
  assert.ok(seen.some(({ action }) => action === 'daemon.active'))
  assert.is(seen.find(({ action }) => action === 'acme.rung')?.subject, 'bell')
  assert.is(
    seen.find(({ action }) => action === 'acme.silent'),
    undefined,
  )
  await host.close()
})

test('the configuration file is an entry when changed, also while no daemon ran, and not at every start', async () => {
  const home = await temporaryFolder('home')
  const settle = async (config: unknown) => {
    await writeFile(`${home}/config.json`, JSON.stringify(config))
    const host = await boot({ plugins, home })
    const found = await entriesOf(host, '?action=config')
    await host.close()
    return found
  }
  assert.is((await settle({})).length, 1)
  assert.is((await settle({})).length, 1)
  const [second, first] = await settle({ log: { level: 'warn' } })
  assert.equal([second?.subject, second?.origin, second?.before], ['config.json', 'file', first?.after])
  await rm(home, { recursive: true })
})

test('no stored data reveals a short secret: digests are keyed by the home', async () => {
  const one = await boot({ plugins })
  const two = await boot({ plugins })
  await put(one, 'one', '1234', 0)
  await put(two, 'one', '1234', 0)
  const [a] = await entriesOf(one, '?action=record')
  const [b] = await entriesOf(two, '?action=record')
  assert.match(a?.after ?? '', /^hmac:[0-9a-f]{64}$/)
  assert.is.not(a?.after, b?.after)
  assert.not.match(JSON.stringify(a), /1234"/)
  await one.close()
  await two.close()
})

test('filters and pages cover every entry once', async () => {
  const clock = new VirtualClock()
  const host = await boot({ plugins, clock })
  for (let n = 0; n < 7; n++) {
    if (n === 4) await clock.advance(60_000)
    await put(host, `n${n}`, 'a', 0)
  }
  const since = new Date(clock.now()).toISOString()
  assert.is((await entriesOf(host, `?action=record&since=${since}`)).length, 3)
  assert.is((await entriesOf(host, '?actor=operator&action=record.put')).length, 7)
  assert.is((await entriesOf(host, '?actor=nobody')).length, 0)
  assert.is((await entriesOf(host, '?subject=acme.note/n3')).length, 1)
  assert.is((await entriesOf(host, '?subject=acme.note')).length, 7)
  assert.is((await entriesOf(host, '?subject=acme')).length, 0)
  const seen: string[] = []
  let cursor = ''
  do {
    const { body } = await host.request('GET', `/api/audit?action=record&limit=3${cursor && `&cursor=${cursor}`}`)
    assert.is(body.page.total, 7)
    seen.push(...body.entries.map((entry: AuditEntry) => entry.subject))
    cursor = body.page.next_cursor ?? ''
  } while (cursor)
  assert.equal(
    seen,
    Array.from({ length: 7 }, (_, n) => `acme.note/n${6 - n}`),
  )
  assert.is((await host.request('GET', '/api/audit?cursor=x')).body.code, 'invalid_cursor')
  await host.close()
})

const alterations: readonly (readonly [what: string, sql: string, problem: RegExp, seq: number])[] = [
  ['an altered actor', "UPDATE audit_entry SET actor_id = 'eve' WHERE seq = 3", /altered/, 3],
  ['an altered digest', "UPDATE audit_entry SET after = 'hmac:0' WHERE seq = 4", /altered/, 4],
  ['an altered hash', "UPDATE audit_entry SET hash = 'a' WHERE seq = 2", /altered/, 2],
  ['an entry removed from the middle', 'DELETE FROM audit_entry WHERE seq = 3', /missing/, 3],
  ['entries removed from the beginning', 'DELETE FROM audit_entry WHERE seq <= 2', /missing/, 1],
  ['entries removed from the end', 'DELETE FROM audit_entry WHERE seq > 4', /missing/, 5],
  [
    'two swapped entries',
    'UPDATE audit_entry SET subject = CASE seq WHEN 3 THEN (SELECT subject FROM audit_entry WHERE seq = 4) ELSE (SELECT subject FROM audit_entry WHERE seq = 3) END WHERE seq IN (3, 4)',
    /altered/,
    3,
  ],
  [
    'a forged checkpoint',
    'INSERT INTO audit_checkpoint (one, seq, hash) SELECT 1, seq, hash FROM audit_entry WHERE seq = 2',
    /altered|missing|no entry records/,
    2,
  ],
]

for (const [what, sql, problem, at] of alterations) {
  test(`verify names the first broken entry of ${what}`, async () => {
    const home = await temporaryFolder('home')
    const before = await boot({ plugins, home })
    for (let n = 0; n < 6; n++) await put(before, `n${n}`, 'a', 0)
    const whole = (await before.request('GET', '/api/audit/verify')).body
    assert.is(whole.status, 'ok')
    assert.is(whole.head, (await entriesOf(before))[0]?.hash)
    await before.close()
    await tamper(home, sql, ...(what === 'a forged checkpoint' ? ['DELETE FROM audit_entry WHERE seq <= 2'] : []))
    const host = await boot({ plugins, home })
    const { body } = await host.request('GET', '/api/audit/verify')
    assert.is(body.status, 'broken')
    assert.match(body.broken.problem, problem)
    assert.is(body.broken.seq, at)
    await host.close()
    await rm(home, { recursive: true })
  })
}

test('a completely replaced chain is found by a recorded hash', async () => {
  const host = await boot({ plugins })
  await put(host, 'one', 'a', 0)
  const { head } = (await host.request('GET', '/api/audit/verify')).body
  await put(host, 'two', 'a', 0)
  assert.is((await host.request('GET', `/api/audit/verify?expect=${head}`)).body.status, 'ok')
  const { body } = await host.request('GET', `/api/audit/verify?expect=${'0'.repeat(63)}1`)
  assert.match(body.broken.problem, /no entry with the expected hash/)
  await host.close()
})

test('pruning by count and by age leaves a verifiable chain that attests its start', async () => {
  const home = await temporaryFolder('home')
  const store = await openStore({ path: path.join(home, 'svc.db'), now: () => 0 })
  await store.migrate('audit', auditMigrations)
  const db = store.db.bind({ name: 'audit', tables: 'audit' })
  const chain = new Chain(db, { entries: 40, chunk: 10, maxAgeMs: 1000, confirmedMs: [500, 2000] })
  const entry = (at: number): NewEntry => ({ ...NOBODY, at, action: 'test.made', subject: `at ${at}` })
  for (let n = 0; n < 300; n++) {
    await db.tx(t => chain.append(t, entry(n)))
    const { status } = await chain.verify()
    if (status !== 'ok') assert.is(status, 'ok', `after ${n}`)
  }
  const all = { actor: undefined, action: undefined, subject: undefined, since: undefined }
  const kept = chain.count(all)
  assert.ok(kept >= 40 && kept <= 52, `${kept} entries`)
  assert.is(chain.page(all, 1)[0]?.subject, 'at 299')
  const pruneAt = async (now: number) => {
    while (await db.tx(t => chain.prune(t, now)));
    return chain.count(all)
  }
  // A clock that leaps ahead takes nothing with it, until entries of its time are old enough to confirm it.
  assert.is(await pruneAt(5000), kept)
  await db.tx(t => chain.append(t, entry(5000)))
  assert.is(await pruneAt(5400), kept + 1)
  assert.ok((await pruneAt(5500)) < 10)
  assert.is((await chain.verify()).status, 'ok')
  await db.tx(t => t.run("UPDATE audit_checkpoint SET hash = 'f'"))
  assert.is((await chain.verify()).status, 'broken')
  await store.close()
  await rm(home, { recursive: true })
})

test('a caller limited to a part of the daemon may not read the audit', async () => {
  const requests: { readonly as: object; readonly url: string }[] = []
  const statuses: number[] = []
  const asking = definePlugin({ name: 'asking', version: '1', requires: { request: Requests } }).surface({
    services: [
      {
        name: 'ask',
        run: async (self, signal) => {
          const { needs } = self as unknown as {
            needs: { request(request: object, as: object): Promise<{ status: number }> }
          }
          for (const limits of [{}, { kind: 'extension' }, { maxScope: { kind: 'workspace', id: 'ws_1' } }])
            for (const url of ['/api/audit', '/api/audit/verify', '/api/audit/why?id=x'])
              requests.push({ as: { ...operator, ...limits }, url })
          for (const { as, url } of requests) statuses.push((await needs.request({ method: 'GET', url }, as)).status)
          if (!signal.aborted) await new Promise(done => signal.addEventListener('abort', done, { once: true }))
        },
      },
    ],
  })
  const host = await boot({ plugins: [...plugins, asking] })
  while (statuses.length < 9) await new Promise(resolve => setImmediate(resolve))
  assert.equal(statuses, [200, 200, 404, ...Array(6).fill(403)])
  await host.close()
})

test('why traces a record and an event back to the request, and reports the start of a chain', async () => {
  const host = await boot({ plugins })
  await put(host, 'one', 'a', 0)
  await put(host, 'one', 'b', 1)
  const [second, first] = (await entriesOf(host, '?subject=acme.note/one')) as [AuditEntry, AuditEntry]
  const why = async (id: string) => (await host.request('GET', `/api/audit/why?id=${encodeURIComponent(id)}`)).body
  for (const [id, entry] of [
    ['acme.note/one@1', first],
    ['acme.note/one@2', second],
    ['acme.note/one', second],
    ['one', second],
    [first.event as string, first],
  ] as const) {
    const { chain, complete, end } = await why(id)
    assert.equal([complete, end], [true, 'a request'], id)
    assert.is(chain[0].id, entry.event, id)
    const request = chain.at(-1)
    assert.equal(
      [request.id, request.what, request.actor, request.origin],
      [entry.cause, 'PUT /api/resources/{kind}/{id}', 'human/operator', 'uds'],
      id,
    )
  }
  assert.is((await why(first.cause as string)).chain[0].what, 'PUT /api/resources/{kind}/{id}')
  assert.is((await why('evt_0000000000000000')).code, 'why_not_found')
  assert.is((await why('acme.note/one@9')).code, 'why_not_found')
  const started = (await entriesOf(host, '?action=daemon.started'))[0]
  const own = await why(started?.event as string)
  assert.equal([own.complete, own.end], [true, 'daemon/daemon, on its own'])
  await host.close()
})

/** Things whose later events have no cause, as those of sessions and of runs of tasks. */
function thingsPlugin() {
  const Told = event('acme.told', v.looseObject({}))
  const needs = { events: Events }
  class Service {
    constructor(readonly kernel: PluginKernel<typeof needs>) {}
    tell(payload: object, subject: string, actor?: Actor) {
      return this.kernel.db.tx(
        t =>
          void this.kernel.needs.events.emit(t, Told, payload, {
            subject,
            ...(actor && { actor, cause: actor.cause }),
          }),
      )
    }
  }
  const own = routeOf<Service>(describe('Test'))
  const tell = async (self: Service, id: string, actor: Actor) => {
    await self.tell({ run_id: `trun_${id.slice(-16)}` }, id, actor)
    await self.tell({ status: 'asks' }, id)
    return ok({ thing: { id } })
  }
  return definePlugin({ name: 'things', version: '1', requires: needs, service: async () => Service }).surface({
    events: [Told],
    routes: [
      own({
        method: 'POST',
        path: '/api/sessions/{id}',
        summary: 'Make a thing',
        replies: { 200: v.any() },
        handle: (self, { params, actor }) => tell(self, params.id, actor),
      }),
      own({
        method: 'POST',
        path: '/api/sessions/{id}/stop',
        summary: 'Stop a thing',
        replies: { 200: v.any() },
        handle: async (self, { params }) => {
          await self.tell({ status: 'stopped' }, params.id)
          return ok({})
        },
      }),
    ],
  })
}

test('a session and a task run lead to their requests, which the audit lists by any of their ids', async () => {
  const host = await boot({ plugins: [...plugins, thingsPlugin()] })
  const why = async (id: string) => (await host.request('GET', `/api/audit/why?id=${encodeURIComponent(id)}`)).body
  const id = 'ses_00000000000000aa'
  await host.request('POST', `/api/sessions/${id}`)
  const requests = ({ chain }: { chain: { what: string }[] }) =>
    chain.map(({ what }) => what).filter(what => /^POST/.test(what))
  const begun = await why(id)
  assert.equal([begun.complete, begun.end, begun.chain[0].what], [true, 'a request', 'acme.told: asks'])
  assert.equal(requests(begun), ['POST /api/sessions/{id}'])
  await host.request('POST', `/api/sessions/${id}/stop`)
  assert.equal(requests(await why(id)), ['POST /api/sessions/{id}/stop', 'POST /api/sessions/{id}'])
  assert.equal(requests(await why('trun_00000000000000aa')), ['POST /api/sessions/{id}'])
  assert.is((await why('ses_00000000000000ab')).code, 'why_not_found')

  const listed = async (subject: string) =>
    (await entriesOf(host, `?subject=${encodeURIComponent(subject)}`)).map(({ action }) => action)
  assert.equal(await listed(id), ['sessions.stop', 'sessions.created'])
  assert.equal(await listed('ses_00000000000000a'), [])
  const [stop] = await entriesOf(host, `?subject=${id}`)
  assert.equal(await listed(String(stop?.cause)), ['sessions.stop'])
  assert.equal(requests(await why(String(stop?.cause))), ['POST /api/sessions/{id}/stop'])
  await host.close()
})

test.run()
