import { type Actor, type Clock, type Db, type Ids, type Log, messageOf, type Tx } from '../../../kernel/plugin.js'
import type { VaultApi } from '../../vault/api.js'
import { guardedFetch } from './addresses.js'
import { clientIdOf } from './login-status.js'
import type { LoginRow } from './login-table.js'

export const farewellTable = `CREATE TABLE mcp_farewell (
  id TEXT PRIMARY KEY,
  server TEXT NOT NULL,
  workspace_id TEXT,
  login TEXT,
  secrets TEXT NOT NULL,
  unless TEXT
) STRICT`

/** What is left of a login or a server that is gone, and has to go as well. */
export interface Farewell {
  readonly server: string
  readonly workspaceId?: string | undefined
  /** Its tokens are revoked, where the authorization server takes that. */
  readonly login?: LoginRow | undefined
  /** References of the vault. */
  readonly secrets: readonly string[]
  /** Binding of a server that is about to be removed: all of it stays where that is still declared after a crash. */
  readonly unless?: string | undefined
}

interface Row {
  readonly id: string
  readonly server: string
  readonly workspace_id: string | null
  readonly login: string | null
  readonly secrets: string
  readonly unless: string | null
}

interface World {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** Names of the secrets of a login below {@link LoginRow.secrets}. */
const PARTS = ['access-token', 'refresh-token', 'client-secret']

/** References of the secrets of a login. */
export const secretsOf = ({ secrets }: LoginRow): string[] => PARTS.map(part => `${secrets}/${part}`)

/**
 * Revokes tokens and deletes secrets of what is gone. A row is written first, in the transaction that removes the login: a daemon
 * that is killed in between goes on with its next start.
 */
export class Farewells {
  constructor(
    private readonly world: World,
    private readonly vaultOf: () => VaultApi,
  ) {}

  /** Returns the id for {@link carryOut}. */
  note(t: Tx, { server, workspaceId, login, secrets, unless }: Farewell): string {
    const id = this.world.ids.id('bye')
    t.run('INSERT INTO mcp_farewell (id, server, workspace_id, login, secrets, unless) VALUES (?, ?, ?, ?, ?, ?)', [
      id,
      server,
      workspaceId ?? null,
      login ? JSON.stringify(login) : null,
      JSON.stringify(secrets),
      unless ?? null,
    ])
    return id
  }

  /** Takes a row back: nothing of it goes. */
  drop(id: string): Promise<void> {
    return this.world.db.tx(t => void t.run('DELETE FROM mcp_farewell WHERE id = ?', [id]))
  }

  /** What a daemon before this one did not get to. */
  open(): readonly (Farewell & { readonly id: string })[] {
    return this.world.db.all<Row>('SELECT * FROM mcp_farewell ORDER BY rowid').map(row => ({
      id: row.id,
      server: row.server,
      workspaceId: row.workspace_id ?? undefined,
      login: row.login === null ? undefined : JSON.parse(row.login),
      secrets: JSON.parse(row.secrets),
      unless: row.unless ?? undefined,
    }))
  }

  /** Revokes, deletes, and forgets the row. A server that does not take the revocation keeps nothing here. */
  async carryOut(id: string, { login, secrets }: Farewell, actor?: Actor): Promise<void> {
    if (login)
      await this.#revoke(this.vaultOf(), login).catch(error =>
        this.world.log.warn('a token was not revoked', { server: login.server, why: messageOf(error) }),
      )
    for (const reference of secrets) await this.vaultOf().delete(reference, actor)
    await this.drop(id)
  }

  /** RFC 7009; the tokens that came of a refresh token go with it. */
  async #revoke(vault: VaultApi, login: LoginRow): Promise<void> {
    const { revocation_endpoint: endpoint } = JSON.parse(login.metadata) as { revocation_endpoint?: string }
    const reveal = (part: string) => vault.reveal(`${login.secrets}/${part}`).catch(() => undefined)
    const token = (await reveal('refresh-token')) ?? (await reveal('access-token'))
    if (!endpoint || token === undefined) return
    const secret = await reveal('client-secret')
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
    // The endpoint was named by the server when somebody logged in: it may lead into the network of that one alone.
    const near = login.resource ?? login.issuer
    const reply = await guardedFetch(this.world.clock, near)(endpoint, {
      method: 'POST',
      body,
      ...(headers && { headers }),
    })
    if (!reply.ok) throw new Error(`${endpoint} answers ${reply.status}`)
  }
}
