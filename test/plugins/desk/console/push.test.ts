// timeout: 60s
import { createECDH, createPublicKey, randomBytes, verify } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { ConsoleErrors } from '../../../../plugins/desk/console/api.js'
import { type K, needs } from '../../../../plugins/desk/console/needs.js'
import { Push } from '../../../../plugins/desk/console/push/push.js'
import { PushSettings } from '../../../../plugins/desk/console/push/settings.js'
import { pushMigration } from '../../../../plugins/desk/console/push/subscriptions.js'
import { configuration, vault } from '../../../../plugins/index.js'
import { NotificationChannels } from '../../../../plugins/reach/notifications/api.js'
import { eventually } from '../../../fixtures/session-world.js'
import { scene } from '../../reach/notifications/scene.js'

/** Decrypts as browsers do (RFC 8188, RFC 8291). */
const ece = createRequire(createRequire(import.meta.url).resolve('web-push'))('http_ece') as {
  decrypt(bytes: Buffer, options: object): Buffer
}

interface Received {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
}

/** A push service on this machine. */
async function pushService() {
  const received: Received[] = []
  const answers = { status: 201 }
  const server = createServer((request, reply) => {
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      received.push({ url: request.url ?? '', headers: request.headers, bytes: Buffer.concat(chunks) })
      reply.writeHead(answers.status, { location: 'http://127.0.0.1:1/' }).end()
    })
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { base, received, answers, close: () => server.close() }
}

/** A browser with its keys. */
function browserAt(endpoint: string) {
  const own = createECDH('prime256v1')
  own.generateKeys()
  const auth = randomBytes(16).toString('base64url')
  const body = { endpoint, keys: { p256dh: own.getPublicKey('base64url', 'uncompressed'), auth } }
  const read = ({ bytes }: Received) =>
    JSON.parse(ece.decrypt(bytes, { version: 'aes128gcm', privateKey: own, authSecret: auth }).toString())
  return { body, read }
}

interface World {
  push: Push
  /** Sessions of the console that have not ended. */
  readonly open: Set<string>
}

/** The plugin `console` without its page: its push services may be on this machine. */
function consoleWith(named: URL | undefined, world: Partial<World> & { readonly open: Set<string> }) {
  const { contribute } = surfaceOf<Holder>()
  class Holder {
    readonly push: Push
    constructor(kernel: K) {
      this.push = new Push(kernel, session => world.open.has(session), named)
      world.push = this.push
    }
  }
  return definePlugin({ name: 'console', version: '0.0.1', requires: needs, service: async () => Holder }).surface({
    tables: [{ ...pushMigration, id: '001' }],
    errors: [ConsoleErrors],
    settings: Object.values(PushSettings),
    registries: [contribute(NotificationChannels, service => [service.push.channel])],
    services: [{ name: 'push', run: (service, signal) => service.push.run(signal) }],
  })
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    error => error.code as string,
  )

test('a message is encrypted for its browser, and holds ids but no text', async () => {
  const service = await pushService()
  const world = { open: new Set(['con_1', 'con_2']) } as World
  const plugins = [configuration, vault, consoleWith(new URL(service.base), world)]
  const s = await scene({ plugins, config: { console: { push: { enabled: true } } } })
  const one = browserAt(`${service.base}/one`)
  const two = browserAt(`${service.base}/two`)
  const { public_key: publicKey = '' } = await world.push.list(undefined)
  await world.push.add('con_1', browserAt(`${service.base}/former`).body)
  const added = await world.push.add('con_1', one.body)
  await world.push.add('con_2', two.body)
  const listed = await world.push.list('con_1')
  assert.equal([listed.subscriptions.length, listed.current], [2, added.id], 'one for each session')
  for (const secret of [one.body.keys.auth, one.body.endpoint]) assert.not.match(JSON.stringify(listed), secret)

  await s.preset('browser', { events: ['attention.asked', 'task.run_failed'], targets: [{ bridge_id: 'browser' }] })
  const asked = { item_id: 'session:ses_1', kind: 'permission', title: 'git push --force', detail: 'secret plan' }
  await s.emit('attention.asked', { ...asked, session_id: 'ses_1', agent_name: 'ada', workspace_id: s.workspace })
  await s.settle()
  await eventually(async () => service.received.length === 2, 'both messages')
  const got = (path: string) => service.received.find(({ url }) => url === path) as Received
  const said = one.read(got('/one'))
  assert.equal(said, { title: 'An agent waits for your answer', tag: 'attention.asked:ses_1', session: 'ses_1' })
  assert.equal(two.read(got('/two')), said)
  assert.throws(() => one.read(got('/two')))
  const { authorization = '', urgency, ttl } = got('/one').headers
  assert.equal([urgency, ttl], ['high', '14400'])
  const [, token = '', key] = /^vapid t=([^,]+), k=(.+)$/.exec(authorization) ?? []
  assert.is(key, publicKey)
  const [head = '', claims = '', signature = ''] = token.split('.')
  const point = Buffer.from(publicKey, 'base64url')
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map(part => part.toString('base64url'))
  const jwk = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y } as never, format: 'jwk' })
  const options = { key: jwk, dsaEncoding: 'ieee-p1363' } as const
  assert.ok(verify('sha256', Buffer.from(`${head}.${claims}`), options, Buffer.from(signature, 'base64url')))
  assert.is(JSON.parse(Buffer.from(claims, 'base64url').toString()).aud, service.base)

  world.open.delete('con_2')
  service.answers.status = 410
  await s.emit('task.run_failed', { task_id: 'task_1', error: 'token=abc' })
  await s.settle()
  await eventually(
    async () => (await world.push.list(undefined)).subscriptions.length === 0,
    'the end of a subscription',
  )
  assert.is(service.received.length, 3, 'an ended session gets nothing')
  assert.equal(one.read(service.received[2] as Received), {
    title: 'A task run failed',
    tag: 'task.run_failed:task_1',
    task: 'task_1',
  })
  await s.emit('task.run_failed', { task_id: 'task_2' })
  await s.settle()
  const { target_states: states } = (await s.request('GET', '/api/notifications/presets/browser')).body.preset
  assert.is(states[0].last_error, 'no browser has subscribed to push')
  assert.is(service.received.length, 3)
  await s.close()
  service.close()
})

