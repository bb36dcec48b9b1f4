import { type Inline, markdown } from '../../bridge-kit/src/index.js'

/** Longest text of a message. */
export const LONGEST = 4096

/** Names by which WhatsApp mentions: a number, or everyone. */
const MENTION = /@(?=\+?\d|all\b|everyone\b)/gi

/**
 * A text of Markdown in WhatsApp's markup. An `@` that would mention a person becomes a wide one, which is not longer and notifies
 * no one. A text that the markup makes too long stays as it is.
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
