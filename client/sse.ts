/** One server-sent event; `data` is parsed from JSON where it is JSON, else the text. */
export interface ServerEvent {
  readonly id?: string
  readonly event?: string
  readonly data: unknown
}

/** Most characters of one frame; a longer one is not from our daemon. */
const frameLimit = 64 * 1024 * 1024

/** Makes events of the text of a `text/event-stream`, whatever pieces it comes in. */
export class SseParser {
  #rest = ''
  #id: string | undefined
  #event: string | undefined
  #data: string[] = []

  /** Hands over the next piece; returns the events that it completes. */
  push(text: string): ServerEvent[] {
    this.#rest += text
    if (this.#rest.length > frameLimit) throw new Error('a frame of the stream is too long')
    const found: ServerEvent[] = []
    // A \r at the end may be half of \r\n: it waits for the next piece.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/)
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line === '') this.#finish(found)
      else this.#field(line)
    }
    return found
  }

  #field(line: string): void {
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'data') this.#data.push(value)
    else if (name === 'id') this.#id = value
    else if (name === 'event') this.#event = value
  }

  #finish(found: ServerEvent[]): void {
    if (this.#data.length > 0 || this.#event !== undefined) {
      found.push({
        ...(this.#id !== undefined && { id: this.#id }),
        ...(this.#event !== undefined && { event: this.#event }),
        data: parsed(this.#data.join('\n')),
      })
    }
    this.#id = undefined
    this.#event = undefined
    this.#data = []
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
