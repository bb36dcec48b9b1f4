import { createParser } from 'eventsource-parser'

/** One server-sent event; `data` is parsed from JSON where it is JSON, else the text. */
export interface ServerEvent {
  readonly id?: string
  readonly event?: string
  readonly data: unknown
}

/** Most characters of one frame; a longer one is not from our daemon. */
const FRAME_CHARACTERS = 64 * 1024 * 1024

/** Makes events of the text of a `text/event-stream`, whatever pieces it comes in. An event without data is none, as the standard says. */
export class SseParser {
  #complete: ServerEvent[] = []
  readonly #parser = createParser({
    maxBufferSize: FRAME_CHARACTERS,
    onEvent: ({ id, event, data }) =>
      this.#complete.push({
        ...(id !== undefined && { id }),
        ...(event !== undefined && { event }),
        data: parsed(data),
      }),
    onError: error => {
      // Lines that the standard does not know are skipped, as it demands.
      if (error.type === 'max-buffer-size-exceeded') throw new Error('a frame of the stream is too long')
    },
  })

  /** Hands over the next piece; returns the events that it completes. @throws Error when a frame is too long */
  push(text: string): ServerEvent[] {
    this.#complete = []
    this.#parser.feed(text)
    return this.#complete
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
