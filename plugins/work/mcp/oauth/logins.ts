import type { OAuthTokens } from '@modelcontextprotocol/client'
import { resolveSecret } from '../../../../kernel/kit/secret-ref.js'
import { SerialBy } from '../../../../kernel/kit/serial.js'
import { clip, shown } from '../../../../kernel/kit/text.js'
import { type Actor, Fault, iso, messageOf } from '../../../../kernel/plugin.js'
import type { McpAuthStatus } from '../../../../schemas/settings/mcp-servers.js'
import type { VaultApi } from '../../../access/vault/api.js'
import { askerFor } from '../client/reach.js'
import { McpErrors } from '../errors.js'
import type { K } from '../needs.js'
import { refBase, workspaceSecrets } from '../servers/own-secrets.js'
import type { Server } from '../sources/declaration.js'
import { guardedFetch } from './addresses.js'
import { clientFor, discover } from './discovery.js'
import { type FailedRevocation, Farewells } from './farewells.js'
import { bindingOf, loginOf, nextOf, statusOf } from './login-status.js'
import { type LoginRow, logins } from './login-table.js'
import { type Answer, checkIssuer, type Pending, PendingLogins } from './pending.js'
import { secretsOf } from './revoke.js'

/** Path that the authorization server redirects the browser to. */
export const CALLBACK = '/api/mcp/oauth/callback'
const USUAL_PORT = 2123
/** Maximum number of scopes that refused calls add to a login. */
const MOST_SCOPES = 64
/** Milliseconds before the expiry at which a token is renewed. */
const EARLY_MS = 30_000

/** Logs in to MCP servers by OAuth 2.1 with PKCE, and keeps the tokens. */
export class Logins {
  readonly #pending: PendingLogins
  /** Serializes renewals, completed logins and logouts by binding, so that the last request wins. */
  readonly #serial = new SerialBy()
  /** Removes the leftovers of logins and servers. */
  readonly farewells: Farewells
  /** Scopes that calls required and the token lacks, by binding; the next login requests them. */
  readonly #wanted = new Map<string, readonly string[]>()

  constructor(
    private readonly kernel: K,
    /** Called after a login or logout, which invalidates the known state of the server. */
    private readonly changed: (server: Server) => void,
    /** Called before a login. */
    private readonly entering: (server: Server) => Promise<void>,
  ) {
    this.#pending = new PendingLogins(kernel.clock)
    this.farewells = new Farewells(kernel)
  }

