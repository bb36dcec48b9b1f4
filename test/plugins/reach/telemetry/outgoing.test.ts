// timeout: 120s
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, noContent, type Plugin, routeOf } from '../../../../kernel/plugin.js'
import { inTree } from '../../../../plugins/index.js'
import { eventually } from '../../../fixtures/session-world.js'
import { HttpEndpoint, type Received } from '../../../harness/http-endpoint.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { Collector } from './collector.js'

const REMOTE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const TRACE = REMOTE.slice(3, 35)

/** A plugin whose route sends a request. */
const sender = (url: () => string) =>
  definePlugin({ name: 'acme.send', version: '1', service: async () => class {} }).surface({
    routes: [
      routeOf<object>()({
        method: 'POST',
        path: '/api/ext/acme.send/fetch',
        summary: 'Send a request',
        replies: { 204: null },
        handle: async () => {
          await (await fetch(`${url()}/plain`, { method: 'POST', body: 'x' })).text()
          await (await fetch(`${url()}/own`, { headers: { traceparent: 'mine' } })).text()
          return noContent()
        },
      }),
    ],
  }) as unknown as Plugin

/** An MCP server over HTTP with one tool, which remembers what it was sent. */
function mcpAnswer({ body, method }: Received) {
  if (method !== 'POST' || body === 'x' || body === '') return { status: method === 'GET' ? 405 : 200 }
  const { id, method: rpcMethod, params } = JSON.parse(body)
  if (id === undefined) return { status: 202 }
  const results: Record<string, unknown> = {
    initialize: {
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'x', version: '1' },
    },
    'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'said' }] },
  }
  return { body: { jsonrpc: '2.0', id, result: results[rpcMethod] ?? {} } }
}

async function world(config: object, env: Record<string, string> = {}) {
  const endpoint = await HttpEndpoint.start(mcpAnswer)
  const home = await temporaryFolder('outgoing')
  await writeFile(
    path.join(home, 'config.json'),
    JSON.stringify({
      ...config,
      mcp_servers: { far: { url: `${endpoint.url}/mcp` } },
      tools: { policy: { external_default: 'enabled' } },
    }),
  )
  const kernel = await boot({
    plugins: [...inTree, sender(() => endpoint.url)],
    home,
    env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home, ...env },
  })
  const post = (url: string, body?: unknown) =>
    kernel.kernel.inject({ method: 'POST', url, headers: { traceparent: REMOTE }, ...(body !== undefined && { body }) })
  return {
    endpoint,
    kernel,
    post,
    /** Calls the tool of the MCP server; what the server was sent for it. */
    async callTool() {
      await eventually(
        async () =>
          (await kernel.request('GET', '/api/settings/mcp-servers/far?probe=true')).body.mcp_server?.tools.length > 0,
        'the tool',
      )
      const reply = await post('/api/tools/mcp__far__echo/invoke', { input: {} })
      assert.match(reply.body, 'said')
      return endpoint.received.find(({ body }) => body.includes('tools/call')) as Received
    },
    async [Symbol.asyncDispose]() {
      await kernel.close()
      await endpoint.close()
    },
  }
}

test('an MCP tool call and each plugin request in a trace have their place in it', async () => {
  const collector = await Collector.start()
  {
    await using scene = await world({ telemetry: { otlp_endpoint: collector.url } })
    await eventually(
      async () => (await scene.kernel.request('GET', '/api/telemetry')).body.telemetry.traces.state === 'ok',
      'traces',
    )
    assert.is((await scene.post('/api/ext/acme.send/fetch')).status, 204)
    const [plain, own] = ['/plain', '/own'].map(at => scene.endpoint.received.find(one => one.path === at)?.headers)
    assert.match(`${plain?.traceparent}`, `00-${TRACE}-`)
    assert.is(own?.traceparent, 'mine', 'a header of the caller stays')
    const { body, headers } = await scene.callTool()
    const { _meta: meta } = JSON.parse(body).params
    assert.match(meta.traceparent, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`))
    assert.match(`${headers.traceparent}`, `00-${TRACE}-`)
  }
  assert.ok(collector.received.length > 0)
  assert.equal(
    collector.received.filter(({ headers }) => headers.traceparent !== undefined),
    [],
    'reports of spans are part of no trace',
  )
  const [sent] = collector.named('POST /api/ext/acme.send/fetch')
  assert.is(sent?.traceId, TRACE)
  await collector.close()
})

test('without an endpoint nothing is sent or marked, whatever the environment says', async () => {
  const listener = await HttpEndpoint.start(() => ({ body: {} }))
  const variables = {
    OTEL_EXPORTER_OTLP_ENDPOINT: listener.url,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${listener.url}/v1/traces`,
    OTEL_TRACES_EXPORTER: 'otlp',
  }
  Object.assign(process.env, variables)
  const opened: unknown[] = []
  const opening = (message: unknown) => opened.push(message)
  subscribe('net.client.socket', opening)
  try {
    await using scene = await world({}, variables)
    const before = opened.length
    assert.is((await scene.kernel.request('GET', '/metrics')).status, 200)
    assert.is((await scene.kernel.request('GET', '/api/status')).status, 200)
    assert.is((await scene.kernel.request('GET', '/api/telemetry')).body.telemetry.traces.state, 'off')
    assert.is(opened.length, before, 'no connection was opened')
    assert.is((await scene.post('/api/ext/acme.send/fetch')).status, 204)
    const { body } = await scene.callTool()
    assert.is(JSON.parse(body).params._meta, undefined)
    assert.equal(
      scene.endpoint.received.filter(
        ({ headers }) => headers.traceparent !== undefined && headers.traceparent !== 'mine',
      ),
      [],
    )
    assert.ok(opened.length > before, 'the look at connections sees them')
  } finally {
    unsubscribe('net.client.socket', opening)
    for (const name of Object.keys(variables)) delete process.env[name]
    assert.equal(listener.received, [])
    await listener.close()
  }
})

test.run()
