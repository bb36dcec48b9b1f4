import type { Readable } from 'node:stream'
import { TokenBucket } from '../../../../kernel/kit/rate.js'
import { onBehalfOf, systemClock, turn } from '../../../../kernel/plugin.js'

/** Lines that one program has handled in a turn of the event loop, and milliseconds after which its turn ends earlier. */
const LINES_A_TURN = 8
const MS_A_TURN = 5
/** Lines of any kind, at once and each second: a protocol between two programs stays far below. */
const MOST_LINES = { burst: 200_000, perSecond: 2_000 }
/** Lines without a message that a second forgives: a server may write a log there all day. */
const JUNK_A_SECOND = 1

const clock = systemClock()

/** What the lines of a program are for, and what it may do with them. */
export interface LineReader {
  /** Whose process it is: what its lines cost is attributed to it. */
  readonly owner: string
  /** Bytes of the longest line. */
  readonly lineBytes: number
  /** Lines in a row that are no message before the reading ends; one more is allowed each second. */
  readonly junk: number
  /** Handles a line without its line break; false when it is no message. A throw ends the reading. */
  take(line: string): boolean
  /** The last line counts although its line break is missing; else it is half of one that was cut off. */
  readonly unfinished?: true
  /** A piece of output came, of whatever length. */
  activity?(): void
  /** Waits while what was taken is not digested; nothing is read meanwhile, so the pipe fills and the program waits. */
  room?(): Promise<void> | undefined
}

/**
 * Hands the lines of a program to a reader until its output ends, a few in each turn of the event loop: programs that flood take
 * turns with each other and with everything else that the daemon does, and are read no faster than that.
 * Rejects with an Error that names the limit when a line is too long, too many in a row are no message, or too many come at all.
 */
export async function readLines(stream: Readable, reader: LineReader): Promise<void> {
  const splitter = new LineSplitter(reader.lineBytes)
  const pace = new Pace(reader.junk)
  const slice = new Slice()
  const pass = (line: string) => pace.count(onBehalfOf(reader.owner, () => reader.take(line)))
  for await (const chunk of stream) {
    reader.activity?.()
    for (const line of splitter.push(chunk as Buffer)) {
      pass(line)
      // Whoever waits for this message goes on before the next one is looked at.
      await undefined
      if (!slice.isOver()) continue
      await nextTurn()
      slice.begin()
    }
    await reader.room?.()
  }
  const rest = splitter.rest()
  if (reader.unfinished && rest !== '') pass(rest)
}

/** How many lines came, and how many of them in a row were no message. */
class Pace {
  readonly #lines = new TokenBucket(MOST_LINES, clock)
  #junk: TokenBucket | undefined

  constructor(private readonly most: number) {}

  /** Counts a line. @throws Error naming the limit that it is beyond */
  count(isMessage: boolean): void {
    const { burst, perSecond } = MOST_LINES
    if (!this.#lines.tryTake(1)) throw new Error(`it floods: more than ${burst} lines, and ${perSecond} a second since`)
    if (isMessage) {
      this.#junk = undefined
      return
    }
    this.#junk ??= new TokenBucket({ burst: this.most, perSecond: JUNK_A_SECOND }, clock)
    if (!this.#junk.tryTake(1)) throw new Error(`more than ${this.most} lines in a row that are no message`)
  }
}

/** What one program may do before others have their turn. */
class Slice {
  #lines = 0
  #end = clock.monotonic() + MS_A_TURN

  /** Whether the line that was just handled was the last one of this turn. */
  isOver(): boolean {
    return ++this.#lines >= LINES_A_TURN || clock.monotonic() >= this.#end
  }

  /** The next turn has come: time counts from here. */
  begin(): void {
    this.#lines = 0
    this.#end = clock.monotonic() + MS_A_TURN
  }
}

/** Programs with lines left go on one after the other, one in each turn of the event loop. */
let last = Promise.resolve()

function nextTurn(): Promise<void> {
  last = last.then(turn)
  return last
}

/** Splits bytes into lines; an unfinished line is kept for the next chunk. */
class LineSplitter {
  #parts: Buffer[] = []
  #bytes = 0

  constructor(private readonly max: number) {}

  /** Complete lines of the bytes so far. Throws when one is too long: what follows cannot be told apart any more. */
  *push(chunk: Buffer): Generator<string> {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      this.#keep(chunk.subarray(start, end))
      start = end + 1
      yield this.#take()
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start))
  }

  /** What stands after the last line break. */
  rest(): string {
    return this.#take()
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length
    if (this.#bytes > this.max) {
      this.#parts = []
      this.#bytes = 0
      throw new Error(`a line of more than ${this.max} bytes`)
    }
    this.#parts.push(part)
  }

  #take(): string {
    const line = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts)
    this.#parts = []
    this.#bytes = 0
    return line.toString('utf8').trim()
  }
}
