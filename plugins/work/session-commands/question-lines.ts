import { visible } from '../../../kernel/kit/text.js'
import type { ColorName } from '../../../kernel/plugin.js'
import type { QuestionDiff, QuestionHidden } from '../../../schemas/sessions.js'
import { boundedDiffs, fileDiff, firstLines } from '../acp/api.js'
import { oneLine } from './one-line.js'

/** A row for a person. */
export interface Row {
  readonly text: string
  readonly color: ColorName | undefined
}

/** The part of a question or result that is shown at once. */
export interface Extent {
  readonly files: number
  /** Maximum lines per file, and for a command. */
  readonly lines: number
}

export const BRIEF: Extent = { files: 5, lines: 40 }
export const WHOLE: Extent = { files: Number.POSITIVE_INFINITY, lines: Number.POSITIVE_INFINITY }

type Content = Readonly<Record<string, unknown>>

/** A question, from an event or an interaction. */
export interface QuestionContent {
  readonly kind?: unknown
  readonly title?: unknown
  readonly command?: unknown
  readonly paths?: unknown
  readonly outside?: unknown
  readonly diffs?: unknown
  readonly hidden?: unknown
}

/** The rows of a question, and whether some are omitted. */
export interface QuestionRows {
  /** The requested operation in one line. */
  readonly head: string
  readonly rows: readonly Row[]
  /** Whether rows are omitted that the full question has. */
  readonly isCut: boolean
}

/** The rows of a question for a person; invisible characters are marked. */
export function questionRows(question: QuestionContent, extent: Extent): QuestionRows {
  const { files, lines, characters } = {
    files: 0,
    lines: 0,
    characters: 0,
    ...(question.hidden as Partial<QuestionHidden>),
  }
  const command =
    typeof question.command === 'string' ? commandRows(question.command, extent) : { rows: [], isCut: false }
  const diffs = diffRows(diffsIn(question.diffs), extent, files)
  const outside = textsIn(question.outside)
  const rows: Row[] = [
    ...outside.map((path): Row => ({ text: `    outside the workspace: ${oneLine(path)}`, color: 'red' })),
    ...command.rows,
    ...diffs.rows,
  ]
  if (characters > 0) rows.push(left(`${characters} characters of long texts`))
  return {
    head: headOf(question, outside),
    rows,
    isCut: command.isCut || diffs.isCut || files + lines + characters > 0,
  }
}

/** The diffs of a result in the form of the protocol, or of a question of an earlier version. */
export function resultDiffs(list: unknown): QuestionDiff[] {
  if (!Array.isArray(list)) return []
  const changes = (list as (Content | null)[]).flatMap(one => {
    const { path, old_text, oldText = old_text, new_text, newText = new_text } = one ?? {}
    if (typeof path !== 'string' || typeof newText !== 'string') return []
    return [fileDiff(path, typeof oldText === 'string' ? oldText : undefined, newText)]
  })
  return boundedDiffs(changes).diffs.filter(({ patch }) => patch !== '')
}

/** Diffs row by row. @param hiddenFiles number of files already omitted */
export function diffRows(diffs: readonly QuestionDiff[], { files, lines }: Extent, hiddenFiles = 0) {
  const rows: Row[] = []
  let isCut = false
  for (const { path, is_new: isNew, added, removed, patch, hidden_lines: hidden } of diffs.slice(0, files)) {
    rows.push({ text: `    ${oneLine(path)}${isNew ? ' (new)' : ''}  +${added} -${removed}`, color: 'bold' })
    if (patch === '' && hidden === 0) rows.push({ text: '      nothing changes', color: 'dim' })
    const shown = firstLines(patch, lines)
    for (const line of shown) rows.push({ text: `    ${visible(line)}`, color: COLORS[line[0] ?? ' '] ?? 'dim' })
    const more = hidden + Math.max(0, linesIn(patch) - shown.length)
    if (more === 0) continue
    isCut = true
    rows.push(left(`${more} more ${more === 1 ? 'line' : 'lines'} of this file`))
  }
  const others = hiddenFiles + Math.max(0, diffs.length - files)
  if (others > 0) rows.push(left(`${others} more ${others === 1 ? 'file' : 'files'}`))
  return { rows, isCut: isCut || others > 0 }
}

const COLORS: Readonly<Record<string, ColorName>> = { '+': 'green', '-': 'red', '@': 'cyan' }

const left = (text: string): Row => ({ text: `    … ${text}`, color: 'yellow' })

/** A multi-line command row by row; a single-line command is in the head. */
function commandRows(command: string, { lines }: Extent): { readonly rows: readonly Row[]; readonly isCut: boolean } {
  const all = linesIn(command)
  if (all < 2) return { rows: [], isCut: false }
  const rows = firstLines(command, lines).map((line): Row => ({ text: `    ${visible(line)}`, color: undefined }))
  const more = all - rows.length
  return { rows: more > 0 ? [...rows, left(`${more} more lines of the command`)] : rows, isCut: more > 0 }
}

/** The command, or the title with its paths. */
function headOf({ kind, command, title, paths }: QuestionContent, outside: readonly string[]): string {
  const verb = kind === 'execute' ? 'run' : oneLine(kind ?? 'do')
  const isLong = typeof command === 'string' && linesIn(command) > 1
  const what = isLong ? `${linesIn(command)} lines` : oneLine(command ?? title)
  const others =
    command === undefined ? textsIn(paths).filter(path => !outside.includes(path) && !isNamed(path, what)) : []
  return `${verb}: ${what}${others.length > 0 ? ` — ${others.map(oneLine).join(', ')}` : ''}`
}

/** Whether a title already names a path or the end of it. */
function isNamed(path: string, title: string): boolean {
  return title.split(' ').some(word => word !== '' && (path === word || path.endsWith(`/${word}`)))
}

/** The diffs of a question; journals of earlier versions have the texts instead. */
function diffsIn(value: unknown): readonly QuestionDiff[] {
  const list = Array.isArray(value) ? (value as Content[]) : []
  const isDiff = (one: Content | null) => typeof one?.path === 'string' && typeof one.patch === 'string'
  return list.every(isDiff) ? (list as unknown as QuestionDiff[]) : resultDiffs(list)
}

const textsIn = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : [])

function linesIn(text: string): number {
  let count = text === '' || text.endsWith('\n') ? 0 : 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}
