import { readFileSync } from 'node:fs'
import path from 'node:path'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Db, definePlugin } from '../../../../kernel/plugin.js'
import { GivenOffers } from '../../../../plugins/reach/network-nats/offers/given-offers.js'
import {
  moved,
  OFFER_MOVES,
  OFFER_STATES,
  type OfferMove,
  type OfferState,
  OPEN,
} from '../../../../plugins/reach/network-nats/offers/states.js'
import { type GivenRow, givenOffers, OFFER_TABLES } from '../../../../plugins/reach/network-nats/offers/table.js'
import { identityOf, newSecret, signed } from '../../../../plugins/reach/network-nats/proof.js'
import { NatsServer } from '../../../fixtures/nats-server.js'
import { type Half, openHalf, openRealm } from '../../../fixtures/network-halves.js'
import { eventually } from '../../../fixtures/session-world.js'
import { boot, type Reply } from '../../../harness/kernel.js'

let server: NatsServer
let halves: Half[] = []
test.before(async () => {
  server = await NatsServer.start()
})
test.after.each(async () => {
  for (const half of halves) await half.close()
  halves = []
  await atServer(async ({ manager }) => void (await manager.streams.delete('svc_test_offers').catch(() => {})))
})
test.after(() => server.close())

const open = async (...names: string[]) => {
  halves = await openRealm(server.url, names)
  return halves as [Half, Half, Half]
}
type Tools = {
  readonly manager: Awaited<ReturnType<typeof jetstreamManager>>
  readonly client: ReturnType<typeof jetstream>
  readonly connection: Awaited<ReturnType<typeof connect>>
}
/** Acts as something that has access to the server. */
async function atServer<T>(work: (tools: Tools) => Promise<T>): Promise<T> {
  const connection = await connect({ servers: server.url.slice('nats://'.length) })
  try {
    return await work({ connection, manager: await jetstreamManager(connection), client: jetstream(connection) })
  } finally {
    await connection.drain()
  }
}

const call = async (half: Half, method: string, url: string, body?: unknown, headers: Record<string, string> = {}) => {
  const reply = await half.kernel.kernel.inject({ method, url, headers, ...(body === undefined ? {} : { body }) })
  return { status: reply.status, body: reply.body === '' ? undefined : JSON.parse(reply.body) }
}
const accept = (half: Half, more: object = {}) =>
  call(half, 'PUT', '/api/network/remote/acceptance', { agent: 'coder', workspace: half.workspaceId, ...more })
const makeTask = async (half: Half, title = 'count the words') => {
  const body = { title, description: 'in all files', scope: 'workspace', workspace: half.workspaceId }
  return (await call(half, 'POST', '/api/tasks', body)).body.task.id as string
}
const offer = (half: Half, task: string) => call(half, 'POST', '/api/network/remote/offers', { task })
const offers = async (half: Half): Promise<Reply[]> => (await half.ask('GET', '/offers')).offers
const isIn = (half: Half, state: string, attempt = 1) =>
  eventually(
    async () => (await offers(half)).find(one => one.state === state && one.attempt === attempt),
    `${half.name} to have an offer that is ${state}, attempt ${attempt}`,
  )
const run = async (half: Half, id: string) => (await call(half, 'GET', `/api/task-runs/${id}`)).body.run.run
const status = async (half: Half, task: string) => (await call(half, 'GET', `/api/tasks/${task}`)).body.task.task.status

/** Lets the leases of a daemon expire; an event of its tasks has it look at them. */
async function lapse(half: Half) {
  half.skip(10 * 60_000)
  const task = await makeTask(half, 'of no interest')
  await call(half, 'POST', `/api/tasks/${task}/start`, {})
  assert.is((await call(half, 'POST', `/api/tasks/${task}/cancel`, {})).status, 200)
}

