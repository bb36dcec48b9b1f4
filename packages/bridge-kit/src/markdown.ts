/** An inline element of Markdown. */
export type Inline =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'code'; readonly text: string }
  | { readonly type: 'bold' | 'italic' | 'strike'; readonly inner: readonly Inline[] }
  | { readonly type: 'link'; readonly url: string; readonly inner: readonly Inline[] }

/** Lines of text, or a fenced code block. */
export type Block =
  | { readonly type: 'words'; readonly inner: readonly Inline[] }
  | { readonly type: 'fence'; readonly code: string; readonly language: string }

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/
const INLINE = new RegExp(
  [
    '\\\\(?<escaped>[*_`~[\\]()#\\\\])',
    '(?<ticks>`+)(?<code>[^`\\n](?:[^\\n]*?[^`\\n])?)\\k<ticks>(?!`)',
    '\\*\\*(?=\\S)(?<bold>[^\\n]+?)(?<=\\S)\\*\\*',
    '(?<!\\w)__(?=\\S)(?<strong>[^\\n]+?)(?<=\\S)__(?!\\w)',
    '~~(?=\\S)(?<strike>[^\\n]+?)(?<=\\S)~~',
    '(?<![\\w*])\\*(?=[^\\s*])(?<italic>[^*\\n]+?)(?<=\\S)\\*(?![\\w*])',
    '(?<![\\w_])_(?=[^\\s_])(?<slanted>[^_\\n]+?)(?<=\\S)_(?![\\w_])',
    '\\[(?<label>[^\\]\\n]+)\\]\\((?<url>https?://[^\\s()<>]+)\\)',
    '^#{1,6}[ \\t]+(?<heading>[^\\n]+?)[ \\t]*$',
  ].join('|'),
  'gm',
)
/** Maximum nesting of styles; deeper markup stays text. */
const DEPTH = 4

/**
 * Parses the Markdown that chats can show: fences, code, bold, italic, strike, HTTP links, and headings as bold. Everything else
 * stays text. An unclosed fence extends to the end.
 */
export function markdown(text: string): readonly Block[] {
  const blocks: Block[] = []
  let words: string[] = []
  let fence: { readonly marker: string; readonly language: string; readonly lines: string[] } | undefined
  const flush = () => {
    if (words.length > 0) blocks.push({ type: 'words', inner: inlines(words.join('\n'), 0) })
    words = []
  }
  const close = () => {
    if (fence) blocks.push({ type: 'fence', code: fence.lines.join('\n'), language: fence.language })
    fence = undefined
  }
  for (const line of text.split('\n')) {
    const [, marker, info = ''] = FENCE.exec(line) ?? []
    if (fence) {
      if (marker?.startsWith(fence.marker) && info.trim() === '') close()
      else fence.lines.push(line)
    } else if (marker !== undefined) {
      flush()
      fence = { marker, language: /^[\w+#.-]{1,40}/.exec(info.trim())?.[0] ?? '', lines: [] }
    } else words.push(line)
  }
  close()
  flush()
  return blocks
}

function inlines(text: string, depth: number): readonly Inline[] {
  const found: Inline[] = []
  let at = 0
  let plain = ''
  const flush = () => {
    if (plain !== '') found.push({ type: 'text', text: plain })
    plain = ''
  }
  for (const match of depth > DEPTH ? [] : text.matchAll(INLINE)) {
    plain += text.slice(at, match.index)
    at = match.index + match[0].length
    const { escaped, ...groups } = match.groups as Readonly<Record<string, string | undefined>>
    if (escaped !== undefined) plain += escaped
    else {
      flush()
      found.push(inlineOf(groups, depth + 1))
    }
  }
  plain += text.slice(at)
  flush()
  return found
}

function inlineOf(groups: Readonly<Record<string, string | undefined>>, depth: number): Inline {
  const { code, label, url, bold, strong, heading, strike, italic, slanted } = groups
  if (code !== undefined) return { type: 'code', text: code }
  if (label !== undefined && url !== undefined) return { type: 'link', url, inner: inlines(label, depth) }
  const type = strike !== undefined ? 'strike' : (italic ?? slanted) !== undefined ? 'italic' : 'bold'
  return { type, inner: inlines(bold ?? strong ?? heading ?? strike ?? italic ?? slanted ?? '', depth) }
}
