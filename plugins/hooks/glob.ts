/** Parts of a pattern; brackets close, and have something in them besides a `!` or `^` that turns them round. */
const PARTS = /\\.|\[(?:[!^][^[\]]+|[^[\]!^][^[\]]*)\]|\*+|[^[\]\\]/gsu

/** Whether a text is a pattern of `*`, `?`, `[abc]` and `\` before one of these. */
export const isGlob = (glob: string): boolean => stepsOf(glob) !== undefined

/** A test for a valid pattern; the empty one and `*` take everything. Runs in time that the length of both bounds. */
export function globTest(glob: string): (text: string) => boolean {
  if (glob === '' || glob === '*') return () => true
  if (!/[*?[\\]/.test(glob)) return text => text === glob
  const steps = stepsOf(glob)
  if (!steps) throw new Error(`${glob} is not a valid pattern`)
  return text => matches(steps, [...text])
}

/** A test of one character for each part, undefined for a star; undefined for what is no pattern. */
function stepsOf(glob: string): (RegExp | undefined)[] | undefined {
  const parts = glob.match(PARTS) ?? []
  if (parts.join('') !== glob) return undefined
  try {
    return parts.map(part => (part.startsWith('*') ? undefined : new RegExp(`^${oneOf(part)}$`, 'su')))
  } catch {
    // A range that ends before it begins.
    return undefined
  }
}

/** One character of a pattern as a regular expression of one character. */
function oneOf(part: string): string {
  if (part === '?') return '.'
  if (part.startsWith('['))
    return `[${part
      .slice(1, -1)
      .replace(/^!/, '^')
      .replace(/[\\\]]/g, '\\$&')}]`
  return part.replace(/^\\/s, '').replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

/** Goes back to the last star alone: a regular expression with many of them would take exponential time. */
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
