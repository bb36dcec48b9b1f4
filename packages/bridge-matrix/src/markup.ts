import { type Block, type Inline, markdown } from '../../bridge-kit/src/index.js'

/** A text in the form of a Matrix message. */
export interface Styled {
  readonly body: string
  /** Formatted HTML; absent without styles. */
  readonly html?: string
}

const TAGS = { bold: 'strong', italic: 'em', strike: 'del' } as const

/** Converts Markdown: HTML in it is escaped, and room pings are disabled. */
export function styled(text: string): Styled {
  const body = quiet(text.replace(/[^\P{Cc}\t\n]/gu, ''))
  const blocks = markdown(body)
  const html = blocks.map(ofBlock).join('')
  return blocks.every(isPlain) ? { body } : { body, html }
}

/** Disables `@room` mentions. */
const quiet = (text: string): string => text.replace(/@(?=room\b)/gi, '@\u200b')

const isPlain = (block: Block): boolean => block.type === 'words' && block.inner.every(({ type }) => type === 'text')

function ofBlock(block: Block): string {
  if (block.type === 'words') return block.inner.map(ofInline).join('').replace(/\n/g, '<br>')
  const language = block.language === '' ? '' : ` class="language-${escaped(block.language)}"`
  return `<pre><code${language}>${escaped(block.code)}\n</code></pre>`
}

function ofInline(inline: Inline): string {
  if (inline.type === 'text') return escaped(inline.text)
  if (inline.type === 'code') return `<code>${escaped(inline.text)}</code>`
  const inner = inline.inner.map(ofInline).join('')
  if (inline.type === 'link') return `<a href="${escaped(inline.url)}">${inner}</a>`
  return `<${TAGS[inline.type]}>${inner}</${TAGS[inline.type]}>`
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
}
