/** What the watchdog finds on the stack: an object with this key tells for whom the code that holds it runs. */
export const RUNS_FOR = Symbol.for('svc.runs-for')

/**
 * Runs work that is done for somebody else: on the output of an extension's process, say. While it holds the event loop, it is
 * `owner` that holds it: the watchdog reads the name off this frame of the stack. Synchronous, and costs little more than a call.
 */
export function onBehalfOf<T>(owner: string, work: () => T): T {
  return held({ [RUNS_FOR]: owner }, work)
}

// biome-ignore lint/correctness/noUnusedFunctionParameters: the watchdog reads it
function held<T>(by: { readonly [RUNS_FOR]: string }, work: () => T): T {
  return work()
}
