import type { ColorName } from '../../kernel/kit/commands/context.js'
import { textWidth } from './text.js'

/** Where the text of an agent goes, and how. */
export interface MarkdownOptions {
  readonly write: (text: string) => void
  /** Columns at which lines are broken, between words. */
  readonly width: () => number
  /** Shows emphasis by colours instead of its marks; without it the marks stay. */
  readonly paint?: (name: ColorName, text: string) => string
}

/** Columns of one word that are held back. */
const MAX_HELD = 1000

/** What may still become the mark of a heading, a list item, a quote or a fence. */
const undecided = /^[ \t]{0,12}(?:#{0,6}|[-*+>]|\d{1,3}[.)]?|`{0,2})$/
const mark = /^([ \t]{0,12})(#{1,6} |[-*+] |\d{1,3}[.)] |> |```)/

/**
 * Markdown as it comes, piece by piece: words are written once they are whole, lines broken between them, what is
 * emphasized is coloured. Headings, lists, bold, code and fences are known; everything else is text.
 */
export class MarkdownText {
  /** The begin of a line, until it is clear what that is. */
  #head: string | undefined = ''
  #word: { readonly style: ColorName | undefined; text: string }[] = []
  #spaces = 0
  #column = 0
  /** Columns by which the lines that follow in this block are indented. */
  #hang = 0
  #isFence = false
  #isHeading = false
  #isBold = false
  #isCode = false
  /** What is whole and not written yet. */
  #ready = ''
  /** A star that may be half of a mark. */
  #star = false

  constructor(private readonly options: MarkdownOptions) {}

  push(text: string): void {
    for (const char of text) this.#take(char)
    // A word that goes on with the next piece is held back, as long as it is one.
    if (this.#wordWidth() > MAX_HELD) this.#flush()
    this.#send()
  }

  /** Writes what was held back and ends an unfinished line. */
  end(): void {
    this.#finishLine()
    if (this.#column > 0) this.#ready += '\n'
    this.#column = 0
    this.#resetLine()
    this.#isFence = false
    this.#send()
  }

  /** In one piece, for what stands below the stream is drawn again with each. */
  #send(): void {
    if (this.#ready !== '') this.options.write(this.#ready)
    this.#ready = ''
  }

  #take(char: string): void {
    if (char === '\n') {
      this.#finishLine()
      this.#ready += '\n'
      this.#column = 0
      this.#resetLine()
      return
    }
    if (this.#head === undefined) {
      this.#inline(char)
      return
    }
    this.#head += char
    if (undecided.test(this.#head)) return
    const head = this.#head
    this.#head = undefined
    this.#begin(head)
  }

  /** What kind of line this is; what is no mark is text. */
  #begin(head: string): void {
    const found = mark.exec(head)
    const [, blanks = '', sign = ''] = found ?? []
    if (sign === '```') {
      this.#isFence = !this.#isFence
      for (const char of head) this.#plain(char, 'dim')
      return
    }
    if (this.#isFence || !found) {
      for (const char of head) this.#inline(char)
      return
    }
    const { paint } = this.options
    if (sign.startsWith('#')) {
      this.#isHeading = true
      if (!paint) for (const char of sign) this.#plain(char, undefined)
    } else {
      const bullet = paint && /^[-*+] $/.test(sign) ? '• ' : sign
      for (const char of blanks + bullet) this.#plain(char, sign === '> ' ? 'dim' : undefined)
      this.#hang = textWidth(blanks + bullet)
    }
    for (const char of head.slice(found[0].length)) this.#inline(char)
  }

  #inline(char: string): void {
    if (this.#isFence) {
      this.#plain(char, 'cyan')
      return
    }
    if (char === '*' && !this.#isCode) {
      if (!this.#star) {
        this.#star = true
        return
      }
      this.#star = false
      this.#isBold = !this.#isBold
      if (!this.options.paint) for (const one of '**') this.#plain(one, undefined)
      return
    }
    this.#releaseStar()
    if (char === '`') {
      this.#isCode = !this.#isCode
      if (this.options.paint) return
    }
    this.#plain(char, this.#style())
  }

  #releaseStar(): void {
    if (!this.#star) return
    this.#star = false
    this.#plain('*', this.#style())
  }

  #style(): ColorName | undefined {
    if (this.#isCode) return 'cyan'
    return this.#isBold || this.#isHeading ? 'bold' : undefined
  }

  #plain(char: string, style: ColorName | undefined): void {
    // Code keeps its columns: it is not broken.
    if (char === ' ' && !this.#isFence) {
      this.#flush()
      this.#spaces++
      return
    }
    const last = this.#word.at(-1)
    if (last && last.style === style) last.text += char
    else this.#word.push({ style, text: char })
  }

  #wordWidth(): number {
    return this.#word.reduce((sum, { text }) => sum + textWidth(text), 0)
  }

  #flush(): void {
    if (this.#word.length === 0) return
    const { width, paint } = this.options
    const wide = this.#wordWidth()
    if (!this.#isFence && this.#column > this.#hang && this.#column + this.#spaces + wide > width()) {
      this.#ready += `\n${' '.repeat(this.#hang)}`
      this.#column = this.#hang
      this.#spaces = 0
    }
    const text = this.#word.map(({ style, text }) => (style && paint ? paint(style, text) : text)).join('')
    this.#ready += ' '.repeat(this.#spaces) + text
    this.#column += this.#spaces + wide
    this.#spaces = 0
    this.#word = []
  }

  #finishLine(): void {
    const head = this.#head
    this.#head = undefined
    if (head) this.#begin(head)
    this.#releaseStar()
    this.#flush()
  }

  /** Emphasis does not go beyond its line: an agent that forgot to end it would colour all that follows. */
  #resetLine(): void {
    this.#head = ''
    this.#spaces = 0
    this.#hang = 0
    this.#isHeading = false
    this.#isBold = false
    this.#isCode = false
  }
}
