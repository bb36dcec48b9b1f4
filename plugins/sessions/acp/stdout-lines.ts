/** A line that is longer than any message may be: what follows cannot be told apart any more. */
export class LineTooLong extends Error {
  override readonly name = 'LineTooLong'
  constructor(max: number) {
    super(`a line of more than ${max} bytes`)
  }
}

/** Splits bytes into lines; an unfinished line is kept for the next chunk. */
export class LineSplitter {
  #parts: Buffer[] = []
  #bytes = 0

  constructor(private readonly max: number) {}

  /** Complete lines of the bytes so far. Throws {@link LineTooLong}. */
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
      throw new LineTooLong(this.max)
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
