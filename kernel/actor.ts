/** A {kind, id} pair: who owns a record, or where it came from. */
export interface Party {
  readonly kind: string
  readonly id: string
}

/** Who acts (Behaviour 2.3). `source` decides what may be changed, `owner` is stamped on what is written. */
export interface Actor {
  readonly kind: 'operator' | 'daemon' | 'extension'
  readonly id: string
  readonly owner: Party
  readonly source: Party
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
