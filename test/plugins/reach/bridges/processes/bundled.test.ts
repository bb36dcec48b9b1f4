// timeout: 120s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Ngircd } from '../../../../harness/chat-servers.js'
import { Person } from '../../../../packages/bridge-irc/person.js'
import { until } from '../../../delivery/subprocess-host/scene.js'
import { adapterFiles, FakeHost, managedInstance, type Scene, scene } from './scene.js'

let svc: Scene
let server: Ngircd
test.before(async () => {
  svc = await scene()
  server = await Ngircd.start()
})
test.after(async () => {
  await svc.close()
  await server.remove()
})

const names = async () => (await svc.request('GET', '/api/extensions')).body.extensions.map((one: Named) => one.name)
const stateOf = async (name: string) => (await svc.request('GET', `/api/extensions/${name}`)).body.extension
const { signal } = new AbortController()
interface Named {
  readonly name: string
}
const bridge = () =>
  managedInstance('bri_1', {
    platform: 'irc',
    providerConfig: { server: '127.0.0.1', port: server.port, tls: false, nick: 'svcbot', channels: ['#ops'] },
    secrets: [],
  })

test('a packaged extension has a provider without being listed, loaded or started', async () => {
  assert.equal(await names(), [])
  const irc = svc.provider('bridge-irc')
  const xmpp = svc.provider('bridge-xmpp')
  assert.is(irc?.platform, 'irc')
  assert.equal([irc?.capabilities.canSettle, irc?.capabilities.textUnit], [false, 'bytes'])
  assert.equal([xmpp?.capabilities.canSettle, xmpp?.capabilities.edits], [true, true])
  assert.equal(
    irc?.secretSlots.map(({ name }) => name),
    ['password', 'server_password', 'channel_keys'],
  )
  const { state, source } = await stateOf('bridge-irc')
  assert.equal([state, source], ['enabled', 'bundled'])
})

test('an unused provider checks an instance, and nothing of it runs afterwards', async () => {
  const irc = svc.provider('bridge-irc')
  const { state, checks = [] } = (await irc?.examine?.(bridge(), signal)) ?? {}
  assert.is(state?.status, 'ready')
  const byName = Object.fromEntries(checks.map(({ check, status }) => [check, status]))
  assert.is(byName['irc.connected'], 'pass', JSON.stringify(checks))
  const after = await stateOf('bridge-irc')
  assert.equal([after.state, after.pid], ['registered', undefined])
})

test('an extension loads when an instance is enabled, and its process ends with the last one', async () => {
  const ann = await Person.join(server.port, 'ann', '#ops')
  const host = new FakeHost()
  const irc = svc.provider('bridge-irc')!
  await irc.manage([bridge()], host)
  assert.equal(await names(), ['bridge-irc'])
  await until(() => host.reports.some(({ state }) => state.status === 'ready'))
  ann.say('#ops', 'svcbot: hello')
  await until(() => host.events.some(({ text }) => text === 'hello'))
  const delivery = { bridge_instance_id: 'bri_1', delivery_id: 'd1', part: 0, event: 'final', nonce: 'n1' } as const
  assert.equal(await irc.deliver({ ...delivery, target: { group_id: '#ops' }, text: 'hello, ann' }, signal), {
    status: 'delivered',
  })
  await ann.hears(line => line === 'hello, ann')
  const checks = await irc.verify?.('bri_1', signal)
  assert.ok(
    checks?.every(({ status }) => status === 'pass'),
    JSON.stringify(checks),
  )
  await irc.manage([], host)
  await svc.until('bridge-irc', extension => extension?.pid === undefined)
  assert.is((await stateOf('bridge-irc')).state, 'registered')
  await ann.leave()
})

test('a disabled extension has no provider, and has one again when enabled', async () => {
  await svc.request('POST', '/api/extensions/bridge-xmpp/disable')
  await until(() => svc.provider('bridge-xmpp') === undefined)
  assert.equal((await stateOf('bridge-xmpp')).state, 'disabled')
  await svc.request('POST', '/api/extensions/bridge-xmpp/enable')
  await until(() => svc.provider('bridge-xmpp') !== undefined)
})

test('an extension of the home overrides the packaged one until it is removed', async () => {
  await svc.drop('bridge-irc', await adapterFiles('bridge-irc', { platform: 'mine' }), true)
  await until(() => svc.provider('bridge-irc')?.platform === 'mine')
  assert.is((await stateOf('bridge-irc')).source, 'user')
  await svc.remove('bridge-irc')
  await until(() => svc.provider('bridge-irc')?.platform === 'irc')
  const host = new FakeHost()
  await svc.provider('bridge-irc')!.manage([bridge()], host)
  await until(() => host.reports.some(({ state }) => state.status === 'ready'))
  await svc.provider('bridge-irc')!.manage([], host)
})

test.run()
