/** Longest text of a message. */
export const LONGEST = 4096

/** The beginning of a mention, also behind an entity of HTML, which Markdown decodes. */
const MENTION = /(?:<|&(?:lt|#0*60|#x0*3c);?)(?=\s*users\/)/gi

/**
 * A text in which no person and not everyone is mentioned: another character that looks alike stands before `users/`. The text does
 * not become longer.
 */
export const quiet = (text: string): string => text.replace(MENTION, '‹')
