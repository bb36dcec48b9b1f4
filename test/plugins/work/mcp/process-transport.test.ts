import { spawn } from 'node:child_process'
import { PassThrough } from 'node:stream'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../../../kernel/plugin.js'
import type { ProcessHandle } from '../../../../plugins/platform/processes/api.js'
import { ProcessTransport } from '../../../../plugins/work/mcp/client/process-transport.js'

test('a request to a server that ends during the write gets the end before the pipe error', async () => {
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
  const transport = new ProcessTransport(handle, systemClock())
  const order: string[] = []
  transport.onclose = () => order.push('closed')
  await transport.start()
  const message = { jsonrpc: '2.0', id: 1, method: 'ping', params: { text: 'x'.repeat(8 * 1024 * 1024) } } as const
  await transport.send(message).catch(() => order.push('refused'))
  assert.equal(order, ['closed', 'refused'])
})

test('the last output of a server is read before its end is reported', async () => {
  const stderr = new PassThrough()
  const stream = () => new PassThrough()
  const handle = { stdin: stream(), stdout: stream(), stderr, exited: Promise.resolve(), stop: async () => {} }
  const transport = new ProcessTransport(handle as unknown as ProcessHandle, systemClock())
  const words = new Promise<string>(resolve => {
    transport.onclose = () => resolve(transport.lastWords)
  })
  await transport.start()
  setImmediate(() => stderr.end('the reason'))
  assert.is(await words, 'it said: the reason')
})

test.run()
