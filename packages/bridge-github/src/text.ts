/** Code blocks and spans, in which GitHub sees no mention. */
const CODE = /(^ {0,3}(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^ {0,3}\2[`~]*[ \t]*$|(?![\s\S]))|`+[^`\n]+`+)/gm

/** The hidden line by which an answer is found again. */
export const marker = (nonce: string): string => `<!-- svc:${nonce} -->`

/**
 * The body of a comment: the text, in which nobody is notified but the person who is answered, and the marker. Teams and other
 * persons keep their name, with an invisible character behind the @.
 */
export function bodyOf(text: string, nonce: string, answered: string | undefined): string {
  const parts = text.replace(/<!--\s*svc:/gi, '<!-- ').split(CODE)
  let body = ''
  // Of each match the whole and the fence are parts of their own.
  for (let at = 0; at < parts.length; at += 3) body += quiet(parts[at] ?? '', answered) + (parts[at + 1] ?? '')
  return `${body}\n\n${marker(nonce)}`
}

function quiet(text: string, answered: string | undefined): string {
  return text.replace(/@(?=([A-Za-z0-9][A-Za-z0-9-]*(?:\/[\w.-]+)?))/g, (at, name: string) =>
    name.toLowerCase() === answered?.toLowerCase() ? at : '@\u200b',
  )
}

/** Whether a text mentions a login outside of code and of what it quotes. */
export function mentions(text: string, login: string): boolean {
  const own = text.replace(CODE, '').replace(/^ {0,3}>.*$/gm, '')
  const name = login.replace(/[^A-Za-z0-9-]/g, '')
  return new RegExp(`(?:^|[^A-Za-z0-9_/@-])@${name}(?![A-Za-z0-9/-])`, 'i').test(own)
}

/** A text without the mention with which it begins. */
export function withoutMention(text: string, login: string): string {
  const name = login.replace(/[^A-Za-z0-9-]/g, '')
  return text.replace(new RegExp(`^\\s*@${name}(?![A-Za-z0-9/-])[\\s,:]*`, 'i'), '').trim()
}
