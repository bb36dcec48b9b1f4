import type { Readable } from 'node:stream'
import { TokenBucket } from '../../../../kernel/kit/rate.js'
import { onBehalfOf, systemClock, turn } from '../../../../kernel/plugin.js'

/** Maximum lines of one program in a turn of the event loop, and milliseconds after which its turn ends earlier. */
const LINES_A_TURN = 8
const MS_A_TURN = 5
/** Maximum rate of lines; a protocol between two programs stays far below. */
const MOST_LINES = { burst: 200_000, perSecond: 2_000 }
/** Invalid lines per second that are tolerated: a server may write its log to the same output. */
const JUNK_A_SECOND = 1

const clock = systemClock()

/** The receiver of a program's lines, with their limits. */
export interface LineReader {
  /** Owner of the process, to which the cost of its lines is attributed. */
  readonly owner: string
  /** Maximum bytes of a line. */
  readonly lineBytes: number
  /** Consecutive lines without a message that end the reading; one more is allowed each second. */
  readonly junk: number
  /** Handles a line without its line break; false when it is not a message. A throw ends the reading. */
  take(line: string): boolean
  /** Accepts a last line without a line break; by default it counts as cut off and is dropped. */
  readonly unfinished?: true
  /** Called for each piece of output, of any length. */
  activity?(): void
  /** A promise delays the next read until earlier lines are processed, so that the pipe fills and the program waits. */
  room?(): Promise<void> | undefined
}

/**
 * Passes the lines of a program to a reader until its output ends, a few in each turn of the event loop: flooding programs
 * alternate with each other and with the daemon's other work, and are read no faster than that. Rejects with an Error that names
 * the limit for a line that is too long, too many consecutive lines without a message, or too many lines.
 */
export async function readLines(stream: Readable, reader: LineReader): Promise<void> {
  const splitter = new LineSplitter(reader.lineBytes)
  const pace = new Pace(reader.junk)
  // The share of this program in a turn of the event loop.
  let [lines, end] = [0, clock.monotonic() + MS_A_TURN]
  const pass = (line: string) => pace.count(onBehalfOf(reader.owner, () => reader.take(line)))
  for await (const chunk of stream) {
    reader.activity?.()
    for (const line of splitter.push(chunk as Buffer)) {
      pass(line)
      // Lets a waiting caller handle this message before the next line is read.
      await undefined
      if (++lines < LINES_A_TURN && clock.monotonic() < end) continue
      await nextTurn()
      lines = 0
      end = clock.monotonic() + MS_A_TURN
    }
    await reader.room?.()
  }
  const rest = splitter.rest()
  if (reader.unfinished && rest !== '') pass(rest)
}

/** Counts lines, and consecutive lines without a message. */
class Pace {
  readonly #lines = new TokenBucket(MOST_LINES, clock)
  #junk: TokenBucket | undefined

  constructor(private readonly most: number) {}

  /** Counts a line. @throws Error naming the exceeded limit */
  count(isMessage: boolean): void {
    const { burst, perSecond } = MOST_LINES
    if (!this.#lines.tryTake(1))
      throw new Error(`it floods: a burst of over ${burst} lines, and ${perSecond} per second since`)
    if (isMessage) {
      this.#junk = undefined
      return
    }
    this.#junk ??= new TokenBucket({ burst: this.most, perSecond: JUNK_A_SECOND }, clock)
    if (!this.#junk.tryTake(1)) throw new Error(`more than ${this.most} lines in a row that are not messages`)
  }
}

/** Programs with further lines continue one after the other, one in each turn of the event loop. */
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

  /** Complete lines so far. Throws for one that is too long, since the following lines cannot be separated. */
  *push(chunk: Buffer): Generator<string> {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      this.#keep(chunk.subarray(start, end))
      start = end + 1
      yield this.#take()
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start))
  }

  /** The text after the last line break. */
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
