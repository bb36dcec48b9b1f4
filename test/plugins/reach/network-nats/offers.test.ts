import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { identityOf, newSecret, signed } from '../../../../plugins/reach/network-nats/proof.js'
import type { Reply } from '../../../harness/kernel.js'
import { NatsServer } from '../../../fixtures/nats-server.js'
import { type Half, openHalf, openRealm } from '../../../fixtures/network-halves.js'
import { eventually } from '../../../fixtures/session-world.js'

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
const accept = (half: Half) =>
  call(half, 'PUT', '/api/network/remote/acceptance', { agent: 'coder', workspace: half.workspaceId })
const lease = (half: Half, text: string) =>
  call(half, 'PATCH', '/api/settings', { changes: [{ path: 'network.remote.offers.lease', value: text }] })
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

test('a task that is offered is done once by a daemon that accepts offers, and its result arrives', async () => {
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

test.run()
