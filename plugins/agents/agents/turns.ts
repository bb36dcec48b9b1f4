import { turn } from '../../../kernel/plugin.js'

/** Maps many items, in order, letting the event loop turn after every `size` of them. */
export async function mapInTurns<T, R>(items: readonly T[], size: number, map: (item: T) => R): Promise<R[]> {
  const mapped: R[] = []
  for (const item of items) {
    mapped.push(map(item))
    if (mapped.length % size === 0) await turn()
  }
  return mapped
}
