import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Failure = 'refuse' | 'revoked' | 'hang'

export interface OAuthWorld {
  readonly issuer: string
  /** URL of the MCP server that wants tokens. */
  readonly url: string
  /** Tokens that the MCP server was shown, in order. */
  readonly shown: string[]
  /** Requests that the authorization server got, `POST /token`. */
  readonly asked: string[]
  /** Logins that were revoked, each counted once: a client whose time runs out asks again for one that is revoked already. */
  readonly ended: ReadonlySet<string>
  /** Resolves when no file work and no request to the authorization server is under way. */
  settled(): Promise<void>
  /** Resolves with the next request of this kind, which is answered a while later. */
  asking(request: string): Promise<void>
  /** Requests of this kind get 503, `invalid_grant` or no answer; undefined: they are served again. */
  fail(request: string, how: Failure | undefined): void
  /** Takes every token back. */
  revokeAll(): void
  /** What the metadata of the MCP server name as its authorization server, instead of the real one. */
  lie(issuer: string | undefined): void
  close(): Promise<void>
}

/** File work, and requests that have not reached a server. */
const UNDER_WAY = /^(FSReq|CloseReq|TCPConnect|GetAddrInfo|WriteWrap)/
/** Turns of the event loop that an answer takes at most from one end to the other, and work between two requests. */
const QUIET_TURNS = 8

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown

