import { structuredPatch } from 'diff'

export type Sign = ' ' | '+' | '-'

export interface Line {
  readonly sign: Sign
  readonly words: string
  readonly before?: number
  readonly after?: number
}

/** Time limit of a comparison. Two texts without a common line exceed it. */
const MOST_MS = 500

/** The changed lines of two texts, with three lines of context; undefined marks a gap. */
export function compare(before: string, after: string): readonly (Line | undefined)[] {
  const patch = structuredPatch('', '', before, after, '', '', { context: 3, timeout: MOST_MS })
  if (!patch) {
    const all = (sign: Sign, words: string) =>
      words === '' ? [] : words.split('\n').map(line => ({ sign, words: line }))
    return [...all('-', before), ...all('+', after)]
  }
  return patch.hunks.flatMap((hunk, n) => {
    let [a, b] = [hunk.oldStart, hunk.newStart]
    const lines = hunk.lines.flatMap((line): Line[] => {
      const [sign, words] = [line[0], line.slice(1)]
      if (sign === '-') return [{ sign, words, before: a++ }]
      if (sign === '+') return [{ sign, words, after: b++ }]
      // The marker line for a missing final line break has neither sign.
      return sign === ' ' ? [{ sign, words, before: a++, after: b++ }] : []
    })
    return n === 0 ? lines : [undefined, ...lines]
  })
}
