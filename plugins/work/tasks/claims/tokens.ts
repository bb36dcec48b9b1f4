import { hash } from 'node:crypto'
import type { Ids } from '../../../../kernel/plugin.js'
import type { RunRow } from '../runs/run-row.js'

const BYTES = 32

/**
 * The claim tokens of active leases. The store and the memory of this daemon have their hashes only: a lease is valid while both
 * have the same one.
 */
export class ClaimTokens {
  readonly #hashes = new Map<string, string>()

  constructor(private readonly ids: Ids) {}

  /** The hash of a new token, which is stored and shown. */
  make(): string {
    const token = `tclaim_${this.ids.hex(BYTES)}`
    return `sha256:${hash('sha256', token)}`
  }

  /** Records the token of a claimed run. */
  keep(session: string, run: string, hash: string): void {
    this.#hashes.set(`${session}/${run}`, hash)
  }

  forget(session: string, run: string): void {
    this.#hashes.delete(`${session}/${run}`)
  }

  /** Whether the token of the session matches the stored hash of the run. */
  fits(session: string, { id, token_hash: hash }: RunRow): boolean {
    return hash !== null && this.#hashes.get(`${session}/${id}`) === hash
  }
}
