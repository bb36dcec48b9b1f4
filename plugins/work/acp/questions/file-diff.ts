import { structuredPatch } from 'diff/lib/patch/create.js'
import { turn } from '../../../../kernel/plugin.js'

/** Unchanged lines shown around a change. */
const CONTEXT = 3
/**
 * Limits for the search of common lines: size of the differing part, and changed lines in it. The work grows with their square.
 * Beyond the limits the whole part is shown as removed and added: longer, but complete.
 */
const MAX_COMPARED = 1024 * 1024
const MAX_COMPARED_LINES = 20_000
const MAX_CHANGED = 1000
/** Maximum number of files of one question that are compared line by line. */
const MAX_FILES = 20

/** The change of one file. */
export interface FileDiff {
  readonly path: string
  readonly isNew: boolean
  /** Hunks of a unified diff, without the header of the file; empty for no change. */
  readonly patch: string
  /** Number of lines in {@link patch}. */
  readonly lines: number
  readonly added: number
  readonly removed: number
}

/** A file before and after; without `oldText` it is new. */
interface Change {
  readonly path: string
  readonly oldText?: string
  readonly newText: string
}

/** The diffs of files, one per turn of the event loop. */
export async function fileDiffs(changes: readonly Change[]): Promise<FileDiff[]> {
  const diffs: FileDiff[] = []
  for (const { path, oldText, newText } of changes) {
    if (diffs.length > 0) await turn()
    diffs.push(fileDiff(path, oldText, newText, diffs.length < MAX_FILES))
  }
  return diffs
}

/**
 * The diff of a file, with bounded work for any text.
 * @param before undefined: the file is new
 * @param isCompared false: all differing lines are shown as removed and added
 */
export function fileDiff(path: string, before: string | undefined, after: string, isCompared = true): FileDiff {
  const { patch, added, removed } = isCompared ? compared(before ?? '', after) : replaced(before ?? '', after)
  return { path, isNew: before === undefined, patch, lines: linesIn(patch), added, removed }
}

interface Patch {
  readonly patch: string
  readonly added: number
  readonly removed: number
}

function compared(before: string, after: string): Patch {
  const near = differing(before, after, CONTEXT)
  if (near.old === near.fresh) return { patch: '', added: 0, removed: 0 }
  const size = Math.max(near.old.length, near.fresh.length)
  if (size > MAX_COMPARED || linesIn(near.old) + linesIn(near.fresh) > MAX_COMPARED_LINES)
    return replaced(before, after)
  const found = structuredPatch('', '', near.old, near.fresh, '', '', { context: CONTEXT, maxEditLength: MAX_CHANGED })
  if (!found) return replaced(before, after)
  let [added, removed] = [0, 0]
  const lines = found.hunks.flatMap(hunk => {
    for (const line of hunk.lines) {
      if (line.startsWith('+')) added++
      else if (line.startsWith('-')) removed++
    }
    const [old, fresh] = [hunk.oldStart + near.line, hunk.newStart + near.line]
    return [headOf(old, hunk.oldLines, fresh, hunk.newLines), ...hunk.lines]
  })
  return { patch: lines.join('\n'), added, removed }
}

/** The differing lines without a comparison: all old lines, then all new lines. */
function replaced(before: string, after: string): Patch {
  const { old, fresh, line } = differing(before, after, 0)
  const [removed, added] = [linesIn(old), linesIn(fresh)]
  const head = headOf(line + 1, removed, line + 1, added)
  return { patch: [head, ...signed('-', old), ...signed('+', fresh)].join('\n'), added, removed }
}

/** The header of a hunk; a side without lines is given by the line before it. */
function headOf(old: number, oldLines: number, fresh: number, freshLines: number): string {
  const at = (start: number, count: number) => `${count === 0 ? start - 1 : start},${count}`
  return `@@ -${at(old, oldLines)} +${at(fresh, freshLines)} @@`
}

/** Prefixes each line with a sign, as one string: an array of lines could be many times its size. */
function signed(sign: string, text: string): string[] {
  if (text === '') return []
  const isWhole = text.endsWith('\n')
  const body = isWhole ? text.slice(0, -1) : text
  return [sign + body.replaceAll('\n', `\n${sign}`), ...(isWhole ? [] : ['\\ No newline at end of file'])]
}

/** The lines between the common beginning and the common end of two texts, with `context` lines around them. */
function differing(before: string, after: string, context: number) {
  const most = Math.min(before.length, after.length)
  let head = 0
  while (head < most && before.charCodeAt(head) === after.charCodeAt(head)) head++
  if (head === before.length && head === after.length) return { old: '', fresh: '', line: 0 }
  let tail = 0
  while (
    tail < most - head &&
    before.charCodeAt(before.length - 1 - tail) === after.charCodeAt(after.length - 1 - tail)
  )
    tail++
  let start = lineStart(before, head)
  for (let line = 0; line < context && start > 0; line++) start = lineStart(before, start - 1)
  let rest = before.length - tail
  // If the common end begins at a line start in both texts, the line before it is complete.
  const isWhole = (text: string) => tail > 0 && (text.length === tail || text[text.length - tail - 1] === '\n')
  for (let line = isWhole(before) && isWhole(after) ? 1 : 0; line <= context && rest < before.length; line++) {
    rest = nextLine(before, rest)
  }
  const end = before.length - rest
  return {
    old: before.slice(start, rest),
    fresh: after.slice(start, after.length - end),
    line: newlinesIn(before, start),
  }
}

/** Start of the line that contains the character before `at`. */
const lineStart = (text: string, at: number) => (at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1)

function nextLine(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end + 1
}

function newlinesIn(text: string, end = text.length): number {
  let count = 0
  for (let at = 0; at < end; at++) if (text.charCodeAt(at) === 10) count++
  return count
}

const linesIn = (text: string) => newlinesIn(text) + (text === '' || text.endsWith('\n') ? 0 : 1)
