import type { Key } from 'node:readline'
import { cleanText } from './text.js'

/** Maximum characters of one paste. */
const mostPasted = 1024 * 1024
/** A longer paste is shown by its size only. */
const shownLines = 8
const shownCharacters = 800
/** Pastes remembered for lines in the history. */
const mostRemembered = 20

/** Pasted text, marked by the terminal: line breaks do not submit, and a long paste is shown by its size. */
export class Pastes {
  /** Received part of an unfinished paste. */
  #open: string | undefined
  readonly #texts = new Map<string, string>()
  #count = 0

  /** Processes a key: returns `more` inside a paste, the whole text at its end, undefined outside. */
  take({ name, sequence = '' }: Key): string | undefined {
    if (name === 'paste-start') this.#open = ''
    else if (this.#open === undefined) return undefined
    else if (name === 'paste-end') {
      const text = this.#open
      this.#open = undefined
      return cleanText(text.replace(/\r\n?/g, '\n'))
    } else if (this.#open.length < mostPasted) this.#open += sequence
    return 'more'
  }

  /** The text shown in the line. */
  shown(text: string): string {
    const lines = text.split('\n').length
    if (lines <= shownLines && text.length <= shownCharacters) return text
    const mark = `[pasted ${lines > 1 ? `${lines} lines` : `${text.length} characters`} #${++this.#count}]`
    this.#texts.set(mark, text)
    for (const oldest of this.#texts.keys()) if (this.#texts.size > mostRemembered) this.#texts.delete(oldest)
    return mark
  }

  /** The line with each placeholder replaced by its paste. */
  whole(line: string): string {
    return line.replace(/\[pasted \d+ (?:lines|characters) #\d+\]/g, mark => this.#texts.get(mark) ?? mark)
  }
}
