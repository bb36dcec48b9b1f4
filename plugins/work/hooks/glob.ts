/** The elements of a pattern. Brackets are closed and contain more than the `!` or `^` that negates them. */
const PARTS = /\\.|\[(?:[!^][^[\]]+|[^[\]!^][^[\]]*)\]|\*+|[^[\]\\]/gsu

/** Whether a text is a valid pattern of `*`, `?`, `[abc]` and `\` escapes. */
export const isGlob = (glob: string): boolean => stepsOf(glob) !== undefined

/** Compiles a valid pattern; the empty pattern and `*` match everything. Matching takes at most quadratic time. */
export function globTest(glob: string): (text: string) => boolean {
  if (glob === '' || glob === '*') return () => true
  if (!/[*?[\\]/.test(glob)) return text => text === glob
  const steps = stepsOf(glob)
  if (!steps) throw new Error(`${glob} is not a valid pattern`)
  return text => matches(steps, [...text])
}

/** A simple pattern that matches exactly these values of a vocabulary; undefined when there is none. */
export function globOf(wanted: readonly string[], vocabulary: readonly string[]): string | undefined {
  const [first = ''] = wanted
  const starts = Array.from(first, (_, at) => `${first.slice(0, at + 1)}*`)
  const ends = Array.from(first, (_, at) => `*${first.slice(at)}`)
  const initials = [...new Set(wanted.map(word => word.slice(0, 1)))].join('')
  return [first, ...starts, ...ends, `[${initials}]*`].find(glob => {
    const test = globTest(glob)
    return vocabulary.every(word => test(word) === wanted.includes(word))
  })
}

/** One test per pattern element, undefined for a star; undefined if the pattern is invalid. */
function stepsOf(glob: string): (RegExp | undefined)[] | undefined {
  const parts = glob.match(PARTS) ?? []
  if (parts.join('') !== glob) return undefined
  try {
    return parts.map(part => (part.startsWith('*') ? undefined : new RegExp(`^${oneOf(part)}$`, 'su')))
  } catch {
    // An inverted range such as [z-a].
    return undefined
  }
}

/** One pattern element as a regular expression for one character. */
function oneOf(part: string): string {
  if (part === '?') return '.'
  if (part.startsWith('['))
    return `[${part
      .slice(1, -1)
      .replace(/^!/, '^')
      .replace(/[\\\]]/g, '\\$&')}]`
  return part.replace(/^\\/s, '').replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

/** Backtracks to the last star only; a regular expression with many stars would take exponential time. */
function matches(steps: readonly (RegExp | undefined)[], text: readonly string[]): boolean {
  let at = 0
  let step = 0
  let star = -1
  let from = 0
  while (at < text.length) {
    const one = steps[step]
    if (step < steps.length && one === undefined) {
      star = step++
      from = at
    } else if (one?.test(text[at] as string)) {
      step++
      at++
    } else if (star >= 0) {
      step = star + 1
      at = ++from
    } else return false
  }
  while (step < steps.length && steps[step] === undefined) step++
  return step === steps.length
}
