/** Code blocks and spans, in which GitHub recognises no mentions. */
const CODE = /(^ {0,3}(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^ {0,3}\2[`~]*[ \t]*$|(?![\s\S]))|`+[^`\n]+`+)/gm

/** The hidden line that identifies an answer. */
export const marker = (nonce: string): string => `<!-- svc:${nonce} -->`

/**
 * The body of a comment: the text and the marker. Only the answered person is notified: an invisible character after the @ disables
 * mentions of teams and other persons.
 */
export function bodyOf(text: string, nonce: string, answered: string | undefined): string {
  const parts = text.replace(/<!--\s*svc:/gi, '<!-- ').split(CODE)
  let body = ''
  // The split adds two parts per match: the whole match and its fence.
  for (let at = 0; at < parts.length; at += 3) body += quiet(parts[at] ?? '', answered) + (parts[at + 1] ?? '')
  return `${body}\n\n${marker(nonce)}`
}

function quiet(text: string, answered: string | undefined): string {
  return text.replace(/@(?=([A-Za-z0-9][A-Za-z0-9-]*(?:\/[\w.-]+)?))/g, (at, name: string) =>
    name.toLowerCase() === answered?.toLowerCase() ? at : '@\u200b',
  )
}

/** Whether a text mentions a login outside of code and quotes. */
export function mentions(text: string, login: string): boolean {
  const own = text.replace(CODE, '').replace(/^ {0,3}>.*$/gm, '')
  const name = login.replace(/[^A-Za-z0-9-]/g, '')
  return new RegExp(`(?:^|[^A-Za-z0-9_/@-])@${name}(?![A-Za-z0-9/-])`, 'i').test(own)
}

/** The text without a leading mention. */
export function withoutMention(text: string, login: string): string {
  const name = login.replace(/[^A-Za-z0-9-]/g, '')
  return text.replace(new RegExp(`^\\s*@${name}(?![A-Za-z0-9/-])[\\s,:]*`, 'i'), '').trim()
}
