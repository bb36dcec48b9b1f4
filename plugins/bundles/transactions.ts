import type { Db, Tx } from '../../kernel/plugin.js'

/** Leaves a transaction with its result and without its writes. */
class Undone {
  constructor(readonly result: unknown) {}
}

/** What a transaction would do and say; none of it is done. */
export async function undone<T>(db: Db, fn: (t: Tx) => T): Promise<T> {
  try {
    return await db.tx(t => {
      throw new Undone(fn(t))
    })
  } catch (error) {
    if (error instanceof Undone) return error.result as T
    throw error
  }
}

/** Does works one after the other, in the order in which they come. */
export function inTurn(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return work => {
    const run = last.then(work)
    last = run.catch(() => {})
    return run
  }
}