/** An agent of the daemon that took an offer works on it. */
async function work(half: Half, how: 'complete' | 'fail', body: object) {
  const { run_id: runId } = await eventually(
    async () => (await offers(half)).find(one => one.direction === 'taken' && one.run_id),
    `${half.name} to have a run`,
  )
  const headers = half.agent()
  const claim = await call(half, 'POST', '/api/agent/tasks/claim-next', { run_id: runId, scope: 'workspace' }, headers)
  assert.is(claim.status, 200, JSON.stringify(claim.body))
  const ended = await call(half, 'POST', `/api/agent/tasks/${runId}/${how}`, body, headers)
  assert.is(ended.status, 200, JSON.stringify(ended.body))
  return (await call(half, 'GET', `/api/tasks/${claim.body.claim.task.id}`)).body.task.task
}

test('an offered task is done once by an accepting daemon, and its result arrives', async () => {
  const [ada, bob] = await open('ada', 'bob')
  assert.is((await accept(bob)).status, 200)
  const task = await makeTask(ada)
  assert.is((await offer(ada, task)).status, 201)
  const taken = await isIn(ada, 'taken')
  assert.equal([taken.peer, taken.task_id, taken.title], ['bob', task, 'count the words'])
  assert.equal((await run(ada, taken.run_id)).claimed_by, { kind: 'network_peer', ref: 'bob' })
  assert.is((await call(ada, 'POST', '/api/agent/tasks/claim-next', { scope: 'workspace' }, ada.agent())).status, 204)
  const theirs = await work(bob, 'complete', { result: { words: 5 } })
  assert.equal([theirs.title, theirs.description], ['count the words', 'in all files'])
  const done = await isIn(ada, 'completed')
  assert.equal((await run(ada, done.run_id)).result, { words: 5 })
  assert.is(await status(ada, task), 'completed')
  await isIn(bob, 'completed')
  await eventually(
    () => atServer(async ({ manager }) => (await manager.streams.info('svc_test_offers')).state.messages === 0),
    'the stream to have no offer',
  )
})

test('concurrent results are all accepted', async () => {
  const [ada, bob] = await open('ada', 'bob')
  // More than the listeners that a signal may have before it warns of a leak.
  const COUNT = 12
  const warnings: Error[] = []
  const warned = (warning: Error) => void warnings.push(warning)
  process.on('warning', warned)
  await accept(bob, { at_once: COUNT })
  for (let n = 0; n < COUNT; n++) await offer(ada, await makeTask(ada, `part ${n}`))
  const taken = await eventually(async () => {
    const all = (await offers(bob)).filter(one => one.run_id)
    return all.length === COUNT && all
  }, 'bob to have a run for each')
  await Promise.all(
    taken.map(async ({ run_id: runId }) => {
      const headers = bob.agent()
      await call(bob, 'POST', '/api/agent/tasks/claim-next', { run_id: runId, scope: 'workspace' }, headers)
      await call(bob, 'POST', `/api/agent/tasks/${runId}/complete`, { result: { of: runId } }, headers)
    }),
  )
  const ended = await eventually(async () => {
    const all = await offers(ada)
    return all.every(one => one.ended_at) && all
  }, 'all offers to have ended')
  assert.equal(
    ended.map(one => [one.state, one.error ?? undefined]),
    ended.map(() => ['completed', undefined]),
  )
  process.off('warning', warned)
  assert.equal(warnings, [])
})

/** A store with the tables of offers alone. */
async function openTables() {
  let found: Db | undefined
  class Tables {
    constructor(kernel: { readonly db: Db }) {
      found = kernel.db
    }
  }
  const tables = { tables: [{ id: '001', sql: OFFER_TABLES }] }
  const plugin = definePlugin({ name: 'network-nats', version: '0.0.1', service: async () => Tables }).surface({
    ...tables,
    services: [{ name: 'tables', run: async (_self: Tables, signal: AbortSignal) => void signal }],
  })
  const kernel = await boot({ plugins: [plugin] })
  return { db: found as unknown as Db, close: () => kernel.close() }
}

