import { Alarm } from '../../../../kernel/kit/alarm.js'
import { backoff } from '../../../../kernel/kit/backoff.js'
import { SerialBy } from '../../../../kernel/kit/serial.js'
import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import { clip } from '../../../../kernel/kit/text.js'
import { type Actor, messageOf, type SqlValue, type Tx } from '../../../../kernel/plugin.js'
import { type VaultApi, vaultPath } from '../../../access/vault/api.js'
import type { K } from '../needs.js'
import { type LoginRow, logins } from './login-table.js'
import { neededFor, revoke, secretsOf } from './revoke.js'

export const farewellTable = `CREATE TABLE mcp_farewell (
  id TEXT PRIMARY KEY,
  server TEXT NOT NULL,
  workspace_id TEXT,
  login TEXT,
  secrets TEXT NOT NULL,
  unless TEXT
) STRICT`

/** Columns of failed revocations. Without a next attempt, it was given up. */
export const retryColumns = `ALTER TABLE mcp_farewell ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE mcp_farewell ADD COLUMN failed_since INTEGER;
ALTER TABLE mcp_farewell ADD COLUMN next_at INTEGER;
ALTER TABLE mcp_farewell ADD COLUMN why TEXT;`

const DAY_MS = 86_400_000
/** Back-off of revocations: from half a minute up to six hours. */
const PACE = { firstMs: 30_000, longestMs: DAY_MS / 4 }
const MOST_ATTEMPTS = 40
const LONGEST_MS = 7 * DAY_MS
/** Milliseconds for which `svc doctor` reports an abandoned revocation. */
const TOLD_MS = 30 * DAY_MS
/** Kept failed revocations; the newest are kept. */
const MOST_FAILED = 100
/** Characters of a kept reason. */
const MOST_WHY = 300
const RETRY_MS = 30_000

/** Leftovers of a removed login or server, which have to be removed as well. */
export interface Farewell {
  readonly server: string
  readonly workspaceId?: string | undefined
  /** Login whose tokens are revoked if the authorization server supports it. */
  readonly login?: LoginRow | undefined
  /** Vault references. */
  readonly secrets: readonly string[]
  /** Binding of a server that is about to be removed: everything stays if it is still declared after a crash. */
  readonly unless?: string | undefined
}

/** A login that was removed here, but not revoked by its authorization server. */
export interface FailedRevocation extends Farewell {
  readonly id: string
  readonly login: LoginRow
  readonly attempts: number
  /** The error of the last attempt. */
  readonly why: string
  /** Epoch milliseconds; undefined: given up, with the tokens deleted. */
  readonly nextAt: number | undefined
}

const { text, integer, time, json } = column

export const farewells = table('mcp_farewell', {
  id: text(),
  server: text(),
  workspace_id: text().optional().as('workspaceId'),
  login: json<LoginRow>().optional(),
  secrets: json<readonly string[]>(),
  unless: text().optional(),
  attempts: integer(),
  failed_since: time().optional(),
  next_at: time().optional(),
  why: text().optional(),
})
type Row = RowOf<typeof farewells>

/**
 * Revokes tokens and deletes secrets of removed logins and servers. The row is written in the transaction that removes
 * the login, so that a restarted daemon continues. The row of a failed revocation stays, with its tokens below
 * `vault:mcp/revoke/`, until an attempt succeeds or it is given up.
 */
export class Farewells {
  readonly #alarm: Alarm
  /** A person and the alarm can retry the same row concurrently. */
  readonly #serial = new SerialBy()

  constructor(private readonly kernel: K) {
    this.#alarm = new Alarm(kernel.clock, { retryMs: RETRY_MS })
  }

  /** Returns the id for {@link carryOut}. */
  note(t: Tx, farewell: Farewell): string {
    const id = this.kernel.ids.id('bye')
    farewells.insert(t, { ...farewell, id, attempts: 0 })
    return id
  }

  /** Deletes a row without removing anything else. */
  drop(id: string): Promise<void> {
    return this.kernel.db.tx(t => void remove(t, id))
  }

  /** Rows that an earlier daemon did not finish. */
  open(): readonly (Farewell & { readonly id: string })[] {
    return this.#rows('attempts = 0')
  }

