import createPurify from 'dompurify'
import { Marked } from 'marked'

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string) => text.replace(/[&<>"]/g, character => ENTITIES[character] ?? character)

/** Markup in a text is shown as text: even in a document without scripts, the browser would report its handlers and styles. */
const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: { html: ({ text }) => escaped(text), image: ({ raw }) => escaped(raw) },
})
const purify = createPurify(window)

const TAGS = [
  ...[
    'p',
    'br',
    'hr',
    'h1',
    'h2',
    'h3',
    'h4',
    'h5',
    'h6',
    'blockquote',
    'pre',
    'code',
    'em',
    'strong',
    'del',
    's',
    'kbd',
  ],
  ...['ul', 'ol', 'li', 'a', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'sup', 'sub'],
]

purify.addHook('afterSanitizeAttributes', node => {
  if (node.nodeName !== 'A') return
  const href = node.getAttribute('href') ?? ''
  // An address of the console itself could be a view that does something; text of an agent leads elsewhere or nowhere.
  if (!/^(?:https?:|mailto:)/i.test(href)) node.removeAttribute('href')
  node.setAttribute('rel', 'noopener noreferrer')
  node.setAttribute('target', '_blank')
})

/**
 * Markdown as nodes that run and load nothing: a few elements of text and links are left, without images, styles, forms and SVG. They
 * are inserted as nodes, because text that is parsed twice can become other elements the second time.
 */
export function renderMarkdown(source: string): DocumentFragment {
  const html = marked.parse(source, { async: false })
  const fragment: DocumentFragment | null = purify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ['href', 'start', 'align'],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  })
  // Nothing is left of some texts.
  if (!fragment) return document.createDocumentFragment()
  // Wide blocks scroll by keyboard, too.
  for (const wide of fragment.querySelectorAll('pre, table')) wide.setAttribute('tabindex', '0')
  return fragment
}
