import * as v from 'valibot'

/**
 * The schema of a text from a person: trimmed, then `min` to `max` UTF-16 code units long.
 * @param min 0 admits the empty text
 */
export const text = (max: number, min = 1) => v.pipe(v.string(), v.trim(), v.minLength(min), v.maxLength(max))

/** At most `max` UTF-16 code units of a text; a character of two units is never split. */
export function clip(value: string, max: number): string {
  const last = value.charCodeAt(max - 1)
  return value.length > max && last >= 0xd800 && last <= 0xdbff ? value.slice(0, max - 1) : value.slice(0, max)
}

/** Like {@link clip}, followed by `…` if the text was longer. */
export const cut = (value: string, max: number): string => (value.length > max ? `${clip(value, max)}…` : value)

/** Escapes of lone surrogates in JSON, which is the only way for them into a text that was decoded from UTF-8. */
export const HALVES = /\\u[dD][89a-fA-F]/

/** Foreign JSON, parsed and made {@link wellFormed}. @throws SyntaxError */
export const parseJson = (json: string): unknown =>
  HALVES.test(json) ? wellFormed(JSON.parse(json)) : JSON.parse(json)

/**
 * The value with lone surrogates replaced by U+FFFD, in texts and member names. UTF-8 cannot represent them: other programs refuse
 * JSON that contains them, and SQLite would store another text.
 */
export function wellFormed<T>(value: T): T {
  if (typeof value === 'string') return value.toWellFormed() as T
  if (Array.isArray(value)) return value.map(wellFormed) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name.toWellFormed(), wellFormed(member)]),
  ) as T
}

/** A foreign text as an error quotes it: in quotation marks, control characters escaped, at most `max` code units and then `…`. */
export function shown(value: string, max = 200): string {
  return JSON.stringify(cut(value, max))
}

/** A name that is safe to insert into SQL. Throws TypeError for anything but lower-case words. */
export function sqlName(name: string): string {
  if (!/^[a-z][a-z0-9_]{0,127}$/.test(name))
    throw new TypeError(`${JSON.stringify(name)} is not a valid name of a table or column`)
  return name
}

/** Whether a pattern (a name, or a prefix with `*`) covers another pattern. */
export const covers = (pattern: string, atom: string): boolean =>
  pattern === atom || (pattern.endsWith('*') && atom.startsWith(pattern.slice(0, -1)))

/** Suggestions for a mistyped `text`: the nearest names, at most three. */
export function nearest(text: string, names: readonly string[]): string[] {
  const near = names
    .map(name => ({ name, distance: editDistance(text, name) }))
    .filter(({ name, distance }) => distance <= Math.max(1, Math.floor(Math.min(text.length, name.length) / 3)))
  const least = Math.min(...near.map(({ distance }) => distance))
  const best = near.filter(({ distance }) => distance === least)
  return best
    .map(({ name }) => name)
    .sort()
    .slice(0, 3)
}

/** Edit distance: insertions, deletions, changes and swaps of neighbours. */
function editDistance(a: string, b: string): number {
  // Such texts are not typing errors, and the table grows with both lengths.
  if (Math.abs(a.length - b.length) > 8 || a.length > 80) return Number.POSITIVE_INFINITY
  const rows = [Array.from({ length: b.length + 1 }, (_, i) => i)]
  const at = (i: number, j: number) => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= a.length; i++) {
    rows.push([i])
    for (let j = 1; j <= b.length; j++) {
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY
      const changed = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      rows[i]?.push(Math.min(changed, at(i - 1, j) + 1, at(i, j - 1) + 1, swapped))
    }
  }
  return at(a.length, b.length)
}

/**
 * Characters that are invisible or change how others are shown: controls, zero-width and invisible ones, directional marks, tags.
 * The joiners `\u200c` and `\u200d` are among them.
 */
export const UNSEEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: each of them is looked for by itself
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/u

const all = new RegExp(UNSEEN.source, 'gu')

/** Whether a character joins letters or pictures of non-Latin scripts. @param before the character before it */
export const isJoiner = (char: string, before: string): boolean =>
  (char === '\u200c' || char === '\u200d') && before > '\u02ff'

/**
 * A text with invisible characters marked, `␛` or `\u{202e}`, so that a person sees everything in it. Tabs stay, and with `joiners`
 * also the joiners inside emoji.
 */
export function visible(text: string, { joiners = false } = {}): string {
  if (!UNSEEN.test(text)) return text
  return text.replace(all, (char, at: number) => {
    const code = char.codePointAt(0) as number
    if (char === '\t' || (joiners && isJoiner(char, text[at - 1] ?? ''))) return char
    if (code < 0x20) return String.fromCodePoint(0x2400 + code)
    return code === 0x7f ? '␡' : `\\u{${code.toString(16)}}`
  })
}