test('a result accepted while offers are reconciled is not withdrawn', async () => {
  const { db, close } = await openTables()
  const runs = new Map<string, object>([
    ['trun_a', { status: 'running', lease_until: '2020-01-01T00:00:00Z' }],
    ['trun_b', { status: 'running', lease_until: '2040-01-01T00:00:00Z' }],
  ])
  const put = (name: 'a' | 'b') => ({
    ...{ id: `offer_${name}`, taskId: `task_${name}`, runId: `trun_${name}`, title: name, brief: '', state: 'taken' },
    ...{ attempt: 1, receipts: 1, daemon: 'd', peer: 'bob', offeredAt: 1, expiresAt: 9e12 },
  })
  await db.tx(t => {
    for (const name of ['a', 'b'] as const) givenOffers.insert(t, put(name) as GivenRow)
  })
  const look = async () => {
    // Meanwhile the result of the other one arrives.
    await db.tx(t => givenOffers.update(t, { id: 'offer_b' }, { outcome: { status: 'completed', result: 1 } }))
    runs.set('trun_b', { status: 'completed' })
    return { status: 'queued' }
  }
  const tasks = { run: (id: string) => runs.get(id), kept: { look, free: async () => {} } }
  const clock = { now: () => Date.now() }
  await new GivenOffers({ db, clock, needs: { tasks } } as never).sync()
  const states = ['a', 'b'].map(name => givenOffers.get(db, { id: `offer_${name}` })?.state)
  assert.equal(states, ['offered', 'completed'])
  await close()
})

test('a disconnected peer loses the task to another one; its later result is refused by name', async () => {
  const [ada, bob, eve] = await open('ada', 'bob', 'eve')
  await accept(bob)
  const task = await makeTask(ada)
  await offer(ada, task)
  assert.is((await isIn(ada, 'taken')).peer, 'bob')
  await eventually(async () => (await offers(bob)).find(one => one.run_id), 'bob to have a run')
  await bob.ask('POST', '/leave')
  await work(bob, 'complete', { result: { by: 'bob' } })
  await lapse(ada)
  await isIn(ada, 'offered', 2)
  await accept(eve)
  assert.is((await isIn(ada, 'taken', 2)).peer, 'eve')
  await bob.join(server.url)
  assert.match((await ada.refused('bob', 'work_closed')).message, /attempt 1/)
  await work(eve, 'complete', { result: { by: 'eve' } })
  const done = await isIn(ada, 'completed', 2)
  assert.equal((await run(ada, done.run_id)).result, { by: 'eve' })
  const late = await eventually(async () => (await offers(bob)).find(one => one.error), 'bob to be told')
  assert.match(late.error, /attempt 1/)
})

test('a peer that reconnects too late stops its work', async () => {
  const [ada, bob] = await open('ada', 'bob')
  await accept(bob)
  await offer(ada, await makeTask(ada))
  const mine = await eventually(async () => (await offers(bob)).find(one => one.run_id), 'bob to have a run')
  await call(bob, 'DELETE', '/api/network/remote/acceptance')
  await bob.ask('POST', '/leave')
  await lapse(ada)
  await isIn(ada, 'offered', 2)
  await bob.join(server.url)
  await isIn(bob, 'expired')
  assert.is(await status(bob, mine.task_id), 'canceled')
})

test('a disconnected peer stops its work when its lease has expired', async () => {
  const [ada, bob] = await open('ada', 'bob')
  await accept(bob)
  await offer(ada, await makeTask(ada))
  const mine = await eventually(async () => (await offers(bob)).find(one => one.run_id), 'bob to have a run')
  await bob.ask('POST', '/leave')
  await lapse(bob)
  assert.match((await isIn(bob, 'expired')).error, /ada was not reachable for 300 s/)
  assert.is(await status(bob, mine.task_id), 'canceled')

  await lapse(ada)
  await isIn(ada, 'offered', 2)
})

test('offers are accepted only from peers named by the operator, by an existing agent', async () => {
  const [ada, bob, eve] = await open('ada', 'bob', 'eve')
  for (const [more, code, says] of [
    [{ agent: 'absent' }, 'agent_not_found', /absent/],
    [{ peers: ['ada', 'dan'] }, 'remote_peer_not_found', /dan/],
  ] as const) {
    const { status: code404, body } = await accept(bob, more)
    assert.equal([code404, body.code], [404, code])
    assert.match(body.error, says)
  }
  assert.is((await bob.ask('GET', '/offers')).accepts, null)
  assert.equal((await accept(bob, { peers: ['ada'] })).body.accepts.peers, ['ada'])
  await offer(eve, await makeTask(eve, 'of eve'))
  await offer(ada, await makeTask(ada, 'of ada'))
  await isIn(ada, 'taken')
  await work(bob, 'complete', { result: 'words, no object' })
  const done = await isIn(ada, 'completed')
  assert.is((await run(ada, done.run_id)).result, 'words, no object')
  assert.is((await offers(eve))[0]?.state, 'offered')
  await accept(bob)
  await isIn(eve, 'taken')
})

