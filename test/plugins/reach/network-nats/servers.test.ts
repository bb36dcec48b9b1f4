import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { NatsServer } from '../../../fixtures/nats-server.js'
import { type Half, openHalf } from '../../../fixtures/network-halves.js'
import { eventually } from '../../../fixtures/session-world.js'
import { Authority } from '../../../harness/certificates.js'

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
const findings = async (half: Half): Promise<{ code: string; message: string }[]> =>
  (await half.kernel.request('GET', '/api/doctor')).body.items

test('a server with TLS is joined with its authority certificate; with a wrong one doctor names the next step', async () => {
  const authority = await Authority.in(folder)
  const { cert, key } = await authority.issue('DNS:localhost', 'IP:127.0.0.1')
  const server = await serve(`tls { cert_file: "${cert}", key_file: "${key}" }`)
  const url = server.url.replace('nats:', 'tls:')
  const [ada, bob] = [await openHalf('ada'), await openHalf('bob')]
  halves = [ada, bob]
  for (const [half, other] of [
    [ada, bob],
    [bob, ada],
  ] as const) {
    await half.trust(other)
    await half.share()
  }
  const stranger = await (await Authority.in(mkdtempSync(path.join(folder, 'other-')))).issue('DNS:localhost')
  await ada.join(url, { ca: stranger.cert })
  await ada.stateIs('away')
  const named = (await findings(ada)).find(({ code }) => code === 'network_remote_away')
  assert.match(named?.message ?? '', /certificate.*network\.nats\.tls\.ca/)
  await ada.join(url, { ca: path.join(folder, 'missing.pem') })
  await eventually(async () => /missing\.pem/.test((await ada.status()).error ?? ''), 'the missing file is named')
  for (const half of halves) {
    await half.join(url, { ca: authority.own.cert })
    await half.connected()
  }
  const message = await ada.say('by TLS')
  await bob.got(message)
})

test.run()
