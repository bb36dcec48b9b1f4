import type { Db, Tx } from '../../../kernel/plugin.js'

/** Thrown to roll a transaction back and keep its result. */
class Undone {
  constructor(readonly result: unknown) {}
}

/** The result of a transaction that is rolled back. */
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