test('origin and worker resume after a restart', async () => {
  const [ada, bob] = await open('ada', 'bob')
  await accept(bob)
  const task = await makeTask(ada)
  await offer(ada, task)
  const before = await eventually(async () => (await offers(bob)).find(one => one.run_id), 'bob to have a run')
  await bob.restart()
  await bob.connected()
  assert.is((await offers(bob))[0]?.run_id, before.run_id)
  await ada.restart(() => work(bob, 'complete', { result: { words: 7 } }))
  const done = await isIn(ada, 'completed')
  assert.equal([(await run(ada, done.run_id)).result, done.attempt], [{ words: 7 }, 1])
  assert.is(await status(ada, task), 'completed')
})

test('a failing worker gives the reason; one that revokes the key of the origin stops', async () => {
  const [ada, bob] = await open('ada', 'bob')
  await accept(bob)
  await offer(ada, await makeTask(ada))
  await work(bob, 'fail', { error: 'no words here' })
  const over = await isIn(ada, 'failed')
  assert.is(over.error, 'no words here')
  const { status: ended, error } = await run(ada, over.run_id)
  assert.equal([ended, error], ['failed', 'bob: no words here'])
  await offer(ada, await makeTask(ada, 'second'))
  const second = await eventually(
    async () => (await offers(bob)).find(one => one.title === 'second' && one.run_id),
    'bob to have the second',
  )
  await bob.ask('DELETE', '/peers/ada')
  assert.match((await isIn(bob, 'expired')).error, /revoked/)
  assert.is(await status(bob, second.task_id), 'canceled')
})

test('a task with a required result fails when the peer gives none', async () => {
  const [ada, bob] = await open('ada', 'bob')
  await accept(bob)
  const task = await makeTask(ada)
  await call(ada, 'PUT', `/api/tasks/${task}/execution-profile`, { runtime: { mode: 'evidence' } })
  await offer(ada, task)
  await work(bob, 'complete', {})
  const over = await isIn(ada, 'failed')
  assert.match(over.error, /requires a result/)
  assert.match((await run(ada, over.run_id)).error, /^bob: .*requires a result/)
})

const seconds = () => Math.floor(Date.now() / 1000)
const proof = () => ({ realm: 'test', at: seconds(), attempt: 0 })

