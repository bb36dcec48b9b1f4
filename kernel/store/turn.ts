/** Resolves when what this turn of the event loop still has to do is done. */
export function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
