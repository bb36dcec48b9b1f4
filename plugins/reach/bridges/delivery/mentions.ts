/** An invisible character that splits a word. */
const BREAK = '\u200b'

/**
 * A text of an agent in which no name mentions everyone. Adapters know the other marks of their platforms and turn off what those
 * would resolve; this is the rule that no adapter can forget.
 */
export function quiet(text: string): string {
  return text
    .replace(/@(?=(?:everyone|here|channel|all|room|group|team|online|supergroup)\b)/gi, `@${BREAK}`)
    .replace(/<(?=[!@](?:everyone|here|channel|subteam\^|&))/gi, `<${BREAK}`)
}