test('forged, foreign or repeated results change nothing and are refused by name', async () => {
  const [ada, bob, eve] = await open('ada', 'bob', 'eve')
  await accept(bob)
  const task = await makeTask(ada)
  await offer(ada, task)
  const { offer_id: id, run_id: runId } = await isIn(ada, 'taken')
  const [to, bobs, eves] = (await Promise.all([ada, bob, eve].map(half => half.identity()))).map(one => one.daemon)
  const receipt = (more: object = {}) => ({
    ...{ protocol: 'svc-offer-receipt/v1', offer: id, attempt: 1, to, number: 1000, status: 'completed' },
    ...{ result: { forged: true }, ...more },
  })
  await atServer(async ({ connection }) => {
    const send = (from: string, content: unknown) =>
      connection.publish(`svc.test.r.${to}.${from}`, JSON.stringify(content))
    const stranger = identityOf(newSecret())
    send(stranger.daemon, signed(receipt(), stranger, proof()))
    await ada.refused(stranger.daemon, 'verification_failed')
    const own = signed(receipt({ result: 1 }), identityOf(bob.secret), proof())
    send(bobs, { ...own, result: { forged: true } })
    await ada.refused('bob', 'verification_failed')
    send(eves, signed(receipt(), identityOf(eve.secret), proof()))
    assert.match((await ada.refused('eve', 'not_target')).message, /belongs to another daemon/)
    send(bobs, signed(receipt({ attempt: 2 }), identityOf(bob.secret), proof()))
    await ada.refused('bob', 'work_closed')
    send(bobs, 'no object')
    await ada.refused('bob', 'malformed')
    assert.is((await run(ada, runId)).status, 'running')

    const events: string[] = []
    const subscription = connection.subscribe(`svc.test.r.${to}.${bobs}`, {
      callback: (_, { data }) => void events.push(Buffer.from(data).toString()),
    })
    await connection.flush()
    await work(bob, 'complete', { result: { words: 5 } })
    await isIn(ada, 'completed')
    await isIn(bob, 'completed')
    const last = await eventually(async () => events.find(text => text.includes('completed')), 'the result to be heard')
    subscription.unsubscribe()
    const answers = connection.subscribe(`svc.test.r.${bobs}.${to}`, { max: 2 })
    connection.publish(`svc.test.r.${to}.${bobs}`, last)
    connection.publish(`svc.test.r.${to}.${bobs}`, last)
    for await (const answer of answers) assert.is(answer.json<Reply>().answer, 'done')
  })
  assert.equal((await run(ada, runId)).result, { words: 5 })
  const { timeline } = (await call(ada, 'GET', `/api/tasks/${task}/timeline`)).body
  assert.is(timeline.filter((one: Reply) => one.event_type === 'task.run_completed').length, 1)
})

test('a duplicate offer is worked on once; a forged or foreign one is refused by name', async () => {
  const [ada, bob] = await open('ada', 'bob')
  await offer(ada, await makeTask(ada))
  const { daemon } = await ada.identity()
  const stream = await eventually(
    () =>
      atServer(async ({ client, manager }) => {
        const { state } = await manager.streams.info('svc_test_offers')
        if (state.messages === 0) return undefined
        return (await (await client.streams.get('svc_test_offers')).getMessage({ seq: state.first_seq }))?.json<Reply>()
      }).catch(() => undefined),
    'the stream to have the offer',
  )
  const stranger = identityOf(newSecret())
  const { proof: _, ...content } = stream
  await atServer(async ({ client }) => {
    await client.publish(`svc.test.o.${daemon}`, JSON.stringify(stream))
    await client.publish(`svc.test.o.${daemon}`, JSON.stringify({ ...stream, brief: 'delete all files' }))
    await client.publish(`svc.test.o.${stranger.daemon}`, JSON.stringify(signed(content, stranger, proof())))
  })
  await accept(bob)
  await work(bob, 'complete', {})
  await isIn(ada, 'completed')
  assert.match((await bob.refused('ada', 'verification_failed')).message, /signature/)
  assert.match((await bob.refused(stranger.daemon, 'verification_failed')).message, /does not belong to a peer/)
  assert.is((await offers(bob)).length, 1)
  assert.is((await call(bob, 'GET', '/api/tasks')).body.tasks.length, 1)
  await bob.ask('DELETE', '/peers/ada')
  await offer(ada, await makeTask(ada, 'second'))
  await eventually(
    async () => /revoked/.test((await bob.refused('ada', 'verification_failed')).message),
    'the revoked key to be named',
  )
  assert.is((await offers(bob)).length, 1)
})

test('a server with lost data gets the open offers again', async () => {
  const [ada, bob] = await open('ada', 'bob')
  await offer(ada, await makeTask(ada))
  await eventually(
    () =>
      atServer(async ({ manager }) => (await manager.streams.info('svc_test_offers')).state.messages === 1).catch(
        () => false,
      ),
    'the stream to have the offer',
  )
  await server.stop('SIGKILL')
  await server.start(true)
  await accept(bob)
  await work(bob, 'complete', {})
  await isIn(ada, 'completed')
})

