import type { ColorName } from '../../kernel/kit/commands/context.js'
import { tableIn, tableLines } from './markdown-table.js'
import { textWidth } from './text.js'

/** Target and form of an agent's text. */
export interface MarkdownOptions {
  readonly write: (text: string) => void
  /** Columns at which lines are broken, between words. */
  readonly width: () => number
  /** Renders emphasis with colours instead of marks; without it the marks stay. */
  readonly paint?: (name: ColorName, text: string) => string
}

/** Maximum held-back columns of one word. */
const MAX_HELD = 1000

/** Text that may still become the mark of a heading, a list item, a quote or a fence. */
const undecided = /^[ \t]{0,12}(?:#{0,6}|[-*+](?: (?:\[(?:[ xX]\]?)?)?)?|\d{1,3}[.)]?|`{0,2})$/
const mark = /^([ \t]{0,12})(#{1,6} |[-*+] \[[ xX]\] |[-*+] |\d{1,3}[.)] |> |```)/
/** Maximum held-back characters of an unfinished link or emphasis, and of a table. */
const mostMarked = 500
const mostTable = 100_000
const letter = /[\p{L}\p{N}_]/u

/** An unfinished link or emphasis, which may turn out to be plain text. */
type Held =
  | {
      readonly kind: 'link'
      stage: 'label' | 'between' | 'url'
      text: string
      label: string
      url: string
      depth: number
    }
  | { readonly kind: 'emphasis'; readonly sign: string; text: string; isClosing: boolean }

/**
 * Renders Markdown that arrives in chunks: words are written once they are complete, lines are wrapped between them, and emphasis
 * is coloured. Supports headings, lists, bold, italic, code, fences, links and tables; everything else is text. A table is written
 * when it is complete.
 */
export class MarkdownText {
  /** The beginning of a line, until its kind is known. */
  #head: string | undefined = ''
  #word: { readonly style: ColorName | undefined; text: string }[] = []
  #spaces = 0
  #column = 0
  /** Indent of the following lines of this block, in columns. */
  #hang = 0
  #isFence = false
  #isHeading = false
  #isBold = false
  #isCode = false
  /** Complete output that is not written yet. */
  #ready = ''
  /** A star that may be half of a mark. */
  #star = false
  #beforeStar = ''
  /** An unfinished line of a table, and the lines before it. */
  #row: string | undefined
  #table: string[] = []
  #tableSize = 0
  #held: Held | undefined
  /** The previous character of its line. */
  #before = ''

  constructor(private readonly options: MarkdownOptions) {}

  push(text: string): void {
    for (const char of text) this.#take(char)
    // An unfinished word is held back up to a maximum length.
    if (this.#wordWidth() > MAX_HELD) this.#flush()
    this.#send()
  }

  /** Writes the held-back text and ends an unfinished line. */
  end(): void {
    this.#finishLine()
    this.#endTable()
    if (this.#column > 0) this.#ready += '\n'
    this.#column = 0
    this.#resetLine()
    this.#isFence = false
    this.#send()
  }

  /** Writes in one piece, because each write redraws the lines below the stream. */
  #send(): void {
    if (this.#ready !== '') this.options.write(this.#ready)
    this.#ready = ''
  }

  #take(char: string): void {
    if (this.#row !== undefined) {
      if (char === '\n') this.#endRow()
      else {
        this.#row += char
        if (this.#row.length > mostTable) this.#endRow()
      }
      return
    }
    if (char === '\n') {
      if (this.#head === '') this.#endTable()
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

  /** Determines the kind of the line; without a mark it is text. */
  #begin(head: string): void {
    if (this.options.paint && !this.#isFence && /^[ \t]{0,3}\|/.test(head)) {
      this.#row = head
      return
    }
    this.#endTable()
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
      const bullet = paint ? bulletOf(sign) : sign
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
    const held = this.#held
    if (held && (held.kind === 'link' ? this.#link(held, char) : this.#emphasis(held, char))) return
    this.#marks(char)
    this.#before = char
  }

  #marks(char: string): void {
    const { paint } = this.options
    if (char === '*' && !this.#isCode) {
      if (!this.#star) {
        this.#star = true
        this.#beforeStar = this.#before
        return
      }
      this.#star = false
      this.#isBold = !this.#isBold
      if (!paint) for (const one of '**') this.#plain(one, undefined)
      return
    }
    if (this.#star && paint && !/[\s`[]/.test(char) && !letter.test(this.#beforeStar)) {
      this.#star = false
      this.#held = { kind: 'emphasis', sign: '*', text: char, isClosing: false }
      return
    }
    this.#releaseStar()
    if (paint && !this.#isCode && char === '[') {
      this.#held = { kind: 'link', stage: 'label', text: char, label: '', url: '', depth: 0 }
      return
    }
    if (paint && !this.#isCode && char === '_' && !letter.test(this.#before)) {
      this.#held = { kind: 'emphasis', sign: '_', text: '', isClosing: false }
      return
    }
    if (char === '`') {
      this.#isCode = !this.#isCode
      if (paint) return
    }
    this.#plain(char, this.#style())
  }

  /** Continues a link; false when the character does not belong to it. */
  #link(held: Extract<Held, { kind: 'link' }>, char: string): boolean {
    held.text += char
    if (held.stage === 'label' && char === ']') held.stage = 'between'
    else if (held.stage === 'label' && char !== '[') held.label += char
    else if (held.stage === 'between' && char === '(') held.stage = 'url'
    else if (held.stage === 'url' && !/\s/.test(char)) {
      if (char === '(') held.depth++
      if (char === ')' && held.depth-- === 0) {
        this.#held = undefined
        this.#linked(held)
        this.#before = char
        return true
      }
      held.url += char
    } else {
      held.text = held.text.slice(0, -char.length)
      this.#release()
      return false
    }
    if (held.text.length > mostMarked) this.#release()
    this.#before = char
    return true
  }

  /** Text and target of a link, both visible. */
  #linked({ label, url }: Extract<Held, { kind: 'link' }>): void {
    const shown = label === '' || label === url ? '' : label
    for (const char of shown) this.#plain(char, this.#style())
    if (url === '') return
    if (shown !== '') this.#plain(' ', undefined)
    for (const char of shown === '' ? url : `(${url})`) this.#plain(char, 'blue')
  }

  /** Continues emphasis; false when the character does not belong to it. */
  #emphasis(held: Extract<Held, { kind: 'emphasis' }>, char: string): boolean {
    if (held.isClosing) {
      const isOver = held.sign === '*' ? char !== '*' : !letter.test(char)
      if (isOver) {
        this.#held = undefined
        for (const one of held.text) this.#plain(one, 'italic')
        this.#before = held.sign
        return false
      }
      held.text += held.sign
      held.isClosing = false
    }
    if (char === held.sign && held.text !== '' && !/\s$/.test(held.text)) held.isClosing = true
    else if (char === '`' || char === '[' || (held.text === '' && /\s/.test(char))) {
      this.#release()
      return false
    } else held.text += char
    if (held.text.length > mostMarked) this.#release()
    this.#before = char
    return true
  }

  /** Writes buffered characters that turned out to be plain text. */
  #release(): void {
    const held = this.#held
    this.#held = undefined
    if (!held) return
    const text = held.kind === 'link' ? held.text : `${held.sign}${held.text}${held.isClosing ? held.sign : ''}`
    for (const char of text) this.#plain(char, this.#style())
    this.#before = text.slice(-1)
  }

  #endRow(): void {
    this.#table.push(this.#row ?? '')
    this.#row = undefined
    this.#head = ''
    this.#tableSize += this.#table.at(-1)?.length ?? 0
    if (this.#tableSize > mostTable) this.#endTable()
  }

  /** Writes the held-back table, or its lines as text if they are not a table. */
  #endTable(): void {
    const lines = this.#table
    const { paint, width } = this.options
    if (lines.length === 0) return
    this.#table = []
    this.#tableSize = 0
    const table = paint && tableIn(lines)
    if (table) {
      this.#ready += `${tableLines(table, width(), paint).join('\n')}\n`
      return
    }
    const head = this.#head
    for (const line of lines) {
      for (const char of line) this.#inline(char)
      this.#endText()
      this.#ready += '\n'
      this.#column = 0
      this.#resetLine()
    }
    this.#head = head
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
    // Code keeps its columns and is not wrapped.
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
    if (this.#row !== undefined) this.#endRow()
    else this.#endText()
  }

  /** Ends the text of this line. */
  #endText(): void {
    const held = this.#held
    if (held?.kind === 'emphasis' && held.isClosing) this.#emphasis(held, '\n')
    this.#release()
    this.#releaseStar()
    this.#flush()
  }

  /** Emphasis ends with its line: otherwise a missing end mark would colour all later text. */
  #resetLine(): void {
    this.#head = ''
    this.#spaces = 0
    this.#hang = 0
    this.#isHeading = false
    this.#isBold = false
    this.#isCode = false
    this.#before = ''
  }
}

/** The symbol shown for the marker of a list item. */
function bulletOf(sign: string): string {
  if (/^[-*+] \[/.test(sign)) return / \[ \]/.test(sign) ? '☐ ' : '☑ '
  return /^[-*+] $/.test(sign) ? '• ' : sign
}
