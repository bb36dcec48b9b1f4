// biome-ignore-start lint/suspicious/noControlCharactersInRegex: these are what is looked for
/** Terminal sequences that set colours and nothing else; everything else a program printed could act on the terminal. */
const colorSequence = /^\x1b\[[\d;]{0,16}m/
const otherSequence =
  /^(?:\x1b\[[0-?]{0,64}[ -/]{0,16}[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|\x1b[ -/]{0,16}[0-~])/
/** Control characters; and directional overrides and isolates, which would show a text other than it is. */
const unsafe = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: as above

/**
 * Text that cannot act on a terminal: no control characters but newline and tab, no escape sequences. With `colors`,
 * sequences that set a colour stay.
 */
export function cleanText(text: string, colors = false): string {
  if (!unsafe.test(text)) return text
  let out = ''
  for (let at = 0; at < text.length; ) {
    const char = text[at] as string
    if (!unsafe.test(char)) out += char
    else if (char === '\x1b') {
      const rest = text.slice(at, at + 4200)
      const color = colorSequence.exec(rest)?.[0]
      const sequence = color ?? otherSequence.exec(rest)?.[0] ?? char
      if (color !== undefined && colors) out += color
      at += sequence.length
      continue
    }
    at++
  }
  return out
}

/** JSON whose characters cannot act on a terminal either; `JSON.stringify` leaves those beyond ASCII as they are. */
export function jsonText(value: unknown, indent?: number): string | undefined {
  const text = JSON.stringify(value, undefined, indent)
  return text?.replace(/[\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, char => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** {@link cleanText} in one line. */
export function cleanLine(text: string): string {
  return cleanText(text)
    .replace(/[\n\t]+/g, ' ')
    .trim()
}

/** Columns that a text without control characters takes on a terminal. */
export function textWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const cluster of clustersOf(text)) width += clusterWidth(cluster)
  return width
}

/** Cut to `width` columns, the last one being `…` when something is missing. */
export function cutText(text: string, width: number): string {
  // No unit of a text takes more than two columns.
  if (text.length * 2 <= width || textWidth(text) <= width) return text
  if (width < 1) return ''
  let out = ''
  let used = 0
  for (const cluster of clustersOf(text)) {
    const next = clusterWidth(cluster)
    if (used + next > width - 1) break
    out += cluster
    used += next
  }
  return `${out}…`
}

/** Lines of at most `width` columns, broken between words; a word that is longer stands whole in a line of its own. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  let used = 0
  for (const word of text.split(' ')) {
    const columns = textWidth(word)
    const fits = lines.length > 0 && used + 1 + columns <= width
    if (fits) lines[lines.length - 1] += ` ${word}`
    else lines.push(word)
    used = fits ? used + 1 + columns : columns
  }
  return lines
}

/** Filled with spaces to `width` columns. */
export function padText(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)))
}

let segmenter: Intl.Segmenter | undefined

/** What a reader takes for one character: a letter with its marks, an emoji made of several. */
function* clustersOf(text: string): Generator<string> {
  if (/^[\x20-\x7e]*$/.test(text)) yield* text
  else {
    segmenter ??= new Intl.Segmenter()
    for (const { segment } of segmenter.segment(text)) yield segment
  }
}

/** Clusters that terminals draw as one picture, whatever they are made of. */
const picture = /\u200d|\ufe0f|\p{Regional_Indicator}|\p{Emoji_Modifier}/u
const noWidth = /^[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff]$/u

function clusterWidth(cluster: string): number {
  if (picture.test(cluster) && cluster.length > 1) return 2
  let width = 0
  for (const char of cluster) width += charWidth(char)
  return width
}

const wide: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x1b2ff],
  [0x20000, 0x3fffd],
]

function charWidth(char: string): number {
  const code = char.codePointAt(0) as number
  if (code < 0x300) return 1
  if (noWidth.test(char)) return 0
  return wide.some(([from, to]) => code >= from && code <= to) || /^\p{Emoji_Presentation}$/u.test(char) ? 2 : 1
}
