import type { Clock } from '../../../../kernel/plugin.js'
import type { VaultApi } from '../../../access/vault/api.js'
import { guardedFetch } from './addresses.js'
import { clientIdOf } from './login-status.js'
import type { LoginRow } from './login-table.js'

/** Names of a login's secrets below {@link LoginRow.secrets}. */
const PARTS = ['access-token', 'refresh-token', 'client-secret'] as const

/** References of a login's secrets. */
export const secretsOf = ({ secrets }: Pick<LoginRow, 'secrets'>): string[] => PARTS.map(part => `${secrets}/${part}`)

/** Revocation endpoint of the authorization server; undefined if it has none. */
export const revocationEndpoint = ({ metadata }: LoginRow): string | undefined =>
  (JSON.parse(metadata) as { revocation_endpoint?: string }).revocation_endpoint

/** Values needed for a revocation, by the names of their secrets. */
export async function neededFor(vault: VaultApi, login: LoginRow): Promise<Readonly<Record<string, string>>> {
  const reveal = (part: (typeof PARTS)[number]) => vault.reveal(`${login.secrets}/${part}`)
  const refresh = await reveal('refresh-token')
  const access = refresh === undefined ? await reveal('access-token') : undefined
  const secret = await reveal('client-secret')
  return {
    ...(refresh !== undefined && { 'refresh-token': refresh }),
    ...(access !== undefined && { 'access-token': access }),
    ...(secret !== undefined && { 'client-secret': secret }),
  }
}

/**
 * Revokes a login by RFC 7009 if the authorization server supports it; tokens derived from the refresh token are
 * revoked with it.
 * @throws Error, Fault: the tokens may still be valid
 */
export async function revoke(clock: Clock, vault: VaultApi, login: LoginRow): Promise<void> {
  const endpoint = revocationEndpoint(login)
  if (!endpoint) return
  const needed = await neededFor(vault, login)
  const token = needed['refresh-token'] ?? needed['access-token']
  if (token === undefined) return
  const secret = needed['client-secret']
  const { token_endpoint_auth_method: method } = JSON.parse(login.client) as { token_endpoint_auth_method?: string }
  const id = clientIdOf(login)
  const isBasic = secret !== undefined && method !== 'client_secret_post'
  const body = new URLSearchParams({
    token,
    ...(!isBasic && { client_id: id }),
    ...(secret !== undefined && !isBasic && { client_secret: secret }),
  })
  const pair = [id, secret ?? ''].map(encodeURIComponent).join(':')
  const headers = isBasic ? { authorization: `Basic ${Buffer.from(pair).toString('base64')}` } : undefined
  // The server named the endpoint at the login: it may only lead into that server's own network.
  const near = login.resource ?? login.issuer
  const reply = await guardedFetch(clock, near)(endpoint, { method: 'POST', body, ...(headers && { headers }) })
  if (!reply.ok) throw new Error(`${endpoint} answers ${reply.status}`)
}
