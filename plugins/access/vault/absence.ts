/** An owner of secrets that a file declares, as stored in a table of its plugin. */
export interface Remembered {
  /** Epoch milliseconds since it is missing. Null: it exists. 0: it was deleted explicitly, so no waiting time applies. */
  readonly missing_since: number | null
}

/**
 * Distinguishes deleted owners from temporarily missing ones: an editor, a branch checkout or a restore may remove a file for a
 * moment.
 * @param isThere undefined if unknown: the row stays unchanged
 * @param now epoch milliseconds
 * @param graceMs time after which a missing owner counts as deleted
 */
export function absent<R extends Remembered>(
  rows: readonly R[],
  isThere: (row: R) => boolean | undefined,
  now: number,
  graceMs: number,
): { readonly missed: readonly R[]; readonly back: readonly R[]; readonly gone: readonly R[] } {
  const missed: R[] = []
  const back: R[] = []
  const gone: R[] = []
  for (const row of rows) {
    const { missing_since: since } = row
    const there = isThere(row)
    if (there === undefined) continue
    if (there) {
      if (since !== null) back.push(row)
    } else if (since === 0 || (since !== null && now - since >= graceMs)) gone.push(row)
    // Restart the waiting time if the clock was set back.
    else if (since === null || since > now) missed.push(row)
  }
  return { missed, back, gone }
}
