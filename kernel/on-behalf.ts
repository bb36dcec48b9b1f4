/**
 * Runs work that is done for somebody else: on the output of an extension's process, say. While it holds the event loop, it is
 * `owner` that holds it: the watchdog reads the name off this frame of the stack. Synchronous, and costs no more than a call.
 */
// biome-ignore lint/correctness/noUnusedFunctionParameters: the watchdog reads it
export function onBehalfOf<T>(owner: string, work: () => T): T {
  return work()
}
