import { Alarm } from '../../../../kernel/kit/alarm.js'
import { backoff } from '../../../../kernel/kit/backoff.js'
import { SerialBy } from '../../../../kernel/kit/serial.js'
import { clip } from '../../../../kernel/kit/text.js'
import {
  type Actor,
  type Clock,
  type Db,
  type Ids,
  type Log,
  messageOf,
  type SqlValue,
  type Tx,
} from '../../../../kernel/plugin.js'
import { type VaultApi, vaultPath } from '../../../access/vault/api.js'
import type { LoginRow } from './login-table.js'
import { neededFor, revoke, secretsOf } from './revoke.js'

export const farewellTable = `CREATE TABLE mcp_farewell (
  id TEXT PRIMARY KEY,
  server TEXT NOT NULL,
  workspace_id TEXT,
  login TEXT,
  secrets TEXT NOT NULL,
  unless TEXT
) STRICT`

/** Of a revocation that failed. Without a next time nobody tries it again. */
export const retryColumns = `ALTER TABLE mcp_farewell ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mcp_farewell ADD COLUMN failed_since INTEGER;
ALTER TABLE mcp_farewell ADD COLUMN next_at INTEGER;
ALTER TABLE mcp_farewell ADD COLUMN why TEXT;`

const DAY_MS = 86_400_000
/** A revocation is tried again after half a minute, then ever more seldom, up to four times a day. */
const PACE = { firstMs: 30_000, longestMs: DAY_MS / 4 }
const MOST_ATTEMPTS = 40
const LONGEST_MS = 7 * DAY_MS
/** How long doctor tells of one that was given up. */
const TOLD_MS = 30 * DAY_MS
/** Failed revocations that are kept, the newest. */
const MOST_FAILED = 100
/** Characters of a reason that are kept. */
const MOST_WHY = 300
const RETRY_MS = 30_000

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

/** A login that is gone here, and that its authorization server still takes. */
export interface FailedRevocation extends Farewell {
  readonly id: string
  readonly login: LoginRow
  readonly attempts: number
  /** Of the last attempt. */
  readonly why: string
  /** Epoch milliseconds; undefined: it was given up, and its tokens are deleted. */
  readonly nextAt: number | undefined
}

interface Row {
  readonly id: string
  readonly server: string
  readonly workspace_id: string | null
  readonly login: string | null
  readonly secrets: string
  readonly unless: string | null
  readonly attempts: number
  readonly failed_since: number | null
  readonly next_at: number | null
  readonly why: string | null
}

interface World {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/**
 * Revokes tokens and deletes secrets of what is gone. A row is written first, in the transaction that removes the login: a daemon
 * that is killed in between goes on with its next start. The row of a revocation that fails stays, its tokens below
 * `vault:mcp/revoke/`, until an attempt succeeds or it is given up.
 */
export class Farewells {
  readonly #alarm: Alarm
  /** A person and the alarm may try one at once. */
  readonly #serial = new SerialBy()

  constructor(
    private readonly world: World,
    private readonly vaultOf: () => VaultApi | undefined,
  ) {
    this.#alarm = new Alarm(world.clock, { retryMs: RETRY_MS })
  }

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
    return this.world.db.tx(t => remove(t, id))
  }

  /** What a daemon before this one did not get to. */
  open(): readonly (Farewell & { readonly id: string })[] {
    return this.#rows('attempts = 0').map(farewellOf)
  }