async function listen(handler: (origin: string) => Handler) {
  let handle: Handler = () => {}
  const server = createServer((request, response) => void handle(request, response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  handle = handler(origin)
  const close = () =>
    new Promise<void>(resolve => {
      server.closeAllConnections()
      server.close(() => resolve())
    })
  return { origin, close }
}

/**
 * A real authorization server, and an MCP server that wants its tokens.
 * @param options `ttl`: seconds that a token counts; `pages`: people log in on the pages of the server, else it says yes to everybody
 */
export async function oauthWorld({ ttl = 3600, pages = false } = {}): Promise<OAuthWorld> {
  // Here and not above: every test is in one bundle with this, and the authorization server dislikes an old Node aloud.
  const [{ Server }, { StreamableHTTPServerTransport }, { CallToolRequestSchema, ListToolsRequestSchema }] =
    await Promise.all([
      import('@modelcontextprotocol/sdk/server/index.js'),
      import('@modelcontextprotocol/sdk/server/streamableHttp.js'),
      import('@modelcontextprotocol/sdk/types.js'),
    ])
  // @ts-expect-error it comes without types
  const { default: Provider } = await import('oidc-provider')
  const shown: string[] = []
  const requests: string[] = []
  const ended = new Set<string>()
  const failing = new Map<string, Failure>()
  let awaiting: readonly { readonly kind: string; heard(): void }[] = []
  const unanswered = new Set<ServerResponse>()
  let revoked = 0
  let named: string | undefined
  let resource = ''
  let provider:
    | {
        AccessToken: {
          find(token: string): Promise<{ accountId: string; isExpired: boolean; iat?: number } | undefined>
        }
      }
    | undefined
  const authority = await listen(origin => {
    const made = new Provider(origin, {
      clients: [
        {
          client_id: 'known',
          client_secret: 'a-client-secret',
          redirect_uris: ['http://127.0.0.1/cb'],
          token_endpoint_auth_method: 'client_secret_post',
        },
      ],
      findAccount: async (_: unknown, id: string) => ({ accountId: id, claims: async () => ({ sub: id }) }),
      scopes: ['openid', 'offline_access', 'tools'],
      pkce: { required: () => true },
      issueRefreshToken: async () => true,
      rotateRefreshToken: true,
      ttl: { AccessToken: ttl, Session: 600, Interaction: 600, Grant: 600, RefreshToken: 600 },
      ...(!pages && { interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` } }),
      features: {
        devInteractions: { enabled: pages },
        registration: { enabled: true },
        revocation: { enabled: true },
        resourceIndicators: {
          enabled: true,
          useGrantedResource: async () => true,
          getResourceServerInfo: async () => ({ scope: 'tools', accessTokenFormat: 'opaque', accessTokenTTL: ttl }),
        },
      },
    })
    provider = made
    made.on('grant.revoked', (_: unknown, grant: string) => ended.add(grant))
    const answer = made.callback()
    return async (request, response) => {
      const kind = `${request.method} ${request.url?.split('?')[0]}`
      requests.push(kind)
      unanswered.add(response)
      response.once('close', () => unanswered.delete(response))
      const awaited = awaiting.filter(one => one.kind === kind)
      for (const { heard } of awaited) heard()
      awaiting = awaiting.filter(one => one.kind !== kind)
      // Long enough for another request to come in between.
      if (awaited.length > 0) for (let n = 0; n < 200; n++) await new Promise(resolve => setImmediate(resolve))
      const how = failing.get(kind)
      if (how === 'hang') return
      if (how === 'refuse') return response.writeHead(503).end()
      if (how === 'revoked') {
        response.writeHead(400, { 'content-type': 'application/json' })
        return response.end(JSON.stringify({ error: 'invalid_grant', error_description: 'it was revoked' }))
      }
      if (pages || !request.url?.startsWith('/interaction/')) return answer(request, response)
      const { params } = await made.interactionDetails(request, response)
      const grant = new made.Grant({ accountId: 'me', clientId: String(params.client_id) })
      grant.addOIDCScope('openid offline_access tools')
      grant.addResourceScope(resource, 'tools')
      const result = { login: { accountId: 'me' }, consent: { grantId: await grant.save() } }
      await made.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
    }
  })
  const served = await listen(origin => async (request, response) => {
    resource = `${origin}/mcp`
    const json = (status: number, body: unknown, headers = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(JSON.stringify(body))
    }
    if (request.url?.startsWith('/.well-known/oauth-protected-resource'))
      return json(200, { resource, authorization_servers: [named ?? authority.origin], scopes_supported: ['tools'] })
    const [, token = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? []
    if (token !== '') shown.push(token)
    const found = await provider?.AccessToken.find(token)
    if (!found || found.isExpired || (found.iat ?? 0) <= revoked) return json(401, { error: 'invalid_token' })
    const server = new Server({ name: 'guarded', version: '1' }, { capabilities: { tools: {} } })
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: [{ name: 'who', description: 'says who asks', inputSchema: { type: 'object' } }],
    }))
    server.setRequestHandler(CallToolRequestSchema, () => ({
      content: [{ type: 'text', text: `you are ${found.accountId}` }],
    }))
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined as never })
    await server.connect(transport as never)
    await transport.handleRequest(request, response)
  })
  resource = `${served.origin}/mcp`
  return {
    issuer: authority.origin,
    url: resource,
    shown,
    asked: requests,
    ended,
    async settled() {
      const isOpen = () => [...unanswered].some(({ closed }) => !closed)
      const isBusy = () => isOpen() || process.getActiveResourcesInfo().some(name => UNDER_WAY.test(name))
      for (let quiet = 0; quiet < QUIET_TURNS; quiet = isBusy() ? 0 : quiet + 1)
        await new Promise(resolve => setImmediate(resolve))
    },
    asking: kind =>
      new Promise(heard => {
        awaiting = [...awaiting, { kind, heard }]
      }),
    fail: (kind, how) => {
      if (how) failing.set(kind, how)
      else failing.delete(kind)
    },
    revokeAll: () => {
      revoked = Math.floor(Date.now() / 1000)
    },
    lie: issuer => {
      named = issuer
    },
    close: async () => void (await Promise.all([authority.close(), served.close()])),
  }
}

/** Follows redirects as a browser does, cookies included, until one leads to `stop`. */
export async function browse(url: string, stop: string): Promise<string> {
  const jar = new Map<string, string>()
  let at = url
  for (let hops = 0; hops < 10; hops++) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const reply = await fetch(at, { redirect: 'manual', headers: { cookie } })
    for (const one of reply.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(one) ?? []
      jar.set(name, value)
    }
    const location = reply.headers.get('location')
    if (!location) throw new Error(`${at}: ${reply.status} ${await reply.text()}`)
    at = new URL(location, at).href
    if (at.startsWith(stop)) return at
  }
  throw new Error(`too many redirects from ${url}`)
}
