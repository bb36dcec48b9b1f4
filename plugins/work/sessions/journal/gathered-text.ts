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

/** Texts that are being gathered, by clock. */
const rounds = new WeakMap<object, Set<() => void>>()

/**
 * Calls `late` after {@link GATHER_MS}, or earlier together with texts of other sessions: their journals and readers then wake the
 * daemon and its threads once, not once for each session.
 */
function together(clock: Pick<Clock, 'timeout'>, late: () => void): { cancel(): void } {
  const round = rounds.get(clock) ?? new Set()
  if (!rounds.has(clock)) {
    rounds.set(clock, round)
    const write = () => {
      rounds.delete(clock)
      for (const one of round) one()
    }
    clock.timeout(GATHER_MS, write, { unref: true })
  }
  round.add(late)
  return { cancel: () => void round.delete(late) }
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
    if (this.#pieces === '') this.#wait(late => together(this.clock, late))
    this.#pieces += piece
    if (this.#pieces.length >= GATHERED) this.flush()
  }

  /** Writes the gathered text, except for a possible start of a secret, which waits for the next chunk. */
  flush(): void {
    const head = this.#head
    if (!head) return
    const text = this.#safe.push(this.#pieces)
    this.#pieces = ''
    if (this.#safe.held > 0) this.#wait(late => this.clock.timeout(HOLD_MS, late, { unref: true }))
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

  #wait(until: (late: () => void) => { cancel(): void }): void {
    this.#timer?.cancel()
    this.#timer = until(() => {
      try {
        if (this.#pieces === '') this.end()
        else this.flush()
      } catch (error) {
        this.failed(error)
      }
    })
  }
}
