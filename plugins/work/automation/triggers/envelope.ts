/** The envelope of an event, as triggers see it. */
export interface Envelope {
  readonly kind: string
  readonly scope: 'global' | 'workspace'
  readonly workspaceId?: string | undefined
  readonly source: 'observer' | 'hook' | 'webhook' | 'extension'
  /** Plain JSON. */
  readonly data: Readonly<Record<string, unknown>>
}

/** The scope of an event: one workspace, or global. */
export const placeOf = (workspaceId: string | undefined) =>
  workspaceId === undefined ? { scope: 'global' as const } : { scope: 'workspace' as const, workspaceId }

/** The value at a path in plain data; undefined when there is none. */
export function memberOf(value: unknown, keys: readonly string[]): unknown {
  let at = value
  for (const key of keys) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Record<string, unknown>)[key]
  }
  return at
}