test('quiet hours of the preset hold messages back, and a watched session sends none', async () => {
  const service = await pushService()
  const world = { open: new Set(['con_1']) } as World
  const watched = new Set(['ses_1'])
  const plugins = [configuration, vault, consoleWith(new URL(service.base), world)]
  const s = await scene({ plugins, watched, config: { console: { push: { enabled: true } } } })
  const one = browserAt(`${service.base}/one`)
  await world.push.add('con_1', one.body)
  const rules = { quiet_hours: { from: '00:00', to: '23:59', time_zone: 'UTC' } }
  const targets = [{ bridge_id: 'browser' }]
  await s.preset('quiet', { events: ['task.run_failed'], targets, rules })
  await s.preset('watched', { events: ['session.unhealthy'], targets })
  await s.emit('task.run_failed', { task_id: 'task_1' })
  await s.emit('session.unhealthy', { id: 'ses_1' })
  await s.emit('session.unhealthy', { id: 'ses_2' })
  await s.settle()
  await eventually(async () => service.received.length > 0, 'a message')
  assert.equal(service.received.map(one.read), [
    { title: 'A session failed', tag: 'session.unhealthy:ses_2', session: 'ses_2' },
  ])
  await s.close()
  service.close()
})

test('push is off by default, and no subscription leads into this machine', async () => {
  const off = { open: new Set(['con_1']) } as World
  const quiet = await scene({ plugins: [configuration, vault, consoleWith(undefined, off)] })
  const { body } = browserAt('https://192.0.2.1/send')
  assert.equal(await off.push.list('con_1'), { enabled: false, subscriptions: [] })
  assert.is(await codeOf(off.push.add('con_1', body)), 'console_push_off')
  await quiet.close()

  const open = new Set(Array.from({ length: 30 }, (_, n) => `con_${n}`))
  const world = { open } as World
  const plugins = [configuration, vault, consoleWith(undefined, world)]
  const s = await scene({ plugins, config: { console: { push: { enabled: true } } } })
  assert.is(await codeOf(world.push.add(undefined, body)), 'console_session_required')
  for (const endpoint of [
    'http://192.0.2.1/send',
    'https://127.0.0.1/send',
    'https://localhost:2123/api/daemon/stop',
    'https://[::1]/send',
    'https://[::ffff:10.0.0.1]/send',
    'https://169.254.169.254/latest/meta-data',
    'https://10.1.2.3/send',
    'https://user:pass@192.0.2.1/send',
    'ftp://192.0.2.1/send',
  ])
    assert.is(await codeOf(world.push.add('con_1', { ...body, endpoint })), 'console_push_refused', endpoint)
  for (let n = 0; n < 20; n++) await world.push.add(`con_${n}`, body)
  assert.is(await codeOf(world.push.add('con_20', body)), 'console_push_full')
  open.delete('con_0')
  await world.push.add('con_20', body)
  assert.is(await codeOf(world.push.remove('psh_none')), 'console_push_not_found')
  await s.close()
})

test.run()
