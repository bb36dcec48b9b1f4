import type { AuthorizationServerMetadata, OAuthClientInformationMixed } from '@modelcontextprotocol/client'
import { type Clock, Fault, messageOf } from '../../../../kernel/plugin.js'
import { McpErrors } from '../errors.js'
import type { Login, Server } from '../sources/declaration.js'
import { checkAddress, guardedFetch } from './addresses.js'

/** The authorization server of an MCP server, with the daemon's client data. */
export interface Authority {
  readonly issuer: string
  readonly metadata: AuthorizationServerMetadata
  readonly resource: string | undefined
  readonly scopes: readonly string[]
}

/** Endpoints used by a login. */
const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'registration_endpoint', 'revocation_endpoint'] as const

/**
 * Finds the authorization server of an MCP server: the declared one, else the one in the server's metadata.
 * @throws Fault `mcp_auth_discovery_failed`, `mcp_auth_address_refused`
 */
export async function discover(clock: Clock, { name, declaration }: Server, login: Login): Promise<Authority> {
  const { url = '' } = declaration
  const fetchFn = guardedFetch(clock, url) as typeof fetch
  const oauth = await import('@modelcontextprotocol/client')
  try {
    await checkAddress('the server', url, url)
    const challenge = await challengeOf(url, fetchFn)
    const { resourceMetadataUrl } = challenge
    const resourceMetadata = await oauth
      .discoverOAuthProtectedResourceMetadata(url, resourceMetadataUrl ? { resourceMetadataUrl } : {}, fetchFn)
      .catch(error => {
        if (error instanceof Fault) throw error
        return undefined
      })
    if (resourceMetadata && !sameResource(resourceMetadata.resource, url))
      throw new Error(`its metadata describes another resource, ${resourceMetadata.resource}`)
    // Protocol revision 2025-03-26: without metadata, the server's own root is the authorization server.
    const isOld = !resourceMetadata && login.issuer_url === undefined
    const issuer = login.issuer_url ?? resourceMetadata?.authorization_servers?.[0] ?? new URL('/', url).href
    const metadata = await metadataOf(issuer, login, fetchFn, isOld)
    if (!sameUrl(metadata.issuer, issuer) && !(isOld && sameOrigin(metadata.issuer, url)))
      throw new Error(`${issuer} identifies itself as ${metadata.issuer}`)
    for (const member of ENDPOINTS) {
      const endpoint = (metadata as Readonly<Record<string, unknown>>)[member]
      if (typeof endpoint === 'string') await checkAddress(member, endpoint, url)
    }
    const methods = metadata.code_challenge_methods_supported
    if (methods && !methods.includes('S256')) throw new Error('it does not support PKCE with S256')
    // The scopes in the challenge take precedence over all supported ones.
    const scopes =
      login.scopes ?? challenge.scope?.split(' ').filter(Boolean) ?? resourceMetadata?.scopes_supported ?? []
    return { issuer: metadata.issuer, metadata, resource: resourceMetadata?.resource, scopes }
  } catch (error) {
    if (error instanceof Fault) throw error
    throw McpErrors.mcp_auth_discovery_failed(`${name}: ${messageOf(error)}`, { cause: error })
  }
}

/** The server's challenge for a request without a token: the place of its metadata and the required scopes. */
async function challengeOf(url: string, fetchFn: typeof fetch) {
  const { extractWWWAuthenticateParams } = await import('@modelcontextprotocol/client')
  const message = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  try {
    const reply = await fetchFn(url, { method: 'POST', headers, body: JSON.stringify(message) })
    return reply.status === 401 ? extractWWWAuthenticateParams(reply) : {}
  } catch {
    // The metadata may still be at its default place.
    return {}
  }
}

async function metadataOf(
  issuer: string,
  login: Login,
  fetchFn: typeof fetch,
  isOld: boolean,
): Promise<AuthorizationServerMetadata> {
  const { authorization_url, token_url, metadata_url, revocation_url } = login
  if (authorization_url && token_url) {
    return {
      issuer,
      authorization_endpoint: authorization_url,
      token_endpoint: token_url,
      ...(revocation_url && { revocation_endpoint: revocation_url }),
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
    }
  }
  if (metadata_url) {
    const { OAuthMetadataSchema } = await import('@modelcontextprotocol/core')
    return OAuthMetadataSchema.parse(await (await fetchFn(metadata_url)).json())
  }
  const { discoverAuthorizationServerMetadata } = await import('@modelcontextprotocol/client')
  // The caller checks the issuer, with an exception for servers of the old revision.
  const found = await discoverAuthorizationServerMetadata(issuer, { fetchFn, skipIssuerValidation: true })
  if (found) return found
  if (!isOld) throw new Error(`${issuer} has no metadata of an authorization server`)
  const at = (path: string) => new URL(path, issuer).href
  return {
    issuer,
    authorization_endpoint: at('/authorize'),
    token_endpoint: at('/token'),
    registration_endpoint: at('/register'),
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
  }
}

/**
 * The daemon's OAuth client: the declared one, else a newly registered one. An https address as client id refers to a
 * metadata document; a server without support for these registers a client instead.
 * @throws Fault `mcp_auth_unconfigured`, `mcp_auth_discovery_failed`
 */
export async function clientFor(
  clock: Clock,
  { name, declaration }: Server,
  login: Login,
  { metadata, issuer, scopes }: Authority,
  redirect: string,
  secret: string | undefined,
): Promise<OAuthClientInformationMixed> {
  const { client_id_metadata_document_supported: readsDocuments } = metadata as { [member: string]: unknown }
  const isDocument = /^https:/.test(login.client_id ?? '') && login.registration === 'auto'
  if (login.client_id && (!isDocument || readsDocuments === true || !metadata.registration_endpoint))
    return { client_id: login.client_id, ...(secret !== undefined && { client_secret: secret }) }
  if (!metadata.registration_endpoint)
    throw McpErrors.mcp_auth_unconfigured(`${name}: ${issuer} does not support client registration; set auth.client_id`)
  const { registerClient } = await import('@modelcontextprotocol/client')
  try {
    return await registerClient(issuer, {
      metadata,
      clientMetadata: {
        client_name: 'svc',
        redirect_uris: [redirect],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
        application_type: 'native',
        ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      } as never,
      fetchFn: guardedFetch(clock, declaration.url ?? '') as typeof fetch,
    })
  } catch (error) {
    if (error instanceof Fault) throw error
    throw McpErrors.mcp_auth_discovery_failed(`${name}: ${issuer} did not register a client: ${messageOf(error)}`)
  }
}

const sameOrigin = (one: string, other: string) => URL.canParse(one) && new URL(one).origin === new URL(other).origin
const sameUrl = (one: string, other: string) => one.replace(/\/$/, '') === other.replace(/\/$/, '')

/** Whether the server is the resource or below it. */
function sameResource(resource: string, url: string): boolean {
  if (!URL.canParse(resource)) return false
  const [wanted, own] = [new URL(resource), new URL(url)]
  const below = `${own.pathname.replace(/\/$/, '')}/`.startsWith(`${wanted.pathname.replace(/\/$/, '')}/`)
  return wanted.origin === own.origin && below
}
