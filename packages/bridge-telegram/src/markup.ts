import type { MessageEntity } from 'grammy/types'
import { type Inline, markdown } from '../../bridge-kit/src/index.js'

/** Text with Telegram's style entities; offsets in UTF-16 units. */
export interface Styled {
  readonly text: string
  readonly entities: readonly MessageEntity[]
}

/** A name that Telegram would treat as a mention. */
const MENTION = /(?<![\w@/.-])@[A-Za-z]\w{3,31}/g
/** Maximum entities; Telegram ignores further ones. */
const MOST = 100

/** Converts Markdown to Telegram entities. Mentions become code, so that an agent notifies nobody. */
export function styled(text: string): Styled {
  const target = new Target()
  for (const block of markdown(text)) {
    if (block.type === 'words') target.addAll(block.inner)
    else target.pre(block.code, block.language)
    target.add('\n')
  }
  return target.done()
}

/** The plain text with only its mentions disabled. */
export function unstyled(text: string): Styled {
  const target = new Target()
  target.addText(text)
  return target.done()
}

class Target {
  #text = ''
  readonly #entities: MessageEntity[] = []

  add(text: string): void {
    this.#text += text
  }

  addText(text: string): void {
    const at = this.#text.length
    this.#text += text
    for (const { index, 0: name } of text.matchAll(MENTION))
      this.#entities.push({ type: 'code', offset: at + index, length: name.length })
  }

  addAll(inner: readonly Inline[]): void {
    for (const one of inner) this.#addInline(one)
  }

  pre(code: string, language: string): void {
    const offset = this.#text.length
    this.#text += code
    const named = language === '' ? {} : { language }
    if (code.trim() !== '') this.#entities.push({ type: 'pre', offset, length: code.length, ...named })
  }

  done(): Styled {
    const text = this.#text.trimEnd()
    const inside = this.#entities.flatMap(entity => {
      const length = Math.min(entity.length, text.length - entity.offset)
      return length > 0 ? [{ ...entity, length }] : []
    })
    return { text, entities: inside.sort((a, b) => a.offset - b.offset || b.length - a.length).slice(0, MOST) }
  }

  #addInline(one: Inline): void {
    if (one.type === 'text') {
      this.addText(one.text)
      return
    }
    const offset = this.#text.length
    if (one.type === 'code') this.#text += one.text
    else this.addAll(one.inner)
    const length = this.#text.length - offset
    if (length === 0) return
    if (one.type === 'link') this.#entities.push({ type: 'text_link', offset, length, url: one.url })
    else this.#entities.push({ type: one.type === 'strike' ? 'strikethrough' : one.type, offset, length })
  }
}
