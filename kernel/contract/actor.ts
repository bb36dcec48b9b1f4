import type { RecordScope } from './kind.js'

/** A {kind, id} pair: who owns a record, or where it came from. */
export interface Party {
  readonly kind: string
  readonly id: string
}

/** The caller of an operation. `source` decides which records it may change; `owner` is stamped on those it writes. */
export interface Actor {
  /** An `extension` reads its own records within its grants and writes by snapshots only; the others read and write. */
  readonly kind: 'operator' | 'daemon' | 'extension'
  readonly id: string
  /** What an extension writes is owned by its source, whatever stands here. */
  readonly owner: Party
  readonly source: Party
  /** Of the process that speaks for the source: a snapshot needs the one that `activateSource` named last. */
  readonly nonce?: string
  /** The largest scope; a workspace limits to records of exactly that one. Absent: no limit. */
  readonly maxScope?: RecordScope
  /** Kinds and kinds of scope; empty or absent is everything for an operator or daemon and nothing for an extension. */
  readonly grantedKinds?: readonly string[]
  readonly grantedScopes?: readonly RecordScope['kind'][]
  /** Id of the request or event that led here; travels into events as their `cause`. */
  readonly cause?: string
}

/** The actor of both listeners and of `inject`. */
export const operator: Actor = {
  kind: 'daemon',
  id: 'daemon-control',
  owner: { kind: 'daemon', id: 'daemon-control' },
  source: { kind: 'daemon', id: 'system' },
}

/** A plugin acting on its own. */
export function pluginActor(name: string): Actor {
  const party = { kind: 'daemon', id: name }
  return { kind: 'daemon', id: name, owner: party, source: party }
}
