/** Characters of a pattern. */
const LONGEST = 200
const EXACT = /^[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)+$/
const WILD = /^[a-z][a-z0-9_-]*\.(?:[a-z0-9_-]+\.)*[a-z0-9_-]*\*$/

/**
 * Problem of an event pattern; undefined if valid. A pattern is the name of an event, or a prefix within one family
 * followed by `*`.
 */
export function patternProblem(pattern: string): string | undefined {
  if (pattern.length > LONGEST) return `longer than ${LONGEST} characters`
  if (EXACT.test(pattern) || WILD.test(pattern)) return undefined
  return 'name an event (task.run_failed), or a family with * at the end (task.run_*, provider.*)'
}