  /** @throws Fault `mcp_auth_unconfigured`, `mcp_auth_discovery_failed`, `mcp_auth_address_refused` */
  async begin(server: Server) {
    const { clock, ids } = this.kernel
    const login = loginOf(server)
    const found = await discover(clock, server, login)
    const more = this.#wanted.get(bindingOf(server)) ?? []
    const authority = { ...found, scopes: [...new Set([...found.scopes, ...more])] }
    const callback = this.#callback()
    const secret = login.client_secret_ref
      ? await resolveSecret(
          askerFor(this.kernel, server.source),
          login.client_secret_ref,
          `the client secret of ${server.name}`,
        )
      : undefined
    const client = await clientFor(clock, server, login, authority, callback.url, secret)
    const { startAuthorization } = await import('@modelcontextprotocol/client')
    const state = ids.hex(24)
    const { metadata, issuer, resource, scopes } = authority
    const { authorizationUrl, codeVerifier } = await startAuthorization(issuer, {
      metadata,
      clientInformation: client,
      redirectUrl: callback.url,
      state,
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      ...(resource !== undefined && { resource }),
    })
    const expiresAt = this.#pending.add(state, {
      server,
      authority,
      client,
      verifier: codeVerifier,
      callback: callback.url,
    })
    return {
      authorization_url: authorizationUrl.href,
      callback_url: callback.url,
      expires_at: iso(expiresAt),
      manual_supported: true,
      state,
    }
  }

  /** The fault of a valid token without a scope that a call requires: a person has to log in again. */
  lacks(server: Server, scope: string): Fault {
    const row = logins.get(this.kernel.db, { binding: bindingOf(server) })
    const scopes = [...(row?.scopes.split(' ') ?? []), ...scope.split(' ')].filter(
      one => one !== '' && one.length <= 256,
    )
    this.#wanted.set(bindingOf(server), [...new Set(scopes)].slice(0, MOST_SCOPES))
    const text = `${server.name} requires a login with more scopes for this: ${shown(scope)}`
    return McpErrors.mcp_auth_required(text, { next: nextOf(server), details: { scope: clip(scope, 1000) } })
  }

  /**
   * Completes a login after the browser's redirect. @throws Fault `mcp_auth_state_invalid`, `mcp_auth_refused`,
   * `mcp_auth_exchange_failed`
   */
  async callback(query: Answer & { readonly state: string }): Promise<Server> {
    const pending = this.#pending.take(query.state)
    if (!pending) throw McpErrors.mcp_auth_state_invalid()
    await this.#finish(pending, query, undefined)
    return pending.server
  }

  /** Completes a login with a pasted code or redirect address. @throws Fault as {@link callback} */
  async exchange(server: Server, input: { code: string } | { redirect_url: string }, actor: Actor): Promise<void> {
    if ('code' in input) {
      const pending = this.#pending.takeOf(server.key)
      if (!pending) throw McpErrors.mcp_auth_state_invalid('no login to this server was started, or it has expired')
      return this.#finish(pending, input, actor)
    }
    if (!URL.canParse(input.redirect_url)) throw McpErrors.mcp_auth_state_invalid('the address is no URL')
    const query = Object.fromEntries(new URL(input.redirect_url).searchParams)
    const pending = this.#pending.take(query.state ?? '', server.key)
    if (!pending) throw McpErrors.mcp_auth_state_invalid()
    return this.#finish(pending, query, actor)
  }

  status(server: Server): McpAuthStatus {
    return statusOf(server, logins.get(this.kernel.db, { binding: bindingOf(server) }), this.kernel.clock.now())
  }

  /** Whether a login exists for a binding. */
  has(binding: string): boolean {
    return logins.get(this.kernel.db, { binding }) !== undefined
  }

  /** Deletes the tokens and revokes them if the authorization server supports it. A started login is discarded. */
  async logout(server: Server, actor?: Actor): Promise<void> {
    this.#pending.forget(server.key)
    await this.forget(bindingOf(server), actor)
    this.changed(server)
  }

  /**
   * Retries failed revocations of removed logins.
   * @returns whether there were any
   * @throws Fault `mcp_auth_revocation_failed`
   */
  async revokeAgain(isMeant: (failed: FailedRevocation) => boolean, actor: Actor): Promise<boolean> {
    const isAny = this.farewells.failed().some(isMeant)
    const [still] = await this.farewells.retry(isMeant, actor)
    if (still) throw McpErrors.mcp_auth_revocation_failed(`the login to ${still.server} is not revoked: ${still.why}`)
    return isAny
  }

  /** As {@link logout}, for a server that may no longer be declared. A running renewal finishes first. */
  forget(binding: string, actor?: Actor): Promise<void> {
    return this.#serial.run(binding, async () => {
      this.#wanted.delete(binding)
      const login = logins.get(this.kernel.db, { binding })
      if (!login) return
      const workspaceId = login.workspace_id ?? undefined
      const farewell = { server: login.server, workspaceId, login, secrets: secretsOf(login) }
      const id = await this.kernel.db.tx(t => {
        logins.delete(t, { binding })
        return this.farewells.note(t, farewell)
      })
      await this.farewells.carryOut(id, farewell, actor)
    })
  }

  /** Deletes all remaining secrets of a removed workspace's servers, after its logins were revoked. */
  async forgetSecrets(id: string): Promise<void> {
    await this.kernel.db.tx(t => {
      for (const path of workspaceSecrets.paths(id)) this.kernel.needs.vault.current?.forget(t, path)
    })
  }

  /**
   * The access token of a server, renewed if it is about to expire.
   * @param again a refused token, which is renewed in any case
   * @throws Fault `mcp_auth_required`, `mcp_auth_expired`, `mcp_auth_invalid`, `mcp_auth_refresh_failed`
   */
  token(server: Server, again?: string): Promise<string> {
    const binding = bindingOf(server)
    return this.#serial.run(binding, async () => {
      const row = logins.get(this.kernel.db, { binding })
      if (!row) throw McpErrors.mcp_auth_required(`${server.name} requires a login`, { next: nextOf(server) })
      const token = await this.#vault().reveal(`${row.secrets}/access-token`)
      const isOld = row.expires_at !== null && row.expires_at - EARLY_MS <= this.kernel.clock.now()
      if (token !== undefined && token !== again && !isOld) return token
      // The refresh token was refused for good: another request with it would only be refused again.
      if (row.refreshable === 0 && row.problem === REFRESH_FAILED) throw wantsLogin(server, REFRESH_FAILED)
      if (row.refreshable === 0) return this.#fail(server, row, isOld ? 'mcp_auth_expired' : 'mcp_auth_invalid')
      return this.#renew(server, row)
    })
  }

  async #renew(server: Server, row: LoginRow): Promise<string> {
    const vault = this.#vault()
    const refresh = await vault.reveal(`${row.secrets}/refresh-token`)
    const secret = await vault.reveal(`${row.secrets}/client-secret`)
    if (refresh === undefined) return this.#fail(server, row, 'mcp_auth_expired')
    const { refreshAuthorization } = await import('@modelcontextprotocol/client')
    try {
      const tokens = await refreshAuthorization(row.issuer, {
        metadata: JSON.parse(row.metadata),
        clientInformation: { ...JSON.parse(row.client), ...(secret !== undefined && { client_secret: secret }) },
        refreshToken: refresh,
        ...(row.resource !== null && { resource: new URL(row.resource) }),
        fetchFn: guardedFetch(this.kernel.clock, server.declaration.url ?? '') as typeof fetch,
      })
      await this.#keep(row, tokens, undefined)
      return tokens.access_token
    } catch (error) {
      this.kernel.log.warn('a login could not be renewed', { server: server.name, why: messageOf(error) })
      // The login itself is still valid: the next call retries the renewal.
      if (isPassing(error))
        throw McpErrors.mcp_unreachable(`${server.name}: its login cannot be renewed now: ${messageOf(error)}`, {
          cause: error,
        })
      return this.#fail(server, isRevoked(error) ? { ...row, refreshable: 0 } : row, REFRESH_FAILED)
    }
  }

  async #fail(
    server: Server,
    row: LoginRow,
    code: 'mcp_auth_expired' | 'mcp_auth_invalid' | typeof REFRESH_FAILED,
  ): Promise<never> {
    const problem = { ...row, problem: code, updated_at: this.kernel.clock.now() }
    await this.kernel.db.tx(t => logins.replace(t, problem))
    throw wantsLogin(server, code)
  }

  #finish(pending: Pending, answer: Answer, actor: Actor | undefined): Promise<void> {
    return this.#serial.run(bindingOf(pending.server), () => this.#exchanged(pending, answer, actor))
  }

  async #exchanged(
    { server, authority, client, verifier, callback }: Pending,
    { code, error, iss }: Answer,
    actor: Actor | undefined,
  ): Promise<void> {
    const { issuer, metadata, resource } = authority
    checkIssuer(authority, iss, code !== undefined && error === undefined)
    if (error !== undefined || !code)
      throw McpErrors.mcp_auth_refused(`${issuer} says ${clip(error ?? 'nothing', 200)}`)
    const { exchangeAuthorization } = await import('@modelcontextprotocol/client')
    const tokens = await exchangeAuthorization(issuer, {
      metadata,
      clientInformation: client,
      authorizationCode: code,
      ...(iss !== undefined && { iss }),
      codeVerifier: verifier,
      redirectUri: callback,
      ...(resource !== undefined && { resource: new URL(resource) }),
      fetchFn: guardedFetch(this.kernel.clock, server.declaration.url ?? '') as typeof fetch,
    }).catch(error => {
      if (error instanceof Fault) throw error
      throw McpErrors.mcp_auth_exchange_failed(`${issuer}: ${messageOf(error)}`, { cause: error })
    })
    const { client_secret: secret, ...rest } = client
    const binding = bindingOf(server)
    this.#wanted.delete(binding)
    const { workspaceId } = server.source
    const row = {
      binding,
      server: server.name,
      workspace_id: workspaceId ?? null,
      secrets: `${refBase(server.name, workspaceId)}/oauth/${binding.slice(0, 16)}`,
      issuer,
      metadata: JSON.stringify(metadata),
      client: JSON.stringify(rest),
      resource: resource ?? null,
      scopes: authority.scopes.join(' '),
      expires_at: null,
      refreshable: 0,
      problem: null,
      updated_at: 0,
    }
    await this.entering(server)
    if (secret) await this.#vault().put(`${row.secrets}/client-secret`, secret, { kind: 'oauth', actor })
    await this.#keep(row, tokens, actor)
    this.changed(server)
  }

  /** The tokens are stored in the vault before the row refers to them. */
  async #keep(row: LoginRow, tokens: OAuthTokens, actor: Actor | undefined): Promise<void> {
    const { clock, db } = this.kernel
    const vault = this.#vault()
    const options = { kind: 'oauth', allowShort: true, actor }
    const { access_token, refresh_token, expires_in, scope } = tokens
    await vault.put(`${row.secrets}/access-token`, access_token, options)
    if (refresh_token) await vault.put(`${row.secrets}/refresh-token`, refresh_token, options)
    const now = clock.now()
    const kept = {
      ...row,
      scopes: scope ?? row.scopes,
      expires_at: expires_in === undefined ? null : now + expires_in * 1000,
      refreshable: refresh_token || row.refreshable ? 1 : 0,
      problem: null,
      updated_at: now,
    }
    await db.tx(t => logins.replace(t, kept))
  }

  #vault(): VaultApi {
    const vault = this.kernel.needs.vault.current
    if (!vault) throw McpErrors.mcp_auth_unconfigured('tokens cannot be stored, because the vault is not available')
    return vault
  }

  /** Redirect address of the browser; while the daemon does not listen there, a person pastes the address. */
  #callback() {
    const tcp = this.kernel.needs.host.listeners().find(({ door }) => door === 'tcp')
    const port = tcp && 'port' in tcp ? tcp.port : USUAL_PORT
    return { url: `http://127.0.0.1:${port}${CALLBACK}` }
  }
}

/** OAuth error codes about the server's state rather than the login. */
const PASSING = ['server_error', 'temporarily_unavailable', 'too_many_requests']

const REFRESH_FAILED = 'mcp_auth_refresh_failed'

/** Whether the authorization server no longer accepts the refresh token (RFC 6749, section 5.2). */
const isRevoked = (error: unknown): boolean => Object(error).code === 'invalid_grant'

const wantsLogin = (server: Server, code: 'mcp_auth_expired' | 'mcp_auth_invalid' | typeof REFRESH_FAILED) =>
  McpErrors[code](`${server.name} requires a new login`, { next: nextOf(server) })

/** Whether a renewal failed for a temporary reason: no answer, or a temporary server error. */
const isPassing = (error: unknown): boolean =>
  error instanceof TypeError || PASSING.includes(String(Object(error).code)) || isTimeout(error)

const isTimeout = (error: unknown) => error instanceof Error && ['AbortError', 'TimeoutError'].includes(error.name)
