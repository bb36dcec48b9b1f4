/** Teams' limit of a message in bytes; the manifest's limit stays below it in UTF-8 and in UTF-16. */
export const MOST_BYTES = 28 * 1024

/** Disables mentions, which other entities could otherwise complete. */
export function quiet(text: string): string {
  return text.replace(/<(?=\s*\/?\s*at\b)/gi, '<\u200b')
}

interface Mention {
  readonly type?: unknown
  readonly text?: unknown
  readonly mentioned?: { readonly id?: unknown; readonly name?: unknown }
}

const MOST_ENTITIES = 200

/** The text of a message: mentions of the bot removed, others as @name; and whether the bot is mentioned. */
export function heard(
  text: string,
  entities: unknown,
  bot: string,
): { readonly text: string; readonly named: boolean } {
  let rest = text.replace(/&nbsp;|\u00a0/g, ' ')
  let named = false
  for (const entity of (Array.isArray(entities) ? entities : []).slice(0, MOST_ENTITIES)) {
    const { type, text: marked, mentioned } = (entity ?? {}) as Mention
    if (type !== 'mention' || typeof mentioned?.id !== 'string') continue
    const isBot = mentioned.id === bot
    named ||= isBot
    if (typeof marked !== 'string' || marked === '') continue
    const name = typeof mentioned.name === 'string' ? mentioned.name : plain(marked)
    rest = rest.replace(marked.replace(/&nbsp;|\u00a0/g, ' '), () => (isBot ? ' ' : `@${name}`))
  }
  rest = rest.replace(/<at(?:\s[^<>]*)?>([^<>]*)<\/at>/gi, '@$1')
  return { text: rest.replace(/[ \t]{2,}/g, ' ').trim(), named }
}

const plain = (text: string): string => text.replace(/<[^<>]*>/g, '')
