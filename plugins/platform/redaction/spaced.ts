import type { Code } from './forms.js'

/** How programs break the digits of one encoding, and a cheap test for such texts. */
interface Spacing {
  readonly code: Code
  /** Every separator contains one of these texts, which are found much faster than the gate. */
  readonly marks: readonly string[]
  /** Whether a text may contain broken digits; bounded, so that it takes linear time. */
  readonly gate: RegExp
  /** A separator between two digits; its first group is the part before the match. */
  readonly separator: RegExp
  /** The end of a text that continues, if it may be a separator or the beginning of one. */
  readonly openEnd: RegExp
}

/** Characters before a separator that are searched again when the text continues. */
export const CONTEXT = 24
/** Maximum characters of a separator's beginning, with the digits before it, for {@link Spacing.openEnd}. */
const LONGEST_END = 64

/** A line end, raw or escaped in JSON, with the surrounding indentation. */
const LINE_END = /[ \t]*(?:\r?\n|(?:\\r)?\\n)[ \t]*/.source
/** The beginning of {@link LINE_END}. */
const PART_OF_END = /[ \t]*(?:\r|\\(?:r\\?)?)/.source
/** From the last byte of a line of `xxd` or `hexdump -C` to the first of the next: the characters, and the offset. */
const DUMP = / {2,3}\|?[^\n]{1,18}\n[0-9a-f]{4,16}:? {1,2}/.source
/** Two digits of hex. */
const HH = '(?:[0-9a-f]{2})'
const HEX_GAP = `(?:${DUMP}|${LINE_END}|,? ?(?:0x|\\\\x)|, ?| {1,2}|[:-])`

const SPACINGS: readonly Spacing[] = [
  {
    code: 'base64',
    marks: ['\n', '\\n'],
    // The line break first, which is rare: the digits before it are checked only there.
    gate: new RegExp(`(?:\\n|\\\\n)(?<=[\\w+/-]{8}${LINE_END})[ \\t]*[\\w+/=-]`),
    separator: /(?:\n|\\n)(?<=(?<=[\w+/=-]{4})([ \t]*(?:\r?(?=\n)|(?:\\r)?(?=\\n)))(?:\n|\\n))[ \t]*(?=[\w+/=-])/g,
    // As long as the lines that the gate requires. A longer word at the end of a line is ordinary text, of which only a value's
    // beginning is held back.
    openEnd: new RegExp(`(?<=[\\w+/-]{8})(?:${LINE_END}|${PART_OF_END})$`),
  },
  {
    code: 'hex',
    marks: [' ', '\n', ',', ':', '-', '\\', '0x', '0X'],
    // A common beginning of all three, so that ordinary text fails at its first characters.
    gate: new RegExp(`${HH}(?:${HEX_GAP}(?:${HH}${HEX_GAP}){3}|${HH} (?:${HH}{2} ){2}|${HH}{3}${LINE_END}${HH})`, 'i'),
    separator: new RegExp(`(?<=[0-9a-f]{2})${HEX_GAP}(?=[0-9a-f]{2})`, 'gi'),
    openEnd: new RegExp(
      `(?<=(?<![0-9a-wyz])(?:[0-9a-f]{2}){1,2})(?:${HEX_GAP}[0-9a-f]{0,4}|${PART_OF_END}|,? ?(?:0|\\\\))$` +
        `|(?<=[0-9a-f]{16})(?:${LINE_END}[0-9a-f]?|${PART_OF_END})$`,
      'i',
    ),
  },
]

/** A text with the digits of one encoding joined, and the original positions of its characters. */
export interface Joined {
  readonly code: Code
  readonly text: string
  /** Original position of a character; the original length for the end. */
  readonly placeOf: (at: number) => number
}

/**
 * A text without the line breaks and separators that `base64`, `openssl`, `xxd` and certificates insert between digits: one result
 * for each encoding whose digits may be separated in it.
 * @param isLast false when the text continues, so that its end may be the beginning of such digits
 */
export function joinedDigits(text: string, isLast: boolean): Joined[] {
  const joined: Joined[] = []
  for (const { code, marks, gate, separator, openEnd } of SPACINGS) {
    const tail = isLast ? undefined : openEnd.exec(text.slice(-LONGEST_END))?.[0].length
    if (tail !== undefined || (marks.some(mark => text.includes(mark)) && gate.test(text)))
      joined.push({ code, ...without(tail ? text.slice(0, -tail) : text, separator, text.length) })
  }
  return joined
}

function without(text: string, separator: RegExp, end: number): Omit<Joined, 'code'> {
  const places = new Int32Array(text.length + 1)
  let out = ''
  let copied = 0
  const copy = (to: number) => {
    for (let at = copied; at < to; at++) places[out.length + at - copied] = at
    out += text.slice(copied, to)
  }
  for (const match of text.matchAll(separator)) {
    copy(match.index - (match[1]?.length ?? 0))
    copied = match.index + match[0].length
  }
  copy(text.length)
  places[out.length] = end
  return { text: out, placeOf: at => places[at] as number }
}
