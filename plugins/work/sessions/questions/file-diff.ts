import { structuredPatch } from 'diff/lib/patch/create.js'
import { turn } from '../../../../kernel/plugin.js'

/** Lines on either side of a change that are shown with it. */
const CONTEXT = 3
/**
 * Characters and lines of the part that differs up to which common lines are looked for, and lines that may have changed in it:
 * the work grows with their square. Beyond them the whole part is shown as removed and added: a longer diff, but a complete one.
 */
const MAX_COMPARED = 1024 * 1024
const MAX_COMPARED_LINES = 20_000
const MAX_CHANGED = 1000
/** Files of one question for which common lines are looked for. */
const MAX_FILES = 20

/** What becomes of one file. */
export interface FileDiff {
  readonly path: string
  readonly isNew: boolean
  /** Hunks of a unified diff, without the lines that name the file; empty where nothing changes. */
  readonly patch: string
  /** Lines of {@link patch}. */
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

/** How files change, one in each turn of the event loop. */
export async function fileDiffs(changes: readonly Change[]): Promise<FileDiff[]> {
  const diffs: FileDiff[] = []
  for (const { path, oldText, newText } of changes) {
    if (diffs.length > 0) await turn()
    diffs.push(fileDiff(path, oldText, newText, diffs.length < MAX_FILES))
  }
  return diffs
}

/**
 * How a file changes. The work is bounded whatever the texts are.
 * @param before undefined: the file is new
 * @param isCompared false: all that differs is shown as removed and added
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

/** The lines that differ, all of the old ones before all of the new ones. */
function replaced(before: string, after: string): Patch {
  const { old, fresh, line } = differing(before, after, 0)
  const [removed, added] = [linesIn(old), linesIn(fresh)]
  const head = headOf(line + 1, removed, line + 1, added)
  return { patch: [head, ...signed('-', old), ...signed('+', fresh)].join('\n'), added, removed }
}

/** What stands before a hunk; a side without lines is named by the line before it. */
function headOf(old: number, oldLines: number, fresh: number, freshLines: number): string {
  const at = (start: number, count: number) => `${count === 0 ? start - 1 : start},${count}`
  return `@@ -${at(old, oldLines)} +${at(fresh, freshLines)} @@`
}

/** A text with a sign before each line, as one string: an array of its lines could be many times its size. */
function signed(sign: string, text: string): string[] {
  if (text === '') return []
  const isWhole = text.endsWith('\n')
  const body = isWhole ? text.slice(0, -1) : text
  return [sign + body.replaceAll('\n', `\n${sign}`), ...(isWhole ? [] : ['\\ No newline at end of file'])]
}

/** The whole lines of two texts between what both begin and what both end with, and `context` lines around them. */
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
  // Where both texts go on with a whole line the one before it has ended already.
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

/** Where the line begins that holds the character before which `at` is. */
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
