import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../kernel/kit/canonical.js'

/** Where the text of a sidecar comes from and what it is, before anybody has judged it. */
export interface SidecarSource {
  readonly agentName: string
  /** A file, or what a package says; empty for what has no place. */
  readonly sourcePath: string
  /** Undefined: there is none. */
  readonly text?: string | undefined
  /** Epoch milliseconds of the last change. */
  readonly changedAt?: number | undefined
  /** Why the text cannot be had although there is one. */
  readonly problem?: {
    readonly code: 'path_escape' | 'unreadable' | 'oversized_file' | 'agent_invalid'
    readonly message: string
  }
}

/** `sha256:` and hex over the canonical JSON of a value. */
export const digestOf = (value: unknown) => `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`

/** What equal texts of one agent have in common: it names what a wake-up or a session was decided by. */
export const snapshotId = (prefix: string, agentName: string, digest: string) =>
  `${prefix}_${createHash('sha256').update(`${agentName}\n${digest}`).digest('hex').slice(0, 16)}`
