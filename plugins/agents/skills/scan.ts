import { shown } from '../../../kernel/kit/text.js'

/** A finding in the text of a skill, for example hidden characters. */
export interface ScanWarning {
  readonly pattern: string
  readonly severity: 'warning' | 'critical'
  readonly message: string
}

interface Pattern {
  readonly name: string
  readonly severity: ScanWarning['severity']
  readonly regex: RegExp
  readonly says: (found: string) => string
}

/** Places named per pattern; further ones are counted. */
const MOST_PLACES = 3

/** Flags of regions legitimately use tag characters: a black flag, three to six of them, and an end mark. */
const REGION_FLAG = /\u{1F3F4}[\u{E0030}-\u{E0039}\u{E0061}-\u{E007A}]{3,6}\u{E007F}/gu
/** Emoji are joined with a character that can also hide text between letters. */
const JOINED_EMOJI =
  /(?<=\p{Extended_Pictographic}|\p{Variation_Selector}|\p{Emoji_Modifier})\u200D(?=\p{Extended_Pictographic})/gu

/** A readable form of a character: `U+202E`. */
const codePoint = (character: string) =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

/** Decodes text hidden in tag characters: each is an ASCII character with an offset. */
const spelled = (tags: string) =>
  [...tags]
    .map(tag => String.fromCharCode((tag.codePointAt(0) ?? 0) & 0x7f))
    .join('')
    .replace(/[^ -~]/g, '')

const patterns: readonly Pattern[] = [
  {
    name: 'tag_characters',
    severity: 'critical',
    regex: /[\u{E0000}-\u{E007F}]+/gu,
    says: found => `invisible tag characters that spell ${shown(spelled(found), 120)}`,
  },
  {
    name: 'bidirectional_control',
    severity: 'critical',
    regex: /[\u202A-\u202E\u2066-\u2069]+/g,
    says: found => `${codePoint(found)} changes the order in which the text is shown`,
  },
  {
    name: 'zero_width_run',
    severity: 'critical',
    // So many in a row are not typography but hidden text.
    regex: /[\u180E\u200B-\u200F\u2060-\u2064\uFEFF\p{Variation_Selector}]{8,}/gu,
    says: found => `${[...found].length} consecutive invisible characters, beginning with ${codePoint(found)}`,
  },
  {
    name: 'zero_width',
    severity: 'warning',
    regex: /[\u180E\u200B-\u200F\u2060-\u2064\uFEFF]+/g,
    says: found => `the invisible character ${codePoint(found)}`,
  },
  {
    name: 'control_character',
    severity: 'warning',
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    regex: /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]+/g,
    says: found => `the control character ${codePoint(found)}`,
  },
  {
    name: 'overrides_instructions',
    severity: 'warning',
    regex:
      /\b(?:ignore|disregard|forget)\s+(?:all\s+|any\s+)?(?:of\s+)?(?:the\s+|your\s+)?(?:previous|prior|above|earlier)\s+(?:instructions|rules|prompts?)/giu,
    says: found => `it tells the agent to ${shown(found, 80)}`,
  },
  {
    name: 'pipes_download_to_shell',
    severity: 'warning',
    regex: /\b(?:curl|wget)\b[^\n|]{0,300}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b/giu,
    says: found => `it runs what it downloads: ${shown(found, 80)}`,
  },
  {
    name: 'reads_credentials',
    severity: 'warning',
    regex: /(?:~|\$HOME)\/\.(?:ssh\/|aws\/credentials|netrc|gnupg\/)|\bvault\.key\b/giu,
    says: found => `it refers to a location of credentials: ${shown(found)}`,
  },
]

/**
 * Scans a text for findings that a person should know before an agent follows it. Hidden characters are reported by
 * number and place, never repeated. Linear in the length of the text.
 * @param where names the file in messages
 */
export function scan(text: string, where: string): ScanWarning[] {
  // A leading byte order mark is not hidden text.
  const blank = (found: string) => ' '.repeat(found.length)
  let rest = text
    .replace(/^\uFEFF/, ' ')
    .replace(REGION_FLAG, blank)
    .replace(JOINED_EMOJI, ' ')
  return patterns.flatMap(({ name, severity, regex, says }) => {
    const found = [...rest.matchAll(regex)]
    const [first] = found
    if (!first) return []
    const places = found.slice(0, MOST_PLACES).map(({ index }) => placeOf(text, index))
    const more = found.length > MOST_PLACES ? ` and ${found.length - MOST_PLACES} more` : ''
    // Replaced, so that weaker patterns do not report the same characters again.
    rest = rest.replace(regex, blank)
    return [{ pattern: name, severity, message: `${where}:${places.join(', ')}${more}: ${says(first[0])}` }]
  })
}

function placeOf(text: string, index: number): string {
  const before = text.slice(0, index)
  const line = before.split('\n').length
  return `${line}:${index - before.lastIndexOf('\n')}`
}
