import type { AddressInfo } from 'node:net'
import { createServer, type LookupFunction } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../../../kernel/clock.js'
import { guardedFetch } from '../../../../plugins/work/mcp/oauth/addresses.js'

/** Answers one look-up after the other, the last for ever. */
const answering = (...addresses: string[]): { lookup: LookupFunction; asked: () => number } => {
  let requestCount = 0
  const lookup: LookupFunction = (_, options, callback) => {
    const address = addresses[Math.min(requestCount++, addresses.length - 1)] ?? ''
    if (options.all) callback(null, [{ address, family: 4 }])
    else callback(null, address, 4)
  }
  return { lookup, asked: () => requestCount }
}

test('a name that resolves to another address at connection time than at the check is refused', async () => {
  let connections = 0
  const inner = createServer(socket => {
    connections++
    socket.destroy()
  })
  await new Promise<void>(resolve => inner.listen(0, '127.0.0.1', resolve))
  const { port } = inner.address() as AddressInfo
  const { lookup, asked: requests } = answering('203.0.113.7', '127.0.0.1')
  const fetching = guardedFetch(systemClock(), 'https://mcp.example.com/mcp', lookup)
  const error = await fetching(`https://rebind.example.com:${port}/token`, { method: 'POST', body: 'x=1' }).then(
    () => assert.unreachable(),
    error => error,
  )
  assert.match(`${error.code} ${error.message}`, 'mcp_auth_address_refused')
  assert.is(requests(), 2, 'it was judged, and judged again for the connection')
  assert.is(connections, 0)
  inner.close()
})

test('a name that resolves to an internal address is refused at once', async () => {
  const { lookup } = answering('169.254.169.254')
  const error = await guardedFetch(
    systemClock(),
    'https://mcp.example.com/mcp',
    lookup,
  )('https://meta.example.com/').then(
    () => assert.unreachable(),
    error => error,
  )
  assert.is(error.code, 'mcp_auth_address_refused')
})

test.run()
