/** Key of an object on the stack by which the watchdog finds the owner of the running code. */
export const RUNS_FOR = Symbol.for('svc.runs-for')

/**
 * Runs work on behalf of another owner, such as the handling of an extension's output. If it blocks the event loop, the watchdog
 * reads `owner` off this stack frame and blames it. Synchronous, and costs little more than a call.
 */
export function onBehalfOf<T>(owner: string, work: () => T): T {
  return held({ [RUNS_FOR]: owner }, work)
}

// biome-ignore lint/correctness/noUnusedFunctionParameters: the watchdog reads it
function held<T>(by: { readonly [RUNS_FOR]: string }, work: () => T): T {
  return work()
}
