// proof: servers that lose their quorum, and whose disk is full, are waited for as long as that takes
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { NatsServer } from '../../../fixtures/nats-server.js'
import { type Half, openRealm } from '../../../fixtures/network-halves.js'
import { eventually } from '../../../fixtures/session-world.js'
import { freePort } from '../../../harness/free-port.js'

let halves: Half[] = []
let servers: NatsServer[] = []
let folder = ''
test.before.each(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'svc-nats-servers-'))
})
test.after.each(async () => {
  for (const half of halves) await half.close()
  for (const server of servers) await server.close()
  halves = []
  servers = []
  rmSync(folder, { recursive: true, force: true })
})

async function serve(...lines: string[]): Promise<NatsServer> {
  const server = await NatsServer.start(lines)
  servers.push(server)
  return server
}
const ids = (half: Half) => half.received().map(({ envelope }) => envelope.id)
const findings = async (half: Half): Promise<{ code: string; message: string }[]> =>
  (await half.kernel.request('GET', '/api/doctor')).body.items

test('a cluster without quorum is waited for, and its pending messages are delivered', async () => {
  const routes = await Promise.all([0, 1, 2].map(() => freePort()))
  for (const [n, route] of routes.entries()) {
    const others = routes.filter(one => one !== route).map(one => `"nats://127.0.0.1:${one}"`)
    const cluster = `cluster { name: proof, listen: "127.0.0.1:${route}", routes: [${others.join(', ')}] }`
    servers.push(await NatsServer.start([`server_name: "n${n}"`, cluster]))
  }
  const [first, ...others] = servers as [NatsServer, ...NatsServer[]]
  const connection = await connect({ servers: first.url.slice('nats://'.length) })
  await eventually(async () => {
    const manager = await jetstreamManager(connection, { checkAPI: false })
    const config = { name: 'svc_test_messages', subjects: ['svc.test.m.*.*'], num_replicas: 3, discard: 'new' as const }
    return manager.streams.add(config).catch(() => false)
  }, 'the cluster has a stream of three replicas')
  await connection.close()
  halves = await openRealm(first.url, ['ada', 'bob'])
  const [ada, bob] = halves as [Half, Half]
  const before = await ada.say('before')
  await bob.got(before)
  for (const server of others) await server.stop('SIGKILL')
  const waiting = [await ada.say('one'), await ada.say('two')]
  await eventually(async () => ['away', 'full'].includes((await ada.status()).state), 'ada has no quorum')
  assert.ok((await findings(ada)).some(({ code }) => /^network_remote_(away|full)$/.test(code)))
  for (const server of others) await server.start()
  await bob.got(...waiting)
  assert.equal(ids(bob), [before, ...waiting])
})

// Only root mounts a disk that is full.
const asRoot = process.getuid?.() === 0 ? test : test.skip
asRoot('a server whose disk is full is waited for, and nothing is lost', async () => {
  const store = path.join(folder, 'disk')
  execFileSync('mkdir', [store])
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', store])
  try {
    const server = await serve(`jetstream { store_dir: "${store}", max_file_store: 1073741824 }`)
    halves = await openRealm(server.url, ['ada', 'bob'])
    const [ada, bob] = halves as [Half, Half]
    const first = await ada.say('first')
    await bob.got(first)
    const messages: string[] = []
    for (let n = 0; n < 80; n++) messages.push(await ada.say(`${n} ${'x'.repeat(60_000)}`))
    await eventually(async () => ['away', 'full'].includes((await ada.status()).state), 'the disk is full')
    assert.ok((await findings(ada)).some(({ code }) => /^network_remote_(away|full)$/.test(code)))
    execFileSync('mount', ['-o', 'remount,size=64m', store])
    // A server that could not write takes nothing until it is started again.
    await server.stop('SIGKILL')
    await server.start()
    await bob.got(...messages)
    assert.equal(ids(bob).length, messages.length + 1)
  } finally {
    for (const half of halves) await half.close()
    for (const server of servers) await server.close()
    halves = []
    servers = []
    execFileSync('umount', ['-l', store])
  }
})

test.run()
