import type { Line } from './compare.js'

/** The lines of a git patch, with line numbers; undefined marks a gap. */
export function patchLines(patch: string): readonly (Line | undefined)[] {
  const lines: (Line | undefined)[] = []
  let [before, after, left, right] = [0, 0, 0, 0]
  for (const line of patch.split('\n')) {
    const [, a, ofA = '1', b, ofB = '1'] = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line) ?? []
    const [sign, words] = [line[0], line.slice(1)]
    // A line of a file may look like a header; the counts of the hunk header tell them apart.
    if (left > 0 || right > 0) {
      if (sign === '-') lines.push({ sign, words, before: before++ })
      else if (sign === '+') lines.push({ sign, words, after: after++ })
      else if (sign === ' ') lines.push({ sign, words, before: before++, after: after++ })
      left -= Number(sign === '-' || sign === ' ')
      right -= Number(sign === '+' || sign === ' ')
    } else if (a !== undefined) {
      if (lines.length > 0) lines.push(undefined)
      ;[before, after, left, right] = [Number(a), Number(b), Number(ofA), Number(ofB)]
    }
  }
  return lines
}
