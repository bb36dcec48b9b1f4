/**
 * Characters that show nothing or change how others are shown: controls, zero-width and invisible ones, directional marks, tags.
 * `\u200c` and `\u200d`, which join letters and pictures, are among them.
 */
export const UNSEEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: each of them is looked for by itself
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/u

const all = new RegExp(UNSEEN.source, 'gu')

/** Whether a character joins letters or pictures of other scripts than Latin. @param before what stands before it */
export const isJoiner = (char: string, before: string): boolean =>
  (char === '\u200c' || char === '\u200d') && before > '\u02ff'

/**
 * A text in which such characters are marked, `␛` or `\u{202e}`: what somebody is asked about shows what is in it. Tabs stay, and
 * where `joiners` is set what joins the parts of an emoji.
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
