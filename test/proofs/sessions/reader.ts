import { type ClientRequest, request } from 'node:http'
import { SseParser } from '../../../client/sse.js'

/** A stored event as a stream sent it, or a frame of the transcript. */
export interface SeenFrame {
  readonly id?: string | undefined
  readonly event?: string | undefined
  // biome-ignore lint/suspicious/noExplicitAny: the payload of any frame
  readonly data: any
}

/** Reads a stream until it ends, or the daemon does. */
export class Reader {
  readonly frames: SeenFrame[] = []
  #wake: () => void = () => {}
  #over = false
  readonly #request: ClientRequest

  constructor(socketPath: string, path: string, lastEventId?: string) {
    const parser = new SseParser()
    const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    const end = () => {
      this.#over = true
      this.#wake()
    }
    this.#request = request({ socketPath, path, headers, agent: false }, response => {
      response.setEncoding('utf8').on('data', (text: string) => {
        this.frames.push(...parser.push(text))
        this.#wake()
      })
      response.on('close', end).on('error', end)
    })
    this.#request.on('error', end).end()
  }

  /** Resolves when there are so many frames, or nothing more comes. */
  async has(count: number): Promise<void> {
    while (this.frames.length < count && !this.#over) {
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }

  close(): void {
    this.#request.destroy()
  }
}
