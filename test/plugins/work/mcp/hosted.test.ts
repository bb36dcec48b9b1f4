// timeout: 120s
import { request } from 'node:http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { type Handed, handed, openHosting } from './hosting.js'

const envOf = ({ env }: Handed) => Object.fromEntries(env.map(({ name, value }) => [name, value]))

async function connect(proxy: Handed) {
  const { command, args } = proxy
  const [{ Client }, { StdioClientTransport }] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/client/stdio.js'),
  ])
  const client = new Client({ name: 'test', version: '1' })
  const env = { PATH: process.env.PATH ?? '', ...envOf(proxy) }
  await client.connect(new StdioClientTransport({ command, args: [...args], env, stderr: 'ignore' }))
  return client
}

const send = (socketPath: string, body: object, path = '/api/mcp/connections') =>
  new Promise<[number, string]>((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const sent = request({ socketPath, path, method: 'POST', headers }, async response => {
      const chunks = await response.toArray()
      resolve([response.statusCode ?? 0, Buffer.concat(chunks).toString()])
    })
    sent.on('error', reject)
    sent.end(JSON.stringify(body))
  })

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content.map(({ text }) => text).join('')

test('an agent searches and calls daemon tools as its session through the hosted server', async () => {
  const { world, tools } = await openHosting()
  const { id, proxy } = await handed(world)
  assert.ok(proxy)
  assert.is(envOf(proxy).NODE_EXTRA_CA_CERTS, '', 'a large file of certificates does not delay its start')
  const client = await connect(proxy)
  try {
    const listed = await client.listTools()
    assert.equal(
      listed.tools.map(({ name }) => name),
      ['tool_search', 'tool_show', 'tool_call'],
    )
    assert.ok(Buffer.byteLength(JSON.stringify(listed)) <= 8000)
    // An agent that hides tools behind its own search shows these all the same.
    assert.ok(listed.tools.every(({ _meta }) => _meta?.['anthropic/alwaysLoad'] === true))
    const found = JSON.parse(textOf(await client.callTool({ name: 'tool_search', arguments: { query: 'echo' } })))
    assert.is(found.incomplete, undefined)
    tools.starting = ['late']
    const early = JSON.parse(textOf(await client.callTool({ name: 'tool_search', arguments: { query: 'echo' } })))
    assert.match(early.incomplete, 'late')
    assert.equal(
      found.tools.map(({ id }: { id: string }) => id),
      ['service__echo'],
    )
    const shown = textOf(await client.callTool({ name: 'tool_show', arguments: { id: 'service__echo' } }))
    assert.is(JSON.parse(shown).input_schema.type, 'object')
    const call = (id: string, input: object) => client.callTool({ name: 'tool_call', arguments: { id, input } })
    assert.is(textOf(await call('service__echo', { text: 'hello' })), '{"text":"hello"}')
    const [{ by }] = tools.calls as [(typeof tools.calls)[0]]
    assert.equal(
      [by.sessionId, by.workspaceId, by.agentName, by.actor.id, by.actor.confined],
      [id, world.workspaceId, 'ada', id, true],
    )
    const refused = await call('service__remove_all', {})
    assert.is(refused.isError, true)
    assert.match(textOf(refused), 'tool_denied (approval_timed_out): nobody allowed it')
    // What a person would type is a tool of the agent.
    assert.match(textOf(refused), /see why: tool_show /)
    assert.match(textOf(await client.callTool({ name: 'tool_show', arguments: { id: 'no' } })), 'tool_not_found')
    const unknown = await client.callTool({ name: 'service__echo', arguments: {} })
    assert.match(textOf(unknown), /^tool_not_found: no such tool: "service__echo"\. tools\/list /)
    for (const [name, input, at] of [
      ['tool_call', { tool_id: 'service__echo' }, 'id'],
      ['tool_call', { id: 'service__echo', input: 'text' }, 'input'],
      ['tool_search', { limit: 1000 }, 'limit'],
    ] as const) {
      const wrong = await client.callTool({ name, arguments: input })
      assert.is(wrong.isError, true)
      assert.match(textOf(wrong), new RegExp(`^tool_invalid_input: ${at}: `))
    }
    const giveUp = new AbortController()
    const waiting = client.callTool({ name: 'tool_call', arguments: { id: 'service__wait' } }, undefined, {
      signal: giveUp.signal,
    })
    await eventually(async () => tools.calls.some(({ id }) => id === 'service__wait'), 'the call')
    giveUp.abort()
    await waiting.then(
      () => assert.unreachable(),
      () => {},
    )
    await eventually(async () => tools.calls.some(({ aborted }) => aborted), 'a call that was given up')
    await world.kernel.request('POST', `/api/workspaces/${world.workspaceId}/sessions/${id}/stop`, {})
    const late = await call('service__echo', {}).catch(error => error.message)
    assert.type(late, 'string', 'nobody speaks for a session that has stopped')
  } finally {
    await client.close()
    await world.close()
  }
})

test('the nonce is valid for its session only, until the first connection asks for more', async () => {
  const { world } = await openHosting()
  const [one, other] = [await handed(world), await handed(world)]
  assert.ok(one.proxy && other.proxy)
  try {
    const nonce = (proxy: Handed) => envOf(proxy).SVC_MCP_NONCE ?? ''
    const post = async (proxy: Handed, nonce: string) => {
      const [status, body] = await send(envOf(proxy).SVC_SOCKET ?? '', { nonce })
      return { status, ...JSON.parse(body) }
    }
    const ask = async (proxy: Handed, connection_id: string, method: string) => {
      const message = { jsonrpc: '2.0', id: 1, method, params: {} }
      const [status] = await send(envOf(proxy).SVC_SOCKET ?? '', { connection_id, message }, '/api/mcp/messages')
      return status
    }
    const refused = { status: 401, code: 'mcp_nonce_invalid' }
    const outcome = ({ status, code }: { status: number; code?: string }) => ({ status, code })
    assert.equal(outcome(await post(one.proxy, nonce(other.proxy))), refused)
    assert.equal(outcome(await post(one.proxy, '')), refused)
    const [asking, speaking] = [await post(one.proxy, nonce(one.proxy)), await post(one.proxy, nonce(one.proxy))]
    assert.is(await ask(one.proxy, asking.connection_id, 'server/discover'), 200)
    assert.is(await ask(one.proxy, speaking.connection_id, 'ping'), 200)
    assert.equal(outcome(await post(one.proxy, nonce(one.proxy))), refused)
    assert.is(await ask(one.proxy, asking.connection_id, 'ping'), 404)
    assert.is(await ask(one.proxy, speaking.connection_id, 'ping'), 200)
    assert.is((await post(other.proxy, nonce(other.proxy))).status, 201)
  } finally {
    await world.close()
  }
})

test('mcp.hosted off gives no hosted server, and a server with that name is unaffected', async () => {
  const { world } = await openHosting({ mcp: { hosted: false } })
  assert.is((await handed(world)).proxy, undefined)
  await world.close()
  const own = { command: '/bin/true' }
  const second = await openHosting({ mcp_servers: { svc: own } })
  assert.is((await handed(second.world)).proxy?.command, '/bin/true')
  await second.world.close()
})

test.run()
