/** Resolves when what this turn of the event loop still has to do is done. */
export function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Maps many items, in order, letting the event loop turn after every `size` of them. */
export async function mapInTurns<T, R>(items: readonly T[], size: number, map: (item: T) => R): Promise<R[]> {
  const mapped: R[] = []
  for (const item of items) {
    mapped.push(map(item))
    if (mapped.length % size === 0) await turn()
  }
  return mapped
}
