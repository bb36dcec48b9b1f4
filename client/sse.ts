import { createParser } from 'eventsource-parser'

/** One server-sent event; `data` is parsed from JSON if possible, else text. */
export interface ServerEvent {
  readonly id?: string
  readonly event?: string
  readonly data: unknown
}

/** Maximum characters of one frame; the daemon sends no longer ones. */
const FRAME_CHARACTERS = 64 * 1024 * 1024

/** Parses a `text/event-stream` that arrives in arbitrary pieces. Events without data are dropped, as the standard requires. */
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
      // Unknown lines are skipped, as the standard requires.
      if (error.type === 'max-buffer-size-exceeded') throw new Error('a frame of the stream is too long')
    },
  })

  /** Parses the next piece; returns the events that it completes. @throws Error when a frame is too long */
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
