import type { LookupFunction } from 'node:net'
import type { Clock } from '../../../../kernel/plugin.js'

/** Reasons why a download failed. */
export type DownloadProblem = 'unreachable' | 'timeout' | 'too_large' | 'not_found' | 'insecure' | 'private'

export class DownloadError extends Error {
  constructor(
    readonly problem: DownloadProblem,
    message: string,
  ) {
    super(message)
  }
}

/** Limits of a download. */
export interface DownloadRules {
  readonly clock: Clock
  readonly maxBytes: number
  /** For the whole download, redirects included. */
  readonly timeoutMs: number
  /**
   * The address that a person named, or that of the catalog or server it comes from. Only this host may be inside the
   * machine or its networks.
   */
  readonly named: URL
  /** Default: the system's resolver. */
  readonly lookup?: LookupFunction
}

export interface DownloadReply {
  readonly status: number
  readonly statusText: string
  readonly headers: Headers
  readonly body: Buffer
}
