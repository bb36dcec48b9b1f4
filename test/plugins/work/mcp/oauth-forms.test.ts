// timeout: 120s
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { browse } from './oauth-world.js'
import { type McpScene, mcpScene } from './scene.js'

const DOCUMENT = 'https://clients.example/svc.json'
const at = '/api/settings/mcp-servers/guarded/auth'

interface Form {
  /** Metadata of the authorization server, at the root; absent: it has none. */
  readonly metadata?: (origin: string) => object
  /** Scope that a call of a tool needs; absent: any token does. */
  readonly needs?: string
  /** It says where its authorization server is, as servers do since 2025-06-18. */
  readonly isNamed?: boolean
}

/** An MCP server that logs people in itself, in one of several forms. A token is the scope that it was asked for. */
async function guarded({ metadata, needs, isNamed = false }: Form) {
  const requests: URL[] = []
  let registered = 0
  let scope = ''
  let origin = ''
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '', origin)
    const text = Buffer.concat(await request.toArray()).toString()
    const say = (status: number, body?: object, headers: Record<string, string> = {}) =>
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(body ? JSON.stringify(body) : undefined)
    const where = url.pathname.replace(/^\/oauth/, '')
    if (isNamed && where === '/.well-known/oauth-protected-resource/mcp')
      return say(200, { resource: `${origin}/mcp`, authorization_servers: [origin] })
    if (metadata && where === '/.well-known/oauth-authorization-server') return say(200, metadata(origin))
    if (where === '/register') {
      registered++
      return say(201, { ...JSON.parse(text), client_id: `client-${registered}` })
    }
    if (where === '/authorize') {
      requests.push(url)
      scope = url.searchParams.get('scope') ?? ''
      const back = new URL(url.searchParams.get('redirect_uri') ?? '')
      back.searchParams.set('code', 'code')
      back.searchParams.set('state', url.searchParams.get('state') ?? '')
      return say(302, undefined, { location: back.href })
    }
    if (where === '/token') return say(200, { access_token: `token of ${scope}`, token_type: 'Bearer' })
    if (where !== '/mcp') return say(404)
    if (request.method !== 'POST') return say(405)
    const { authorization = '' } = request.headers
    if (!authorization.startsWith('Bearer ')) return say(401, {}, { 'www-authenticate': 'Bearer scope="base"' })
    const { id, method, params } = JSON.parse(text)
    const answer = (result: object) => say(200, { jsonrpc: '2.0', id, result })
    if (method === 'initialize')
      return answer({
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'guarded', version: '1' },
      })
    if (id === undefined) return say(202)
    if (method === 'tools/list')
      return answer({ tools: ['read', 'write'].map(name => ({ name, inputSchema: { type: 'object' } })) })
    const isShort = needs !== undefined && params.name === 'write' && !authorization.split(' ').includes(needs)
    if (isShort) return say(403, {}, { 'www-authenticate': `Bearer error="insufficient_scope", scope="base ${needs}"` })
    return answer({ content: [{ type: 'text', text: authorization }] })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () => {
    server.closeAllConnections()
    return new Promise<void>(resolve => server.close(() => resolve()))
  }
  return { url: `${origin}/mcp`, asked: requests, close, registrations: () => registered }
}

/** Endpoints below `/oauth`, which only their metadata name. */
const below = (origin: string) => ({
  issuer: `${origin}/oauth`,
  authorization_endpoint: `${origin}/oauth/authorize`,
  token_endpoint: `${origin}/oauth/token`,
  registration_endpoint: `${origin}/oauth/register`,
  response_types_supported: ['code'],
})
const above = (origin: string) => JSON.parse(JSON.stringify(below(origin)).replaceAll('/oauth', ''))

async function logIn(scene: McpScene): Promise<void> {
  const { status, body } = await scene.request('POST', `${at}/begin?scope=global`, { mode: 'manual' })
  assert.is(status, 200, JSON.stringify(body))
  const redirect_url = await browse(body.authorization_url, body.callback_url)
  const reply = await scene.request('POST', `${at}/exchange?scope=global`, { redirect_url })
  assert.equal([reply.status, reply.body.status], [200, 'authenticated'], JSON.stringify(reply.body))
}

async function inForm(
  form: Form,
  auth: object,
  work: (scene: McpScene, server: Awaited<ReturnType<typeof guarded>>) => Promise<void>,
) {
  const [scene, server] = [await mcpScene(), await guarded(form)]
  try {
    await scene.put('guarded', { url: server.url, auth: { registration: 'auto', ...auth } })
    await logIn(scene)
    await scene.request('GET', '/api/settings/mcp-servers/guarded?probe=true')
    await work(scene, server)
  } finally {
    await scene.close()
    await server.close()
  }
}
const call = (scene: McpScene, tool: string) => scene.call(`mcp__guarded__${tool}`, {})

for (const [what, form, path] of [
  ['with metadata at its root', { metadata: below }, '/oauth/authorize'],
  ['at the default addresses', {}, '/authorize'],
] as const)
  test(`a server of 2025-03-26 without a named issuer is its own issuer, ${what}`, () =>
    inForm(form, {}, async (scene, server) => {
      assert.equal(
        server.asked.map(({ pathname }) => pathname),
        [path],
      )
      assert.is((await call(scene, 'read')).text, 'Bearer token of base')
    }))

test('an authorization server with another issuer is refused', async () => {
  const [scene, server] = [await mcpScene(), await guarded({ metadata: below, isNamed: true })]
  await scene.put('guarded', { url: server.url, auth: { registration: 'auto' } })
  const { body } = await scene.request('POST', `${at}/begin?scope=global`, { mode: 'manual' })
  assert.is(body.code, 'mcp_auth_discovery_failed', JSON.stringify(body))
  await scene.close()
  await server.close()
})

test('a call that needs more scopes asks for a login with them, and the server stays usable', () =>
  inForm({ metadata: above, isNamed: true, needs: 'write' }, {}, async (scene, server) => {
    const refused = await call(scene, 'write')
    assert.equal([refused.code, refused.reasons], ['tool_unavailable', 'mcp_auth_required'])
    assert.match(refused.why ?? '', 'more scopes')
    assert.is((await call(scene, 'read')).text, 'Bearer token of base')
    await logIn(scene)
    assert.equal(
      server.asked.map(({ searchParams }) => searchParams.get('scope')),
      ['base', 'base write'],
    )
    assert.is((await call(scene, 'write')).text, 'Bearer token of base write')
  }))

test('a client id document URL is the client id where supported', async () => {
  const reads = (origin: string) => ({ ...above(origin), client_id_metadata_document_supported: true })
  for (const [metadata, client, registrations] of [
    [reads, DOCUMENT, 0],
    [above, 'client-1', 1],
  ] as const)
    await inForm({ metadata, isNamed: true }, { client_id: DOCUMENT }, async (_, server) => {
      assert.equal([server.asked[0]?.searchParams.get('client_id'), server.registrations()], [client, registrations])
    })
})

test.run()
