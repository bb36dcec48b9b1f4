import type { QuestionDiff, QuestionHidden } from '../../../../schemas/sessions.js'
import type { FileDiff } from './file-diff.js'

/** Limits of the diffs of a question: files, lines and characters in all, minimum lines per diff, and characters per line. */
const MAX_FILES = 20
const MAX_LINES = 400
const MIN_LINES = 20
const MAX_CHARACTERS = 64 * 1024
const MAX_LINE = 400
/** Characters shown around the difference of two long lines. */
const AROUND = 60

/** The shown part of diffs, with the size of the hidden part. */
export function boundedDiffs(files: readonly FileDiff[]): {
  readonly diffs: readonly QuestionDiff[]
  readonly hidden: QuestionHidden
} {
  const hidden = { files: Math.max(0, files.length - MAX_FILES), lines: 0, characters: 0 }
  const share = Math.max(MIN_LINES, Math.floor(MAX_LINES / Math.max(1, Math.min(files.length, MAX_FILES))))
  let room = MAX_CHARACTERS
  const diffs = files.slice(0, MAX_FILES).map(({ path, isNew, patch, lines, added, removed }): QuestionDiff => {
    const shown: string[] = []
    for (const line of firstLines(patch, share).map(excerpts)) {
      room -= line.text.length
      if (room < 0) break
      hidden.characters += line.hidden
      shown.push(line.text)
    }
    const left = lines - shown.length
    hidden.lines += left
    return { path, ...(isNew && { is_new: true }), added, removed, patch: shown.join('\n'), hidden_lines: left }
  })
  for (const { lines } of files.slice(MAX_FILES)) hidden.lines += lines
  return { diffs, hidden }
}

/** The diffs with all lines. */
export const wholeDiffs = (files: readonly FileDiff[]): QuestionDiff[] =>
  files.map(({ path, isNew, patch, added, removed }) => ({
    path,
    ...(isNew && { is_new: true }),
    added,
    removed,
    patch,
    hidden_lines: 0,
  }))

/** The first lines of a text, without splitting all of it: it may have millions. */
export function firstLines(text: string, count: number): string[] {
  const lines: string[] = []
  for (let at = 0; at < text.length && lines.length < count; ) {
    const end = text.indexOf('\n', at)
    lines.push(text.slice(at, end < 0 ? text.length : end))
    at = end < 0 ? text.length : end + 1
  }
  return lines
}

/** A diff line within the length limit; of a long replaced line, the part around the difference. */
function excerpts(
  line: string,
  at: number,
  lines: readonly string[],
): { readonly text: string; readonly hidden: number } {
  if (line.length <= MAX_LINE) return { text: line, hidden: 0 }
  const step = line[0] === '-' ? 1 : -1
  // A note about a missing final line break may be in between.
  const neighbour = lines[at + step]?.[0] === '\\' ? lines[at + 2 * step] : lines[at + step]
  const isOther = (line[0] === '-' && neighbour?.[0] === '+') || (line[0] === '+' && neighbour?.[0] === '-')
  const other = isOther ? neighbour : undefined
  const head = other === undefined ? 0 : Math.max(0, commonHead(line, other) - AROUND)
  const cut = head > 1 ? head : 1
  const text = line.slice(cut, cut + MAX_LINE)
  const [left, right] = [cut - 1, line.length - cut - text.length]
  const note = (count: number) => (count > 0 ? `…(${count} characters)…` : '')
  return { text: `${line[0]}${note(left)}${text}${note(right)}`, hidden: left + right }
}

/** Length of the common beginning of two lines, including the sign. */
function commonHead(line: string, other: string): number {
  let at = 1
  while (at < line.length && line.charCodeAt(at) === other.charCodeAt(at)) at++
  return at
}
