import { clip } from '../../bridge-kit/src/index.js'
/** Characters read of a body. */
export const LONGEST_BODY = 200_000

const BLOCKS = /^(?:p|div|br|tr|table|ul|ol|li|h[1-6]|hr|pre|section|article|header|footer|blockquote)$/
/** Elements that are dropped: invisible and quoted content. */
const SKIPPED = /^(?:head|style|script|title|template|svg|noscript|blockquote)$/
/** Containers of quoted content in common mail programs. */
const QUOTES =
  /\b(?:gmail_quote|yahoo_quoted|moz-cite-prefix|protonmail_quote)\b|\bid=["']?(?:divRplyFwdMsg|appendonsend)/i

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  ndash: '–',
  mdash: '—',
  hellip: '…',
  lsquo: '‘',
  rsquo: '’',
  ldquo: '“',
  rdquo: '”',
  euro: '€',
  copy: '©',
  auml: 'ä',
  ouml: 'ö',
  uuml: 'ü',
  Auml: 'Ä',
  Ouml: 'Ö',
  Uuml: 'Ü',
  szlig: 'ß',
  eacute: 'é',
}

/** The visible text of an HTML message without quotes: one line per block, links with their address. */
export function textOfHtml(html: string): string {
  const source = clip(html, LONGEST_BODY * 5)
  const written = new HtmlText()
  for (let at = 0; at < source.length && written.text.length < LONGEST_BODY; ) {
    const open = source.indexOf('<', at)
    written.text += shown(source.slice(at, open === -1 ? source.length : open))
    if (open === -1) break
    if (source.startsWith('<!--', open)) {
      at = after(source, '-->', open)
      continue
    }
    at = after(source, '>', open)
    const tag = source.slice(open, at)
    const [, slash = '', name = ''] = /^<(\/?)([a-z][a-z0-9]*)/i.exec(tag) ?? []
    const element = name.toLowerCase()
    if (slash !== '') written.closed(element)
    else if (QUOTES.test(tag)) break
    else if (SKIPPED.test(element)) {
      written.opened(element, tag)
      at = endOf(source, element, at)
    } else written.opened(element, tag)
  }
  return written.text
    .split('\n')
    .map(line => line.trim())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** Collects the text of HTML elements. */
class HtmlText {
  text = ''
  #link: string | undefined

  opened(element: string, tag: string): void {
    if (element === 'a') this.#link = /\bhref\s*=\s*["']?(https?:[^"'\s>]+)/i.exec(tag)?.[1]
    if (BLOCKS.test(element)) this.text += element === 'p' ? '\n\n' : '\n'
    if (element === 'li') this.text += '- '
  }

  closed(element: string): void {
    if (element === 'a' && this.#link !== undefined) {
      const target = decode(this.#link)
      if (!this.text.trimEnd().endsWith(target)) this.text += ` (${target})`
      this.#link = undefined
    }
    if (BLOCKS.test(element)) this.text += element === 'p' ? '\n\n' : '\n'
    if (/^t[dh]$/.test(element)) this.text += ' '
  }
}

const shown = (raw: string) => decode(raw).replace(/[ \t\r\n]+/g, ' ')

function after(source: string, what: string, from: number): number {
  const found = source.indexOf(what, from)
  return found === -1 ? source.length : found + what.length
}

/** The index after the end tag of a dropped element; elements of the same name may be nested. */
function endOf(source: string, element: string, from: number): number {
  const tags = new RegExp(`<(/?)${element}\\b[^>]*>`, 'gi')
  tags.lastIndex = from
  let depth = 1
  for (let tag = tags.exec(source); tag !== null; tag = tags.exec(source)) {
    depth += tag[1] === '' ? 1 : -1
    if (depth === 0) return tags.lastIndex
  }
  return source.length
}

function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? ENTITIES[name.toLowerCase()] ?? whole
    const point = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? '' : String.fromCodePoint(point)
  })
}

/** Lines that introduce a quote in common mail programs and languages. */
const ORIGINAL =
  /^\s*(?:-{2,}\s*(?:Original Message|Original-Nachricht|Ursprüngliche Nachricht|Message d'origine|Mensaje original|Forwarded message)\s*-{2,}|_{20,})\s*$/i
const ATTRIBUTION = /(?:wrote|writes|schrieb|a écrit|escribió|ha scritto|schreef|skrev)\b[^:]{0,200}:\s*$/i
/** Beginnings of such a line, for HTML mails whose quote was already removed. */
const ANNOUNCES = /^\s*(?:On|Am|Le|El|Il|Op|Den)\b.*\d/
const HEADER_BLOCK = /^\s*\*?(?:From|Von|De|Da):\*?\s.+/i
const HEADER_NEXT =
  /^\s*\*?(?:Sent|Date|To|Subject|Gesendet|An|Datum|Betreff|Envoyé|À|Objet|Enviado|Para|Asunto):\*?\s/i

/**
 * The text without trailing quotes and signature. Quotes between the sender's lines stay, because the lines refer to them. A text
 * that is only a quote stays as it is.
 */
export function withoutQuotes(text: string): string {
  const lines = clip(text, LONGEST_BODY).replace(/\r\n?/g, '\n').split('\n')
  const own = lines.slice(0, endOfOwn(lines))
  while (own.length > 0 && /^\s*(?:>|$)/.test(own.at(-1) ?? '')) own.pop()
  const signature = own.findIndex(line => /^-- ?$/.test(line))
  const kept = (signature === -1 ? own : own.slice(0, signature)).join('\n').trim()
  return kept === '' ? lines.join('\n').trim() : kept
}

function endOfOwn(lines: readonly string[]): number {
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] as string
    if (ORIGINAL.test(line)) return at
    if (HEADER_BLOCK.test(line) && lines.slice(at + 1, at + 4).filter(next => HEADER_NEXT.test(next)).length >= 2)
      return at
    // An attribution may span two lines. It counts only if everything after it is quoted.
    for (const length of [1, 2]) {
      const joined = lines.slice(at, at + length).join(' ')
      if (ATTRIBUTION.test(joined) && onlyQuoted(lines, at + length, ANNOUNCES.test(joined) ? 0 : 1)) return at
    }
  }
  return lines.length
}

/** Whether the rest is only quotes, blank lines and a signature, with at least `least` quoted lines. */
function onlyQuoted(lines: readonly string[], from: number, least: number): boolean {
  let quotes = 0
  for (let at = from; at < lines.length; at++) {
    const line = lines[at] as string
    if (/^-- ?$/.test(line)) break
    if (/^\s*>/.test(line)) quotes++
    else if (line.trim() !== '') return false
  }
  return quotes >= least
}
