/** An invisible character that splits a word. */
const BREAK = '\u200b'

/**
 * An agent's text in which no name mentions everyone. Adapters also disable the mention syntax of their platforms; this rule
 * holds even for an adapter that does not.
 */
export function quiet(text: string): string {
  return text
    .replace(/@(?=(?:everyone|here|channel|all|room|group|team|online|supergroup)\b)/gi, `@${BREAK}`)
    .replace(/<(?=[!@](?:everyone|here|channel|subteam\^|&))/gi, `<${BREAK}`)
}
