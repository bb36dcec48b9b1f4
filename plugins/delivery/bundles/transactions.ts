import type { Db, Tx } from '../../../kernel/plugin.js'

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
