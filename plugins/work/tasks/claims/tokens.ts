import { createHash } from 'node:crypto'
import type { Ids } from '../../../../kernel/plugin.js'
import type { RunRow } from '../runs/run-row.js'

const BYTES = 32

/** The claim tokens of active leases. Tokens exist in the memory of the daemon only; the store has their hashes. */
export class ClaimTokens {
  readonly #tokens = new Map<string, string>()

  constructor(private readonly ids: Ids) {}

  /** A new token and the hash that is stored and shown. */
  make(): { readonly token: string; readonly hash: string } {
    const token = `tclaim_${this.ids.hex(BYTES)}`
    return { token, hash: hashOf(token) }
  }

  /** Records the token of a claimed run. */
  keep(session: string, run: string, token: string): void {
    this.#tokens.set(`${session}/${run}`, token)
  }

  forget(session: string, run: string): void {
    this.#tokens.delete(`${session}/${run}`)
  }

  /** Whether the token of the session matches the stored hash of the run. */
  fits(session: string, { id, token_hash: hash }: RunRow): boolean {
    const token = this.#tokens.get(`${session}/${id}`)
    return token !== undefined && hashOf(token) === hash
  }
}

const hashOf = (token: string) => `sha256:${createHash('sha256').update(token).digest('hex')}`
