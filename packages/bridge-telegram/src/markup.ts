import type { MessageEntity } from 'grammy/types'

/** A text as Telegram shows it: the words, and where in them, in UTF-16 units, which style is. */
export interface Styled {
  readonly text: string
  readonly entities: readonly MessageEntity[]
}

type Style = 'bold' | 'italic' | 'strikethrough' | 'code'

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/
/** A name that Telegram would make a mention of. */
const MENTION = '(?<![\\w@/.-])@[A-Za-z]\\w{3,31}'
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
    `(?<mention>${MENTION})`,
  ].join('|'),
  'gm',
)
const DEPTH = 4

/** A text of Markdown as Telegram takes it. A mention is shown as code, so that an agent notifies no person by a name. */
export function styled(markdown: string): Styled {
  const target = new Target()
  let words: string[] = []
  let fence: { readonly marker: string; readonly language: string; readonly lines: string[] } | undefined
  const flush = () => {
    if (words.length > 0) inline(target, `${words.join('\n')}\n`, 0)
    words = []
  }
  const close = () => {
    if (fence) target.pre(fence.lines.join('\n'), fence.language)
    fence = undefined
  }
  for (const line of markdown.split('\n')) {
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
  return target.done()
}

/** A text as it is, with nothing but the mentions taken out of force. */
export function unstyled(text: string): Styled {
  const entities = [...text.matchAll(new RegExp(MENTION, 'g'))].map(({ index, 0: name }): MessageEntity => {
    return { type: 'code', offset: index, length: name.length }
  })
  return { text, entities: entities.slice(0, MOST) }
}

/** Telegram ignores further ones. */
const MOST = 100

class Target {
  #text = ''
  readonly #entities: MessageEntity[] = []

  get length(): number {
    return this.#text.length
  }

  add(text: string): void {
    this.#text += text
  }

  /** Gives what was added since the offset a style. */
  style(type: Style, offset: number): void {
    if (this.length > offset) this.#entities.push({ type, offset, length: this.length - offset })
  }

  link(url: string, offset: number): void {
    if (this.length > offset) this.#entities.push({ type: 'text_link', offset, length: this.length - offset, url })
  }

  pre(code: string, language: string): void {
    const offset = this.length
    this.#text += code
    const named = language === '' ? {} : { language }
    if (code.trim() !== '') this.#entities.push({ type: 'pre', offset, length: code.length, ...named })
    this.#text += '\n'
  }

  done(): Styled {
    const text = this.#text.trimEnd()
    const inside = this.#entities.flatMap(entity => {
      const length = Math.min(entity.length, text.length - entity.offset)
      return length > 0 ? [{ ...entity, length }] : []
    })
    return { text, entities: inside.sort((a, b) => a.offset - b.offset || b.length - a.length).slice(0, MOST) }
  }
}

function inline(target: Target, text: string, depth: number): void {
  let at = 0
  for (const found of depth > DEPTH ? [] : text.matchAll(INLINE)) {
    target.add(text.slice(at, found.index))
    at = found.index + found[0].length
    const offset = target.length
    const { escaped, code, mention, label, url, ...nested } = found.groups as Readonly<
      Record<string, string | undefined>
    >
    if (escaped !== undefined) target.add(escaped)
    else if (code !== undefined || mention !== undefined) {
      target.add(code ?? mention ?? '')
      target.style('code', offset)
    } else if (label !== undefined && url !== undefined) {
      inline(target, label, depth + 1)
      target.link(url, offset)
    } else {
      const { bold, strong, heading, strike, italic, slanted } = nested
      inline(target, bold ?? strong ?? heading ?? strike ?? italic ?? slanted ?? '', depth + 1)
      target.style(strike ? 'strikethrough' : italic || slanted ? 'italic' : 'bold', offset)
    }
  }
  target.add(text.slice(at))
}
