/** What happened, as triggers see it. */
export interface Envelope {
  readonly kind: string
  readonly scope: 'global' | 'workspace'
  readonly workspaceId?: string | undefined
  readonly source: 'observer' | 'hook' | 'webhook' | 'extension'
  /** Plain JSON. */
  readonly data: Readonly<Record<string, unknown>>
}

/** Where triggers are that see it: those of one workspace, or those of none. */
export const placeOf = (workspaceId: string | undefined) =>
  workspaceId === undefined ? { scope: 'global' as const } : { scope: 'workspace' as const, workspaceId }

/** What is at a path in plain data; undefined where nothing is. */
export function memberOf(value: unknown, keys: readonly string[]): unknown {
  let at = value
  for (const key of keys) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Record<string, unknown>)[key]
  }
  return at
}
