import { createHash } from 'node:crypto'
import type { OAuthClientInformationMixed } from '@modelcontextprotocol/client'
import { clip } from '../../../../kernel/kit/text.js'
import type { Clock } from '../../../../kernel/plugin.js'
import { McpErrors } from '../errors.js'
import type { Server } from '../sources/declaration.js'
import type { Authority } from './discovery.js'

const LIFETIME_MS = 10 * 60_000
const MOST = 32

/** A started login, with the data its answer is checked against. */
export interface Pending {
  readonly server: Server
  readonly authority: Authority
  readonly client: OAuthClientInformationMixed
  /** PKCE code verifier. */
  readonly verifier: string
  readonly callback: string
}

/** The authorization server's answer, from the browser's redirect. */
export interface Answer {
  readonly code?: string | undefined
  readonly error?: string | undefined
  /** Issuer of the answer; some servers omit it. */
  readonly iss?: string | undefined
}

/** Started logins by the hash of their state; each can be completed once within ten minutes. */
export class PendingLogins {
  readonly #byState = new Map<string, Pending & { readonly until: number }>()

  constructor(private readonly clock: Clock) {}

  /** Adds a login and returns its expiry in epoch milliseconds. It replaces an earlier one of the same server. */
  add(state: string, pending: Pending): number {
    this.#drop(({ server }) => server.key === pending.server.key)
    const [oldest] = this.#byState.keys()
    if (this.#byState.size >= MOST && oldest !== undefined) this.#byState.delete(oldest)
    this.#byState.set(hashOf(state), { ...pending, until: this.clock.monotonic() + LIFETIME_MS })
    return this.clock.now() + LIFETIME_MS
  }

  /** @param key of the expected server */
  take(state: string, key?: string): Pending | undefined {
    this.#drop(({ until }) => until < this.clock.monotonic())
    const hash = hashOf(state)
    const found = this.#byState.get(hash)
    if (!found || (key !== undefined && found.server.key !== key)) return undefined
    this.#byState.delete(hash)
    return found
  }

  /** Discards the started login of a server. */
  forget(key: string): void {
    this.#drop(({ server }) => server.key === key)
  }

  /** Takes the started login of a server. */
  takeOf(key: string): Pending | undefined {
    this.#drop(({ until }) => until < this.clock.monotonic())
    const [hash, found] = [...this.#byState].find(([, { server }]) => server.key === key) ?? []
    if (hash !== undefined) this.#byState.delete(hash)
    return found
  }

  #drop(isOver: (pending: Pending & { readonly until: number }) => boolean): void {
    for (const [hash, pending] of [...this.#byState]) if (isOver(pending)) this.#byState.delete(hash)
  }
}

const hashOf = (state: string) => createHash('sha256').update(state).digest('hex')

/**
 * Checks the issuer of an answer: a malicious server that names another one's login page would receive the code meant
 * for that one (RFC 9207).
 * @throws Fault `mcp_auth_state_invalid` if the answer names another issuer, or none although the server promised one
 */
export function checkIssuer(
  { issuer, metadata }: Pending['authority'],
  iss: string | undefined,
  hasCode: boolean,
): void {
  const { authorization_response_iss_parameter_supported: promised } = metadata as Readonly<Record<string, unknown>>
  if (iss !== undefined && iss !== issuer)
    throw McpErrors.mcp_auth_state_invalid(`the answer comes from ${clip(iss, 200)}, not from ${issuer}`)
  if (hasCode && iss === undefined && promised === true)
    throw McpErrors.mcp_auth_state_invalid(
      `the answer does not identify ${issuer}, although that server promises to do so; paste the whole address from the browser`,
    )
}
