import { PassThrough } from 'node:stream'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type LinkHandlers, linkOf } from '../../../../plugins/work/acp/protocol/link.js'

const handlers: LinkHandlers = {
  owner: 'test',
  update() {},
  room: async () => {},
  activity() {},
  junk() {},
  refused() {},
}

test('output and exit of an agent after the last reader are no protocol failures', async () => {
  for (const last of ['', '{"jsonrpc":"2.0","method":"session/other"}\n']) {
    const stdout = new PassThrough()
    const { readable, failure } = linkOf(stdout, new PassThrough(), handlers)
    await readable.cancel()
    stdout.end(last)
    await new Promise(resolve => stdout.once('close', resolve))
    assert.is(failure(), undefined)
  }
})

test.run()
