import path from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Servers, Sockets } from '../../../../kernel/platform.js'
import { operator } from '../../../../kernel/plugin.js'
import { inTree } from '../../../../plugins/index.js'
import { probe } from '../../../../testing/traces.js'
import { eventually } from '../../../fixtures/session-world.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

test('the server of a closed socket is not retained', async () => {
  const looking = probe({ servers: Servers, sockets: Sockets })
  const kernel = await boot({ plugins: [...inTree, looking.plugin] })
  const { needs } = looking.kernel()
  const folder = await temporaryFolder('sockets')
  const seen: WeakRef<object>[] = []
  const leave = needs.servers(server => void seen.push(new WeakRef(server)))
  const before = seen.length
  for (let n = 0; n < 20; n++) await (await needs.sockets(path.join(folder, `${n}.sock`), operator))()
  leave()
  await eventually(async () => {
    collect()
    return seen.slice(before).filter(server => server.deref() !== undefined).length <= 1
  }, 'the end of all servers but the last')
  await kernel.close()
  assert.is(seen.length - before, 20)
})

test.run()
