/** What a piece of an answer is made of. */
export interface Split {
  readonly thought: string
  readonly text: string
}

const OPEN = /^\s*<think(?:ing)?>/
const CLOSE = /<\/think(?:ing)?>\s*/
/** No tag is longer. */
const LONGEST = '</thinking>'.length

/**
 * Takes thoughts out of a streamed answer that begins with `<think>`: endpoints without a parser for the thoughts of their model send
 * them as text. A tag may come in several pieces, and one in the middle of an answer is a part of it.
 */
export class ThoughtTags {
  #state: 'beginning' | 'thinking' | 'closed' | 'answering' = 'beginning'
  #hasThought = false
  /** Text that may be the beginning of a tag. */
  #held = ''

  take(delta: string): Split {
    this.#held += delta
    let thought = ''
    if (this.#state === 'beginning') {
      const open = OPEN.exec(this.#held)
      if (open) {
        this.#held = this.#held.slice(open[0].length)
        this.#state = 'thinking'
      } else if (!mayOpen(this.#held)) this.#state = 'answering'
      else return { thought, text: '' }
    }
    if (this.#state === 'thinking') {
      // A line break behind the tag belongs to it.
      if (!this.#hasThought) this.#held = this.#held.replace(/^\n/, '')
      this.#hasThought ||= this.#held !== ''
      const close = CLOSE.exec(this.#held)
      // The last characters may be the beginning of the tag that closes.
      const bracket = this.#held.lastIndexOf('<')
      const isOpen = bracket >= 0 && this.#held.length - bracket < LONGEST
      const upTo = close ? close.index : isOpen ? bracket : this.#held.length
      thought = this.#held.slice(0, upTo)
      this.#held = this.#held.slice(close ? upTo + close[0].length : upTo)
      if (!close) return { thought, text: '' }
      this.#state = 'closed'
    }
    if (this.#state === 'closed') {
      // Blank lines between the thoughts and the answer belong to neither.
      this.#held = this.#held.trimStart()
      if (this.#held === '') return { thought, text: '' }
      this.#state = 'answering'
    }
    const text = this.#held
    this.#held = ''
    return { thought, text }
  }

  /** What is left when the answer is over. */
  end(): Split {
    const held = this.#held
    this.#held = ''
    return this.#state === 'thinking' ? { thought: held, text: '' } : { thought: '', text: held }
  }
}

/** Whether more text could make this the tag that opens. */
const mayOpen = (text: string): boolean =>
  ['<think>', '<thinking>'].some(tag => tag.startsWith(text.trimStart())) && text.length < 64
