/** The thought and the text in one piece of an answer. */
export interface Split {
  readonly thought: string
  readonly text: string
}

const OPEN = /^\s*<think(?:ing)?>/
const CLOSE = /<\/think(?:ing)?>\s*/
/** The longest tag. */
const LONGEST = '</thinking>'.length

/**
 * Extracts thoughts from a streamed answer that begins with `<think>`: endpoints without a reasoning parser send them as text. A
 * tag may be split over pieces; a tag in the middle of an answer is text.
 */
export class ThoughtTags {
  #state: 'beginning' | 'thinking' | 'closed' | 'answering' = 'beginning'
  #hasThought = false
  /** Text that may be the start of a tag. */
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
      // The line break after the tag belongs to the tag.
      if (!this.#hasThought) this.#held = this.#held.replace(/^\n/, '')
      this.#hasThought ||= this.#held !== ''
      const close = CLOSE.exec(this.#held)
      // The last characters may be the start of the closing tag.
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

  /** The held text, at the end of the answer. */
  end(): Split {
    const held = this.#held
    this.#held = ''
    return this.#state === 'thinking' ? { thought: held, text: '' } : { thought: '', text: held }
  }
}

/** Whether more text could complete an opening tag. */
const mayOpen = (text: string): boolean =>
  ['<think>', '<thinking>'].some(tag => tag.startsWith(text.trimStart())) && text.length < 64
