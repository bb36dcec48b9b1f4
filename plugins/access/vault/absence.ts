/** An owner of secrets that a file declares, as a table of its plugin remembers it. */
export interface Remembered {
  /** When it was first missed, in epoch milliseconds. Null: it is there. 0: somebody deletes it, so that nothing has to be waited for. */
  readonly missing_since: number | null
}

/**
 * Tells what is gone from what is only missed: an editor, a branch that is checked out or a restored backup can take a file away
 * for a moment.
 * @param isThere undefined: that cannot be told now, and nothing changes
 * @param now epoch milliseconds
 * @param graceMs how long something has to be missing before it is gone
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
    // A clock that was set back must not make it wait for longer.
    else if (since === null || since > now) missed.push(row)
  }
  return { missed, back, gone }
}
