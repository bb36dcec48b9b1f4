/** One line of a `.gitignore`. */
export interface IgnoreRule {
  /** Directory of the file the line stands in, relative to the workspace; '' for its root. */
  readonly base: string
  /** The pattern split at `/`; one without a slash in front or in the middle starts with `**`. */
  readonly segments: readonly string[]
  readonly negated: boolean
  readonly directoriesOnly: boolean
}

const MAX_RULES = 500
const MAX_PATTERN_LENGTH = 256

/**
 * Reads the simple patterns of a `.gitignore`: names, paths, `*`, `?`, `**`, a trailing `/`, `!`. Lines with character
 * classes or escapes are left out: a file too many in a report does less harm than one silently missing.
 */
export function parseIgnore(text: string, base: string): IgnoreRule[] {
  return text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && line.length <= MAX_PATTERN_LENGTH && !/^#|[[\]\\]/.test(line))
    .slice(0, MAX_RULES)
    .map(line => {
      const negated = line.startsWith('!')
      const pattern = negated ? line.slice(1) : line
      const segments = pattern.split('/').filter(segment => segment !== '')
      const anchored = pattern.slice(0, -1).includes('/')
      return { base, segments: anchored ? segments : ['**', ...segments], negated, directoriesOnly: line.endsWith('/') }
    })
    .filter(rule => rule.segments.some(segment => segment !== '**'))
}

/** Whether `path` (relative to the workspace, with `/`) is ignored. As in git, the last rule that matches decides. */
export function ignores(rules: readonly IgnoreRule[], path: string, isDirectory: boolean): boolean {
  const decisive = rules.findLast(rule => (isDirectory || !rule.directoriesOnly) && matches(rule, path))
  return decisive !== undefined && !decisive.negated
}

function matches({ base, segments }: IgnoreRule, path: string): boolean {
  if (base !== '' && !path.startsWith(`${base}/`)) return false
  const names = path.slice(base === '' ? 0 : base.length + 1).split('/')
  return wildcardMatches(segments, names, '**', (segment, name) =>
    wildcardMatches([...segment], [...name], '*', (wanted, character) => wanted === '?' || wanted === character),
  )
}

/**
 * Matches a whole sequence; `wildcard` stands for any number of items. Going back to the last wildcard only is enough
 * for a match and costs pattern times subject, where a regular expression made of a hostile pattern has no such bound.
 */
function wildcardMatches(
  pattern: readonly string[],
  subject: readonly string[],
  wildcard: string,
  fits: (wanted: string, item: string) => boolean,
): boolean {
  let at = 0
  let retry: { pattern: number; subject: number } | undefined
  for (let index = 0; index < subject.length; ) {
    if (pattern[at] === wildcard) {
      retry = { pattern: ++at, subject: index }
    } else if (at < pattern.length && fits(pattern[at]!, subject[index]!)) {
      at++
      index++
    } else if (retry) {
      at = retry.pattern
      index = ++retry.subject
    } else {
      return false
    }
  }
  return pattern.slice(at).every(rest => rest === wildcard)
}
