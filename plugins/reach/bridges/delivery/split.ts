import type { BridgeCapabilities, TextUnit } from '../adapter.js'

/** A platform's rules for the text of one message. */
export type TextRules = Pick<BridgeCapabilities, 'textLimit' | 'textUnit' | 'fences'>

/** A part of a text: `raw` is the original, `text` is the sent form. */
export interface Piece {
  readonly raw: string
  readonly text: string
}

/** Limit below which reopening a fence would leave no room for code. */
const SMALL = 64
/** Minimum fill of a part that ends at a better place. */
const LEAST = 0.4
/** UTF-16 units before a cut that are searched for a character boundary. */
const NEAR = 64
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/

interface Fence {
  readonly marker: string
  readonly info: string
}

/** Size of a text in the platform's unit. */
export function sizeOf(text: string, unit: TextUnit): number {
  if (unit === 'bytes') return Buffer.byteLength(text)
  if (unit === 'utf16') return text.length
  let count = 0
  for (const _ of text) count++
  return count
}

/**
 * Splits a text into parts within the platform's limit, preferably at the end of a paragraph, line, sentence or word;
 * tables are kept together if possible, and split code fences are closed and reopened. A cut depends only on the text
 * before it and the next part: as a text grows, all parts but the last stay the same.
 */
export function split(text: string, rules: TextRules): Piece[] {
  const fences = rules.fences && rules.textLimit >= SMALL
  const limit = Math.max(1, rules.textLimit)
  const pieces: Piece[] = []
  let open: Fence | undefined
  for (let at = 0; at < text.length; ) {
    const head = open ? headOf(open, limit) : ''
    const room = Math.max(1, limit - sizeOf(head, rules.textUnit))
    const isLast = fits(text, at, room, rules.textUnit)
    const reserve = fences ? 1 + Math.max(3, open?.marker.length ?? 0) : 0
    const end = isLast ? text.length : cutOf(text, at, Math.max(1, room - reserve), rules, open)
    const raw = text.slice(at, end)
    const after = fences ? fenceAfter(raw, open) : undefined
    const tail = after && !isLast ? `${raw.endsWith('\n') ? '' : '\n'}${after.marker}` : ''
    const fit = sizeOf(head + raw + tail, rules.textUnit) <= limit
    pieces.push({ raw, text: fit ? head + raw + tail : raw })
    open = after
    at = end
  }
  return pieces
}

/** The messages for a text: the parts of {@link split}, trimmed and without empty ones. */
export function textsOf(text: string, rules: TextRules): string[] {
  const texts = split(text, rules).map(piece => piece.text.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd())
  return texts.filter(part => part.trim() !== '')
}

/** Reopens a fence; a long info string is dropped to save room. */
const headOf = ({ marker, info }: Fence, limit: number) =>
  `${marker}${info.length > 40 || limit < 2 * SMALL ? '' : info}\n`

/** Whether the rest of a text fits; inspects no more of it than needed. */
function fits(text: string, at: number, room: number, unit: TextUnit): boolean {
  const units = text.length - at
  if (unit === 'utf16') return units <= room
  if (units > 2 * room) return false
  return sizeOf(text.slice(at), unit) <= room
}

/** End of the part that begins at `at`. */
function cutOf(text: string, at: number, room: number, { textUnit, fences }: TextRules, open: Fence | undefined) {
  const hard = reach(text, at, room, textUnit)
  const window = text.slice(at, hard)
  const least = Math.floor(window.length * LEAST)
  const { paragraph, line } = lineCuts(window, fences ? open : undefined, fences)
  if (paragraph > least) return at + paragraph
  if (line > least) return at + line
  const sentence = lastOf(window, /[.!?\u2026][)"'\]]*\s/g)
  if (sentence > least) return at + sentence
  const word = lastOf(window, /\s/g)
  if (word > least) return at + word
  return hard
}

/** The last good line ends in the first part of a text; 0: none. */
function lineCuts(window: string, before: Fence | undefined, fences: boolean) {
  let open = before
  let table = 0
  let [paragraph, line] = [0, 0]
  for (let start = 0; ; ) {
    const end = window.indexOf('\n', start)
    if (end < 0) break
    const text = window.slice(start, end)
    const isRow = !open && /^\s*\|.*\|\s*$/.test(text)
    // A table or fence that begins here should stay whole, so the place before it is preferred to one inside.
    const fence = fences && !open ? fenceIn(text) : undefined
    if ((isRow && table === 0) || fence) paragraph = start > 0 ? start : paragraph
    table = isRow ? table + 1 : 0
    if (fences) open = fenceAfter(`${text}\n`, open)
    start = end + 1
    line = start
    if (text.trim() === '' && !open) paragraph = start
  }
  return { paragraph, line }
}

function lastOf(window: string, pattern: RegExp): number {
  let last = 0
  for (const { index, 0: found } of window.matchAll(pattern)) last = index + found.length
  return last
}

/** The largest fitting end of a part, between two grapheme clusters if at least one fits. */
function reach(text: string, at: number, room: number, unit: TextUnit): number {
  let end = at
  for (let used = 0; end < text.length; ) {
    const code = text.codePointAt(end) as number
    const width = code > 0xffff ? 2 : 1
    used += unit === 'utf16' ? width : unit === 'code_points' ? 1 : code < 0x80 ? 1 : code < 0x800 ? 2 : width + 2
    if (used > room && end > at) break
    end += width
  }
  if (end >= text.length) return end
  const from = Math.max(at, end - NEAR)
  let boundary = 0
  for (const { index } of graphemes().segment(text.slice(from, end + NEAR))) {
    if (from + index > end) break
    boundary = index
  }
  return boundary > 0 ? from + boundary : end
}

let segmenter: Intl.Segmenter | undefined
function graphemes(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  return segmenter
}

function fenceIn(line: string): Fence | undefined {
  const [, marker, info = ''] = FENCE.exec(line) ?? []
  // Backticks followed by backticks are inline code.
  return marker === undefined || (marker.startsWith('`') && info.includes('`'))
    ? undefined
    : { marker, info: info.trim() }
}

/** The fence that is open at the end of a text. */
function fenceAfter(text: string, before: Fence | undefined): Fence | undefined {
  let open = before
  for (const line of text.split('\n')) {
    const found = fenceIn(line)
    if (!found) continue
    if (!open) open = found
    else if (found.info === '' && found.marker.startsWith(open.marker)) open = undefined
  }
  return open
}
