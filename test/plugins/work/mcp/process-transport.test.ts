import { spawn } from 'node:child_process'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ProcessHandle } from '../../../../plugins/platform/processes/api.js'
import { ProcessTransport } from '../../../../plugins/work/mcp/client/process-transport.js'

test('what waits for a server that ends while it is written to is told of the end before the pipe breaks', async () => {
  const { stdin, stdout, stderr } = spawn(process.execPath, [
    '-e',
    'process.stdout.write("{}\\n"); setTimeout(() => process.exit(), 200)',
  ])
  // The end of the process is told later than the broken pipe, as it may be on a busy machine.
  const handle = {
    stdin,
    stdout,
    stderr,
    exited: new Promise(() => {}),
    stop: async () => {},
  } as unknown as ProcessHandle
  const transport = new ProcessTransport(handle)
  const order: string[] = []
  transport.onclose = () => order.push('closed')
  await transport.start()
  const message = { jsonrpc: '2.0', id: 1, method: 'ping', params: { text: 'x'.repeat(8 * 1024 * 1024) } } as const
  await transport.send(message).catch(() => order.push('refused'))
  assert.equal(order, ['closed', 'refused'])
})

test.run()