  /** Revocations that failed, the oldest first. */
  failed(): readonly FailedRevocation[] {
    return this.#rows('attempts > 0').flatMap(row => {
      const { login, ...farewell } = farewellOf(row)
      const { attempts, why, next_at } = row
      return login ? [{ ...farewell, login, attempts, why: why ?? '', nextAt: next_at ?? undefined }] : []
    })
  }

  /** Revokes, deletes, and forgets the row; one whose revocation fails is kept for another attempt. */
  carryOut(id: string, farewell: Farewell, actor?: Actor): Promise<void> {
    return this.#serial.run(id, () => this.#carryOut(id, farewell, actor))
  }

  async #carryOut(id: string, given: Farewell, actor?: Actor): Promise<void> {
    const { db, clock, log } = this.world
    const [row] = this.#rows('id = ? AND attempts > 0', [id])
    // An attempt that failed meanwhile has moved the tokens.
    const { login, secrets } = row ? farewellOf(row) : given
    const vault = this.vaultOf()
    if (!vault) {
      // A vault that does not run may have them: the next start looks again.
      if (!login && secrets.length === 0) await this.drop(id)
      return
    }
    // Somebody has logged in to the same server after a crash: what lies there belongs to the new login.
    if (login && this.#isInUse(login)) return this.drop(id)
    const why = login && (await revoke(clock, vault, login).then(() => undefined, messageOf))
    if (login && why !== undefined) {
      log.warn('a login was not revoked', { server: login.server, why })
      return this.#postpone(vault, id, login, secrets, clip(why, MOST_WHY), actor)
    }
    await db.tx(t => {
      forget(t, vault, [...secrets, asideOf(id)])
      remove(t, id)
    })
    this.#alarm.set(id, undefined)
  }

  /** Tries those of a server again that are not revoked. Resolves to those that failed once more; one that was given up is dropped. */
  async retry(isMeant: (failed: FailedRevocation) => boolean, actor?: Actor): Promise<readonly FailedRevocation[]> {
    const meant = this.failed().filter(isMeant)
    for (const { id, nextAt, ...farewell } of meant)
      await (nextAt === undefined ? this.drop(id) : this.carryOut(id, farewell, actor))
    const ids = new Set(meant.map(({ id }) => id))
    return this.failed().filter(({ id }) => ids.has(id))
  }

  /** Tries failed revocations again when they are due, until the signal aborts. */
  run(signal: AbortSignal): Promise<void> {
    for (const { id, nextAt } of this.failed()) this.#alarm.set(id, nextAt)
    return this.#alarm.run(signal, {
      fire: async ids => {
        const due = new Set(ids)
        for (const { id, nextAt, ...farewell } of this.failed())
          if (due.has(id) && nextAt !== undefined && !signal.aborted) await this.carryOut(id, farewell)
      },
      failed: error => this.world.log.error('logins could not be revoked', { why: messageOf(error) }),
    })
  }

  /** The tokens leave the place where the next login to this server has its own. */
  async #postpone(
    vault: VaultApi,
    id: string,
    login: LoginRow,
    secrets: readonly string[],
    why: string,
    actor: Actor | undefined,
  ): Promise<void> {
    const { db, clock, ids } = this.world
    const now = clock.now()
    const [before] = this.#rows('id = ?', [id])
    const attempts = (before?.attempts ?? 0) + 1
    const since = before?.failed_since ?? now
    const isGivenUp = attempts >= MOST_ATTEMPTS || now - since >= LONGEST_MS
    const nextAt = isGivenUp ? undefined : now + backoff(attempts, () => ids.random(), PACE)
    const aside = asideOf(id)
    // Values that cannot be read cannot be moved: they stay where they are until then.
    const isMoved = !isGivenUp && (login.secrets === aside || (await this.#move(vault, login, aside, actor)))
    const kept = isMoved ? { ...login, secrets: aside } : login
    await db.tx(t => {
      if (isGivenUp) forget(t, vault, [...secrets, aside])
      else if (isMoved && login.secrets !== aside) forget(t, vault, secrets)
      t.run(
        `UPDATE mcp_farewell SET login = ?, secrets = ?, unless = NULL, attempts = ?, failed_since = ?, next_at = ?, why = ?
          WHERE id = ?`,
        [
          JSON.stringify(kept),
          JSON.stringify(isGivenUp ? [] : isMoved ? secretsOf(kept) : secrets),
          ...[attempts, since, nextAt ?? null, why, id],
        ],
      )
      this.#bound(t, vault, now)
    })
    this.#alarm.set(id, nextAt)
  }

  async #move(vault: VaultApi, login: LoginRow, aside: string, actor: Actor | undefined): Promise<boolean> {
    try {
      for (const [part, value] of Object.entries(await neededFor(vault, login)))
        await vault.put(`${aside}/${part}`, value, { kind: 'oauth', allowShort: true, actor })
      return true
    } catch (error) {
      this.world.log.warn('the tokens of a login cannot be read', { server: login.server, why: messageOf(error) })
      return false
    }
  }

  /** Removes what doctor has told of for long enough, and more than are kept. */
  #bound(t: Tx, vault: VaultApi, now: number): void {
    const old = this.#rows('attempts > 0 AND next_at IS NULL AND failed_since < ?', [now - LONGEST_MS - TOLD_MS])
    const tooMany = this.#rows('attempts > 0').slice(0, -MOST_FAILED)
    for (const { id, secrets } of [...old, ...tooMany]) {
      forget(t, vault, [...JSON.parse(secrets), asideOf(id)])
      remove(t, id)
      this.#alarm.set(id, undefined)
    }
  }

  #isInUse({ secrets }: LoginRow): boolean {
    return this.world.db.row('SELECT 1 FROM mcp_login WHERE secrets = ?', [secrets]) !== undefined
  }

  #rows(where: string, params: readonly SqlValue[] = []): Row[] {
    return this.world.db.all<Row & Record<string, SqlValue>>(
      `SELECT * FROM mcp_farewell WHERE ${where} ORDER BY rowid`,
      params,
    )
  }
}

function remove(t: Tx, id: string): void {
  t.run('DELETE FROM mcp_farewell WHERE id = ?', [id])
}

/** Below which the tokens of a failed revocation wait. */
const asideOf = (id: string) => `vault:mcp/revoke/${id}`

/** Deletes secrets in a transaction of this plugin. */
export function forget(t: Tx, vault: VaultApi, secrets: readonly string[]): void {
  for (const reference of secrets) {
    const path = vaultPath(reference)
    if (path !== undefined) vault.forget(t, path)
  }
}

const farewellOf = (row: Row): Farewell & { readonly id: string } => ({
  id: row.id,
  server: row.server,
  workspaceId: row.workspace_id ?? undefined,
  login: row.login === null ? undefined : JSON.parse(row.login),
  secrets: JSON.parse(row.secrets),
  unless: row.unless ?? undefined,
})
