import { eastAsianWidth } from 'get-east-asian-width'
import { isJoiner, UNSEEN, visible } from '../../kernel/kit/text.js'

// biome-ignore-start lint/suspicious/noControlCharactersInRegex: these are what is looked for
/** Terminal sequences that only set colours; any other sequence in a program's output could act on the terminal. */
const colorSequence = /^\x1b\[[\d;]{0,16}m/
const otherSequence =
  /^(?:\x1b\[[0-?]{0,64}[ -/]{0,16}[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|\x1b[ -/]{0,16}[0-~])/
/** A colour sequence, and whether it resets all colours. */
const colorSequences = /\x1b\[[\d;]{0,16}m/g
const isReset = (sequence: string) => /^\x1b\[0*m$/.test(sequence)
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: as above
/** Characters of {@link UNSEEN} that JSON does not escape, except joiners of letters and emoji. */
const unseenBeyondAscii = new RegExp(`(?![\\n\\t\\u200c\\u200d])(?:${UNSEEN.source})`, 'gu')
const unseenInLines = new RegExp(`(?![\\n\\t])(?:${UNSEEN.source})`, 'u')
const reset = '\x1b[0m'
/** Maximum number of active colours. */
const mostColors = 8

/** Whether a character is unsafe for a terminal; joiners between letters of other scripts or emoji are part of their words. */
function isUnsafe(char: string, before: string): boolean {
  if (char === '\n' || char === '\t' || char === '\u2028' || char === '\u2029' || !UNSEEN.test(char)) return false
  return !isJoiner(char, before)
}

/** Text with its colours closed at the end, and the colours that were active there. @param open active colours at the beginning */
export function closeColors(text: string, open = ''): { readonly text: string; readonly open: string } {
  const found = (open + text).match(colorSequences)
  if (!found) return { text, open: '' }
  const last = found.slice(found.findLastIndex(isReset) + 1).slice(-mostColors)
  return { text: `${open}${text}${last.length > 0 ? reset : ''}`, open: last.join('') }
}

/**
 * Text that cannot act on a terminal: no control characters except newline and tab, no escape sequences. With `colors`, colour
 * sequences stay.
 */
export function cleanText(text: string, colors = false): string {
  if (!unseenInLines.test(text)) return text
  let out = ''
  for (let at = 0; at < text.length; ) {
    const char = String.fromCodePoint(text.codePointAt(at) as number)
    if (!isUnsafe(char, out.at(-1) ?? '')) out += char
    else if (char === '\x1b') {
      const rest = text.slice(at, at + 4200)
      const color = colorSequence.exec(rest)?.[0]
      const sequence = color ?? otherSequence.exec(rest)?.[0] ?? char
      if (color !== undefined && colors) out += color
      at += sequence.length
      continue
    }
    at += char.length
  }
  return out
}

/** JSON that cannot act on a terminal; `JSON.stringify` does not escape characters beyond ASCII. */
export function jsonText(value: unknown, indent?: number): string | undefined {
  const text = JSON.stringify(value, undefined, indent)
  return text?.replace(unseenBeyondAscii, char =>
    char
      .split('')
      .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}

/** {@link cleanText} in one line. */
export function cleanLine(text: string): string {
  return cleanText(text)
    .replace(/[\n\t]+/g, ' ')
    .trim()
}

/** A value in one line, with invisible characters marked. */
export function markedLine(text: string): string {
  return visible(text.replace(/[\r\n\t]+/g, ' '), { joiners: true }).trim()
}

/** Columns of a text without control characters on a terminal. */
export function textWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const cluster of clustersOf(text)) width += clusterWidth(cluster)
  return width
}

/** Cuts a text to `width` columns; the last one is `…` when something is missing. */
export function cutText(text: string, width: number): string {
  // Each UTF-16 unit takes at most two columns.
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

/** Lines of at most `width` columns, wrapped between words; a longer word stays whole in a line of its own. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  let used = 0
  for (const word of text.split(' ')) {
    const columns = shownWidth(word)
    const fits = lines.length > 0 && used + 1 + columns <= width
    if (fits) lines[lines.length - 1] += ` ${word}`
    else lines.push(word)
    used = fits ? used + 1 + columns : columns
  }
  return lines
}

/** A command line in a sentence, up to the punctuation that ends it. */
const commandLine = /(?:\b[A-Z_]+=\S+ )?\b(?:svc|npm|npx|curl|tar|sudo)(?: (?:"[^"]*"|'[^']*'|[^\s;,()"']+))+/g
/** A character that takes the place of each space in a command line while its sentence is wrapped; clean text does not contain it. */
const heldSpace = '\0'

/** A time, number or name, with a gap before its text. */
const label = /^ *\S.{0,24}?\S? {2,}(?=\S)/
/**
 * The lines of a text, each wrapped to `width` columns by {@link wrapSentence}. Continuations are indented by two more than their
 * line, or start below the text after its label.
 */
export function wrapLines(text: string, width: number): string[] {
  return text.split('\n').flatMap(line => {
    if (shownWidth(line) <= width) return [line]
    const head = label.exec(line)?.[0] ?? /^ */.exec(line)?.[0] ?? ''
    const indent = ' '.repeat(head.trim() === '' ? head.length + 2 : shownWidth(head))
    const [first = '', ...more] = wrapSentence(line.slice(head.length), width - indent.length)
    return [head + first, ...more.map(rest => indent + rest)]
  })
}

/** Like {@link wrapText}, but a command line stays whole, so that it can be copied. */
export function wrapSentence(text: string, width: number): string[] {
  const held = text.replace(commandLine, command => command.replaceAll(' ', heldSpace))
  return wrapText(held, width).map(line => line.replaceAll(heldSpace, ' '))
}

/** {@link textWidth} of a text with colours. */
const shownWidth = (text: string) => textWidth(text.replace(colorSequences, ''))

/** Pads with spaces to `width` columns. */
export function padText(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)))
}

let segmenter: Intl.Segmenter | undefined

/** User-perceived characters: a letter with its marks, an emoji made of several code points. */
function* clustersOf(text: string): Generator<string> {
  if (/^[\x20-\x7e]*$/.test(text)) yield* text
  else {
    segmenter ??= new Intl.Segmenter()
    for (const { segment } of segmenter.segment(text)) yield segment
  }
}

/** Clusters that terminals draw as one emoji. */
const picture = /\u200d|\ufe0f|\p{Regional_Indicator}|\p{Emoji_Modifier}/u
const noWidth = /^[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff]$/u

function clusterWidth(cluster: string): number {
  if (picture.test(cluster) && cluster.length > 1) return 2
  let width = 0
  for (const char of cluster) width += charWidth(char)
  return width
}

function charWidth(char: string): number {
  const code = char.codePointAt(0) as number
  if (code < 0x300) return 1
  if (noWidth.test(char)) return 0
  return eastAsianWidth(code)
}