  /** Failed revocations, oldest first. */
  failed(): readonly FailedRevocation[] {
    return this.#rows('attempts > 0').flatMap(({ login, why = '', next_at: nextAt, ...row }) =>
      login ? [{ ...row, login, why, nextAt }] : [],
    )
  }

  /** Revokes and deletes, then removes the row; a failed revocation keeps it for another attempt. */
  carryOut(id: string, farewell: Farewell, actor?: Actor): Promise<void> {
    return this.#serial.run(id, () => this.#carryOut(id, farewell, actor))
  }

  async #carryOut(id: string, farewell: Farewell, actor?: Actor): Promise<void> {
    const { db, clock, log } = this.kernel
    const [row] = this.#rows('id = ? AND attempts > 0', [id])
    // A failed attempt in between has moved the tokens.
    const { login, secrets } = row ?? farewell
    const vault = this.kernel.needs.vault.current
    if (!vault) {
      // The tokens may be in the vault that does not run: the next start tries again.
      if (!login && secrets.length === 0) await this.drop(id)
      return
    }
    // A new login to the same server after a crash owns these tokens now.
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

  /** Retries failed revocations. Resolves with those that failed again; an abandoned one is dropped. */
  async retry(isMeant: (failed: FailedRevocation) => boolean, actor?: Actor): Promise<readonly FailedRevocation[]> {
    const meant = this.failed().filter(isMeant)
    for (const { id, nextAt, ...farewell } of meant)
      await (nextAt === undefined ? this.drop(id) : this.carryOut(id, farewell, actor))
    const ids = new Set(meant.map(({ id }) => id))
    return this.failed().filter(({ id }) => ids.has(id))
  }

  /** Retries failed revocations when they are due, until the signal aborts. */
  run(signal: AbortSignal): Promise<void> {
    for (const { id, nextAt } of this.failed()) this.#alarm.set(id, nextAt)
    return this.#alarm.run(signal, {
      fire: async ids => {
        const due = new Set(ids)
        for (const { id, nextAt, ...farewell } of this.failed())
          if (due.has(id) && nextAt !== undefined && !signal.aborted) await this.carryOut(id, farewell)
      },
      failed: error => this.kernel.log.error('logins could not be revoked', { why: messageOf(error) }),
    })
  }

  /** Schedules a retry, and moves the tokens away from the place that the next login to this server uses. */
  async #postpone(
    vault: VaultApi,
    id: string,
    login: LoginRow,
    secrets: readonly string[],
    why: string,
    actor: Actor | undefined,
  ): Promise<void> {
    const { db, clock, ids } = this.kernel
    const now = clock.now()
    const [before] = this.#rows('id = ?', [id])
    const attempts = (before?.attempts ?? 0) + 1
    const since = before?.failed_since ?? now
    const isGivenUp = attempts >= MOST_ATTEMPTS || now - since >= LONGEST_MS
    const nextAt = isGivenUp ? undefined : now + backoff(attempts, () => ids.random(), PACE)
    const aside = asideOf(id)
    // Unreadable values cannot be moved and stay until they can be read.
    const isMoved = !isGivenUp && (login.secrets === aside || (await this.#move(vault, login, aside, actor)))
    const kept = isMoved ? { ...login, secrets: aside } : login
    await db.tx(t => {
      if (isGivenUp) forget(t, vault, [...secrets, aside])
      else if (isMoved && login.secrets !== aside) forget(t, vault, secrets)
      farewells.update(
        t,
        { id },
        {
          login: kept,
          secrets: isGivenUp ? [] : isMoved ? secretsOf(kept) : secrets,
          unless: undefined,
          ...{ attempts, failed_since: since, next_at: nextAt, why },
        },
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
      this.kernel.log.warn('the tokens of a login cannot be read', { server: login.server, why: messageOf(error) })
      return false
    }
  }

  /** Removes abandoned revocations after the report period, and the oldest ones beyond the limit. */
  #bound(t: Tx, vault: VaultApi, now: number): void {
    const old = this.#rows('attempts > 0 AND next_at IS NULL AND failed_since < ?', [now - LONGEST_MS - TOLD_MS])
    const tooMany = this.#rows('attempts > 0').slice(0, -MOST_FAILED)
    for (const { id, secrets } of [...old, ...tooMany]) {
      forget(t, vault, [...secrets, asideOf(id)])
      remove(t, id)
      this.#alarm.set(id, undefined)
    }
  }

  #isInUse({ secrets }: LoginRow): boolean {
    return logins.get(this.kernel.db, { secrets }) !== undefined
  }

  #rows(where: string, params: readonly SqlValue[] = []): Row[] {
    return farewells.query(this.kernel.db, `WHERE ${where} ORDER BY rowid`, params)
  }
}

const remove = (t: Tx, id: string) => farewells.delete(t, { id })

/** Vault folder of a failed revocation's tokens. */
const asideOf = (id: string) => `vault:mcp/revoke/${id}`

/** Deletes secrets in a transaction of this plugin. */
export function forget(t: Tx, vault: VaultApi, secrets: readonly string[]): void {
  for (const reference of secrets) {
    const path = vaultPath(reference)
    if (path !== undefined) vault.forget(t, path)
  }
}
