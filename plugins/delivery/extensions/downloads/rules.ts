import type { LookupFunction } from 'node:net'
import type { Clock } from '../../../../kernel/plugin.js'

/** Why something cannot be had from an address. */
export type DownloadProblem = 'unreachable' | 'timeout' | 'too_large' | 'not_found' | 'insecure' | 'private'

export class DownloadError extends Error {
  constructor(
    readonly problem: DownloadProblem,
    message: string,
  ) {
    super(message)
  }
}

/** What a download is held to. */
export interface DownloadRules {
  readonly clock: Clock
  readonly maxBytes: number
  /** Of the whole, redirects included. */
  readonly timeoutMs: number
  /**
   * What a person named: the address itself, or the one of the catalog or server that it comes from. Only its own host may be
   * inside of this machine or its networks.
   */
  readonly named: URL
  /** Default: that of the system. */
  readonly lookup?: LookupFunction
}

export interface DownloadReply {
  readonly status: number
  readonly statusText: string
  readonly headers: Headers
  readonly body: Buffer
}
