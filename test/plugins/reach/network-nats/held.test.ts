import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { NatsServer } from '../../../fixtures/nats-server.js'
import { openRealm } from '../../../fixtures/network-halves.js'
import { freePort } from '../../../harness/free-port.js'
import { HELD } from '../../desk/backup/restored.js'

test('a held home does not connect to the network server until it is confirmed', async () => {
  const port = await freePort()
  const server = await NatsServer.start([`http: "127.0.0.1:${port}"`])
  const halves = await openRealm(server.url, ['ada', 'bob'])
  const [ada, bob] = halves as [(typeof halves)[0], (typeof halves)[0]]
  try {
    /** Connections that the server was asked for since it started. */
    const connections = async () => {
      const reply = await fetch(`http://127.0.0.1:${port}/varz`)
      return ((await reply.json()) as { total_connections: number }).total_connections
    }
    const before = await connections()
    await ada.restart(() => writeFileSync(path.join(ada.home, 'held.json'), JSON.stringify(HELD)))
    assert.is((await ada.kernel.request('GET', '/api/backups/hold')).body.held, true)
    // By the time that another daemon, which was started later, has its connection, this one would have its own.
    for (let n = 1; n <= 2; n++) {
      await bob.restart()
      await bob.connected()
      assert.is(await connections(), before + n)
    }
    assert.is.not((await ada.status()).state, 'connected')
    assert.is((await ada.kernel.request('POST', '/api/backups/confirm')).status, 200)
    await ada.connected()
    assert.is(await connections(), before + 3)
    await ada.got(await bob.say('after the hold'))
  } finally {
    for (const half of halves) await half.close()
    await server.close()
  }
})

test.run()
