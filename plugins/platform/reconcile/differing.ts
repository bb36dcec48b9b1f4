/** Ids that differ from a projection with these versions: records of another version, and ids without a record. */
export function differing(
  stored: readonly (readonly [id: string, version: number])[],
  known: ReadonlyMap<string, number>,
): string[] {
  const differ = stored.filter(([id, version]) => known.get(id) !== version).map(([id]) => id)
  const shared = stored.reduce((count, [id]) => count + Number(known.has(id)), 0)
  if (shared === known.size) return differ
  const ids = new Set(stored.map(([id]) => id))
  return differ.concat([...known.keys()].filter(id => !ids.has(id)))
}
