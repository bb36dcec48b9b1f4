/** Maximum length of a message. */
export const LONGEST = 4096

/** The start of a mention, also with an HTML entity, which Markdown decodes. */
const MENTION = /(?:<|&(?:lt|#0*60|#x0*3c);?)(?=\s*users\/)/gi

/** Disables mentions: a lookalike character replaces the bracket before `users/`. The length does not grow. */
export const quiet = (text: string): string => text.replace(MENTION, '‹')
