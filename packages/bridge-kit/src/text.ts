/** The unit of a text limit. */
export type TextUnit = 'bytes' | 'utf16' | 'code_points'

/** The length of a text in a unit. */
export function measure(text: string, unit: TextUnit): number {
  if (unit === 'bytes') return Buffer.byteLength(text)
  if (unit === 'utf16') return text.length
  let points = 0
  for (const _ of text) points++
  return points
}

/** At most `max` UTF-16 code units of a text; a character of two units is never split. */
export function clip(value: string, max: number): string {
  const last = value.charCodeAt(max - 1)
  return value.length > max && last >= 0xd800 && last <= 0xdbff ? value.slice(0, max - 1) : value.slice(0, max)
}

const sizes: Readonly<Record<TextUnit, (character: string) => number>> = {
  bytes: character => Buffer.byteLength(character),
  utf16: character => character.length,
  code_points: () => 1,
}

/** Characters that attach to the one before: combining marks, variation selectors, skin tones, joiners. */
const CONTINUES = /^(?:\p{M}|\p{Emoji_Modifier}|\u200d)/u

/**
 * How many UTF-16 units of the text fit into the limit without splitting a character or, if possible, separating a mark from its
 * letter. At least one character.
 */
function fitting(text: string, limit: number, unit: TextUnit): number {
  const size = sizes[unit]
  let at = 0
  let used = 0
  let whole = 0
  for (const character of text) {
    used += size(character)
    if (!CONTINUES.test(character) && text[at - 1] !== '\u200d') whole = at
    if (used > limit) return whole || at || character.length
    at += character.length
  }
  return at
}

/**
 * Splits a text into pieces within the limit: at a line end, else after a space, else between characters. Only the separators
 * between pieces are dropped.
 */
export function split(text: string, limit: number, unit: TextUnit): string[] {
  const pieces: string[] = []
  let rest = text
  while (rest !== '') {
    const most = fitting(rest, limit, unit)
    if (most === rest.length) {
      pieces.push(rest)
      break
    }
    // A separator right after the piece does not count.
    const head = clip(rest, most + 1)
    const newline = head.lastIndexOf('\n')
    const space = head.lastIndexOf(' ')
    const at = newline > 0 ? newline : space > most / 2 ? space : most
    pieces.push(rest.slice(0, at))
    rest = rest.slice(at === newline || at === space ? at + 1 : at)
  }
  return pieces
}

/**
 * The lines of a text, for platforms without line breaks in messages. Empty lines and control characters except tab are dropped.
 */
export function linesOf(text: string): string[] {
  return text
    .split(/\r\n|[\n\r\u2028\u2029]/)
    .map(line => line.replace(/[^\P{Cc}\t]/gu, '').trimEnd())
    .filter(line => line !== '')
}
