import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { guardedFetch } from '../../../packages/agent/src/endpoint/guarded-fetch.js'

const bytes = 4 * 1024 * 1024
const times = { silenceMs: 400, stallMs: 400 }

/** A model that sends a long stream at once. */
async function open() {
  const server = createServer((_, reply) => {
    reply.writeHead(200, { 'content-type': 'text/event-stream' })
    const chunk = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(1024) } }] })}\n\n`
    for (let sent = 0; sent < bytes; sent += 1024) reply.write(chunk)
    reply.end('data: [DONE]\n\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  return { url, close: () => server.close() }
}

test('a reader that takes its time is no silence of the endpoint', async () => {
  const { url, close } = await open()
  const progress = { bytes: 0 }
  const reply = await guardedFetch(url, times, progress)(url)
  const reader = reply.body!.getReader()
  await reader.read()
  await sleep(2 * times.stallMs)
  while (!(await reader.read()).done);
  assert.ok(progress.bytes > bytes)
  close()
})

test('data that came while the process stood still counts', async () => {
  const { url, close } = await open()
  const progress = { bytes: 0 }
  const asked = guardedFetch(url, times, progress)(url)
  const until = performance.now() + 2 * times.silenceMs
  await sleep(times.silenceMs / 8)
  while (performance.now() < until);
  const reader = (await asked).body!.getReader()
  const read = reader.read()
  while (performance.now() < until + 2 * times.stallMs);
  await read
  while (!(await reader.read()).done);
  assert.ok(progress.bytes > bytes)
  close()
})

test.run()
