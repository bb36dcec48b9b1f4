import type { Clock, Redact, RedactedStream } from '../../../../kernel/plugin.js'
import type { EventContent } from '../../acp/api.js'

/** Milliseconds for which chunks of one text are gathered. */
const GATHER_MS = 50
/** Milliseconds for which a possible start of a secret is held back when nothing follows. */
const HOLD_MS = 1000
/** Characters that are written without waiting for more. */
const GATHERED = 16 * 1024

/** The common members of the chunks of one text. */
export interface TextHead {
  readonly type: 'agent_message' | 'thought'
  readonly turnId: string
  readonly content: EventContent
}

/** Merges many chunks into few texts, and finds secrets that are split between chunks. */
export class GatheredText {
  #head: TextHead | undefined
  #safe: RedactedStream
  #pieces = ''
  #timer: { cancel(): void } | undefined

  /** @param failed receives errors of `write` that occur in a timer, where no caller can catch them */
  constructor(
    private readonly clock: Pick<Clock, 'timeout'>,
    private readonly redact: Pick<Redact, 'stream'>,
    private readonly write: (head: TextHead, text: string) => void,
    private readonly failed: (error: unknown) => void,
  ) {
    this.#safe = redact.stream()
  }

  /** Adds a chunk to the current text, or begins another text. */
  add(head: TextHead, piece: string): void {
    if (this.#head && (this.#head.type !== head.type || this.#head.turnId !== head.turnId)) this.end()
    if (!this.#head) {
      this.#head = head
      this.#safe = this.redact.stream()
    }
    if (this.#pieces === '') this.#writeIn(GATHER_MS)
    this.#pieces += piece
    if (this.#pieces.length >= GATHERED) this.flush()
  }

  /** Writes the gathered text, except for a possible start of a secret, which waits for the next chunk. */
  flush(): void {
    const head = this.#head
    if (!head) return
    const text = this.#safe.push(this.#pieces)
    this.#pieces = ''
    if (this.#safe.held > 0) this.#writeIn(HOLD_MS)
    else this.#forget()
    if (text !== '') this.write(head, text)
  }

  /** Ends the text and writes the rest of it. */
  end(): void {
    const head = this.#head
    if (!head) return
    const text = this.#safe.push(this.#pieces) + this.#safe.end()
    this.#forget()
    if (text !== '') this.write(head, text)
  }

  #forget(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#head = undefined
    this.#pieces = ''
  }

  #writeIn(ms: number): void {
    this.#timer?.cancel()
    const late = () => {
      try {
        if (this.#pieces === '') this.end()
        else this.flush()
      } catch (error) {
        this.failed(error)
      }
    }
    this.#timer = this.clock.timeout(ms, late, { unref: true })
  }
}
