import type { Clock, Redact, RedactedStream } from '../../../../kernel/plugin.js'
import type { EventContent } from '../events.js'

/** Milliseconds that pieces of one text are gathered for. */
const GATHER_MS = 50
/** Milliseconds that the beginning of what may become a secret is held back for when nothing follows. */
const HOLD_MS = 1000
/** Characters that are written without waiting for more. */
const GATHERED = 16 * 1024

/** What pieces of one text have in common. */
export interface TextHead {
  readonly type: 'agent_message' | 'thought'
  readonly turnId: string
  readonly content: EventContent
}

/** Makes few texts of many pieces, and finds secrets that are split between pieces. */
export class GatheredText {
  #head: TextHead | undefined
  #safe: RedactedStream
  #pieces = ''
  #timer: { cancel(): void } | undefined

  /** @param failed is told what `write` throws when no caller is there to catch it */
  constructor(
    private readonly clock: Pick<Clock, 'timeout'>,
    private readonly redact: Pick<Redact, 'stream'>,
    private readonly write: (head: TextHead, text: string) => void,
    private readonly failed: (error: unknown) => void,
  ) {
    this.#safe = redact.stream()
  }

  /** A piece of the text that is being gathered, or the first one of another. */
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

  /** Writes what is gathered but for the beginning of what may become a secret: that waits for what follows. */
  flush(): void {
    const head = this.#head
    if (!head) return
    const text = this.#safe.push(this.#pieces)
    this.#pieces = ''
    if (this.#safe.held > 0) this.#writeIn(HOLD_MS)
    else this.#forget()
    if (text !== '') this.write(head, text)
  }

  /** The text is over: writes all that is left of it. */
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