test('offers need only the permissions of docs/scale.md', async () => {
  const secret = newSecret()
  const { daemon } = identityOf(secret)
  const document = readFileSync(path.join(import.meta.dirname, '../../../../docs/scale.md'), 'utf8')
  const lists = (kind: string) =>
    [...document.matchAll(new RegExp(`^  ${kind}: \\[(.*?)\\]$`, 'gms'))]
      .map(([, list]) => list)
      .join('\n')
      .replaceAll('acme', 'test')
      .replaceAll('0123456789abcdef', daemon)
  const permissions = `{ publish: [${lists('publish')}], subscribe: [${lists('subscribe')}] }`
  const users = `users: [{ user: root, password: "root-password" }, { user: svc, password: "svc-password", permissions: ${permissions} }]`
  const guarded = await NatsServer.start([`authorization { ${users} }`])
  try {
    const [ada, bob] = [await openHalf('ada'), await openHalf('bob', { secret })]
    halves = [ada, bob]
    for (const [half, other, login] of [
      [ada, bob, 'root:root-password'],
      [bob, ada, 'svc:svc-password'],
    ] as const) {
      await half.trust(other)
      await half.share()
      await accept(half)
      await half.join(guarded.url, { credentials_ref: await half.hide('login', login) })
      await half.connected()
    }
    for (const [from, to] of [
      [ada, bob],
      [bob, ada],
    ] as const) {
      await offer(from, await makeTask(from))
      await work(to, 'complete', {})
      await eventually(
        async () => (await offers(from)).some(one => one.direction === 'given' && one.state === 'completed'),
        `${to.name} to complete it`,
      )
    }
  } finally {
    for (const half of halves) await half.close()
    halves = []
    await guarded.close()
  }
})

test('an invalid offer is refused and changes nothing; a withdrawn task returns to local sessions', async () => {
  const ada = await openHalf('ada')
  halves = [ada]
  const task = await makeTask(ada)
  const code = async (reply: Promise<Reply>) => {
    const { status, body } = await reply
    return [status, body?.code]
  }
  assert.equal(await code(offer(ada, task)), [409, 'remote_off'])
  await ada.join(server.url)
  await ada.connected()
  assert.equal(await code(offer(ada, 'task_none')), [404, 'task_not_found'])
  const body = { task, within: '1s' }
  assert.equal(await code(call(ada, 'POST', '/api/network/remote/offers', body)), [422, 'remote_offer_invalid'])
  assert.equal(await offers(ada), [])
  assert.is((await offer(ada, task)).status, 201)
  const again = await offer(ada, task)
  assert.equal([again.status, again.body.code], [409, 'remote_offer_exists'])
  assert.match(again.body.next ?? JSON.stringify(again.body), /network withdraw/)
  assert.is((await call(ada, 'DELETE', `/api/network/remote/offers/${task}`)).status, 204)
  assert.equal(await code(call(ada, 'DELETE', `/api/network/remote/offers/${task}`)), [404, 'remote_offer_not_found'])
  await isIn(ada, 'withdrawn')
  const headers = ada.agent()
  const claim = await call(ada, 'POST', '/api/agent/tasks/claim-next', { scope: 'workspace' }, headers)
  assert.is(claim.status, 200)
  assert.equal(await code(offer(ada, task)), [409, 'task_run_open'])
  await call(ada, 'POST', `/api/agent/tasks/${claim.body.claim.run.id}/complete`, {}, headers)
  assert.equal(await code(offer(ada, task)), [409, 'task_conflict'])
  assert.is((await offers(ada)).length, 1)
  const acceptance = { agent: 'coder', workspace: 'nowhere' }
  assert.is((await call(ada, 'PUT', '/api/network/remote/acceptance', acceptance)).status, 404)
  assert.is((await ada.ask('GET', '/offers')).accepts, null)
})

test('each transition of an offer is in the table, and no other is allowed', () => {
  const moves = Object.entries(OFFER_MOVES) as [OfferMove, { from: readonly OfferState[]; to: OfferState }][]
  for (const state of OFFER_STATES)
    for (const [move, { from, to }] of moves)
      if (from.includes(state)) assert.is(moved(state, move), to)
      else
        assert.throws(
          () => moved(state, move),
          (error: { code?: string }) => error.code === 'remote_offer_conflict',
        )
  assert.equal(
    OFFER_STATES.filter(state => !moves.some(([, { from }]) => from.includes(state))),
    OFFER_STATES.filter(state => !OPEN.has(state)),
  )
})

test.run()
