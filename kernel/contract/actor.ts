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
  /** How a request of it came: `uds`, `http`, `web` (a page of this daemon), or what an authenticator calls its own way. */
  readonly origin?: string
  /** Id of the request or event that led here; travels into events as their `cause`. */
  readonly cause?: string
}

/** Who owns the daemon: the actor of the Unix socket, of `inject`, and of the own user's connections over loopback TCP. */
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

/** Whoever calls a public route and is known to nobody: reads and writes no record. */
export const anonymous: Actor = {
  kind: 'extension',
  id: 'anonymous',
  owner: { kind: 'extension', id: 'anonymous' },
  source: { kind: 'extension', id: 'anonymous' },
}

/** Whether a value can be believed to be an actor; for what comes from code that nobody type-checked. */
export function isActor(value: unknown): value is Actor {
  const { kind, id, owner, source } = Object(value) as Partial<Actor>
  const isParty = (party: Party | undefined) => typeof party?.kind === 'string' && typeof party.id === 'string'
  return (
    ['operator', 'daemon', 'extension'].includes(kind ?? '') &&
    typeof id === 'string' &&
    isParty(owner) &&
    isParty(source)
  )
}
