import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../kernel/kit/canonical.js'

/** The unvalidated text of a sidecar with its origin. */
export interface SidecarSource {
  readonly agentName: string
  /** Path of the file, or the path given by the package; empty if there is none. */
  readonly sourcePath: string
  /** Undefined: no sidecar. */
  readonly text?: string | undefined
  /** Epoch milliseconds of the last change. */
  readonly changedAt?: number | undefined
  /** Why an existing text cannot be read. */
  readonly problem?: {
    readonly code: 'path_escape' | 'unreadable' | 'oversized_file' | 'agent_invalid'
    readonly message: string
  }
}

/** `sha256:` and hex over the canonical JSON of a value. */
export const digestOf = (value: unknown) => `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`

/** Id of a text for an agent, equal for equal texts: it records the basis of a wake-up or session. */
export const snapshotId = (prefix: string, agentName: string, digest: string) =>
  `${prefix}_${createHash('sha256').update(`${agentName}\n${digest}`).digest('hex').slice(0, 16)}`
