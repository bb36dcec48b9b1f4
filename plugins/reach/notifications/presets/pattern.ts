/** Characters of a pattern. */
const LONGEST = 200
const EXACT = /^[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)+$/
const WILD = /^[a-z][a-z0-9_-]*\.(?:[a-z0-9_-]+\.)*[a-z0-9_-]*\*$/

/**
 * What is wrong with a pattern of events; undefined: nothing. It is the name of an event, or what the names of events of one family
 * begin with, and `*`.
 */
export function patternProblem(pattern: string): string | undefined {
  if (pattern.length > LONGEST) return `longer than ${LONGEST} characters`
  if (EXACT.test(pattern) || WILD.test(pattern)) return undefined
  return 'name an event (task.run_failed), or a family with * at the end (task.run_*, provider.*)'
}
