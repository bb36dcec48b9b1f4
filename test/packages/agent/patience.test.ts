import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { guardedFetch } from '../../../packages/agent/src/endpoint/guarded-fetch.js'

const bytes = 4 * 1024 * 1024
const times = { silenceMs: 400, stallMs: 400 }

/** A model that sends a stream at once; without an end it hangs then. */
async function open({ length = bytes, ends = true } = {}) {
  const server = createServer((_, reply) => {
    reply.writeHead(200, { 'content-type': 'text/event-stream' })
    const chunk = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(1024) } }] })}\n\n`
    for (let sent = 0; sent < length; sent += 1024) reply.write(chunk)
    if (ends) reply.end('data: [DONE]\n\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  return { url, close: () => server.close().closeAllConnections() }
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

test('a stream that hangs is abandoned also after a collection of garbage', async () => {
  const { url, close } = await open({ length: 1024, ends: false })
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const init = { signal: new AbortController().signal }
  const reader = (await guardedFetch(url, times, { bytes: 0 })(url, init)).body!.getReader()
  // A collection of a large heap can take as long as the pause between two.
  const timer = setInterval(collect, times.stallMs / 2)
  const ended = (async () => {
    while (!(await reader.read()).done);
  })().then(
    () => 'ended',
    error => error.message,
  )
  assert.match(await Promise.race([ended, sleep(20 * times.stallMs, 'hangs')]), 'SVC_AGENT_STALL_MS')
  clearInterval(timer)
  close()
})

test.run()
