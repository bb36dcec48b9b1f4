import { createHash } from 'node:crypto'
import type { Ids } from '../../../kernel/plugin.js'
import type { RunRow } from '../runs/run-row.js'

const BYTES = 32

/** The tokens of the leases that are held. They are in the memory of the daemon alone; what is stored is their hash. */
export class ClaimTokens {
  readonly #tokens = new Map<string, string>()

  constructor(private readonly ids: Ids) {}

  /** A new token, and its hash as it is stored and shown. */
  make(): { readonly token: string; readonly hash: string } {
    const token = `tclaim_${this.ids.hex(BYTES)}`
    return { token, hash: hashOf(token) }
  }

  /** The session holds the run by this token from now on. */
  keep(session: string, run: string, token: string): void {
    this.#tokens.set(`${session}/${run}`, token)
  }

  forget(session: string, run: string): void {
    this.#tokens.delete(`${session}/${run}`)
  }

  /** Has the session the token that the run was claimed with? */
  fits(session: string, { id, token_hash: hash }: RunRow): boolean {
    const token = this.#tokens.get(`${session}/${id}`)
    return token !== undefined && hashOf(token) === hash
  }
}

const hashOf = (token: string) => `sha256:${createHash('sha256').update(token).digest('hex')}`
