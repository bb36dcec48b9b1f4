import type { Email } from 'postal-mime'
import { clip } from '../../bridge-kit/src/index.js'
import { domainOf } from './addresses.js'

/**
 * Whether the own mail server has verified that the domain of the sender sent the message: `dmarc=pass`, or `dkim=pass` by the
 * domain of the address or one above it. Only the topmost Authentication-Results header (RFC 8601) with the trusted authserv-id
 * counts: that of the last server, which also has to remove what others forge.
 */
export function isAuthenticated({ headers }: Email, from: string, trusted: string | undefined): boolean {
  if (trusted === undefined) return false
  // Mail programs disagree on which of two From headers is shown and verified.
  if (headers.filter(({ key }) => key === 'from').length !== 1) return false
  const results = headers
    .filter(({ key }) => key === 'authentication-results')
    .map(({ value }) => parse(value))
    .find(({ authservId }) => authservId === trusted)
  const domain = domainOf(from)
  return (results?.methods ?? []).some(({ method, result, properties }) => {
    if (result !== 'pass') return false
    if (method === 'dmarc') {
      const verified = properties.get('header.from')
      return verified === undefined || domainOf(verified) === domain
    }
    if (method !== 'dkim') return false
    const signer = properties.get('header.d') ?? domainOf(properties.get('header.i') ?? '')
    return signer.includes('.') && (domain === signer || domain.endsWith(`.${signer}`))
  })
}

interface Results {
  readonly authservId: string
  readonly methods: readonly {
    readonly method: string
    readonly result: string
    readonly properties: ReadonlyMap<string, string>
  }[]
}

function parse(header: string): Results {
  const [head = '', ...rest] = withoutComments(clip(header, 8192)).toLowerCase().split(';')
  const methods = rest.map(statement => {
    const pairs = statement
      .trim()
      .split(/\s+/)
      .map(word => {
        const at = word.indexOf('=')
        return [word.slice(0, Math.max(0, at)), word.slice(at + 1).replace(/^"|"$/g, '')] as const
      })
    const [[method, result] = ['', ''], ...properties] = pairs
    return { method: method.replace(/\/\d+$/, ''), result, properties: new Map(properties) }
  })
  return { authservId: head.trim().split(/\s+/)[0] ?? '', methods }
}

/** Comments and quoted strings may contain separators and results; comments are removed, and such strings are emptied. */
function withoutComments(text: string): string {
  let depth = 0
  let quoted = false
  let kept = ''
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string
    if (character === '\\') {
      at++
      continue
    }
    if (depth === 0 && character === '"') quoted = !quoted
    else if (!quoted && character === '(') depth++
    else if (!quoted && character === ')') depth = Math.max(0, depth - 1)
    else if (depth === 0 && !(quoted && /[;\s=]/.test(character))) kept += character
  }
  return kept
}
