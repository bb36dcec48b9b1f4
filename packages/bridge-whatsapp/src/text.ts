import { type Inline, markdown } from '../../bridge-kit/src/index.js'

/** Maximum length of a message. */
export const LONGEST = 4096

/** Mentions in WhatsApp: a number, or everyone. */
const MENTION = /@(?=\+?\d|all\b|everyone\b)/gi

/**
 * Converts Markdown to WhatsApp's markup. A fullwidth character replaces each `@` of a mention, which notifies nobody and is not
 * longer. If the markup makes the text too long, the text is returned without it.
 */
export function marked(text: string): string {
  const rich = markdown(text)
    .map(block => (block.type === 'words' ? all(block.inner) : `\`\`\`\n${block.code}\n\`\`\``))
    .join('\n')
    .trimEnd()
  return quiet(rich.length > LONGEST ? text : rich)
}

const quiet = (text: string) => text.replace(MENTION, '＠')

const all = (inner: readonly Inline[]): string => inner.map(one).join('')

const SIGNS = { bold: '*', italic: '_', strike: '~' } as const

function one(piece: Inline): string {
  if (piece.type === 'text') return piece.text
  if (piece.type === 'code') return `\`${piece.text}\``
  const inner = all(piece.inner)
  if (piece.type !== 'link') return `${SIGNS[piece.type]}${inner}${SIGNS[piece.type]}`
  return inner === piece.url ? inner : `${inner} (${piece.url})`
}
