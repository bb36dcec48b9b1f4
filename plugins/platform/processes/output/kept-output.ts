import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

/** Receives the bytes of a stream, and keeps a bounded part of them. */
interface Keeper {
  push(chunk: Buffer): void
}

/** Reads all of a program's output, so that the program does not block, and keeps a part of it. */
export function keep<K extends Keeper>(stream: Readable, keeper: K): K {
  stream.on('data', (chunk: Buffer) => keeper.push(chunk))
  return keeper
}

/** A part of an output, up to a limit. */
class Kept {
  protected readonly chunks: Buffer[] = []
  protected bytes = 0
  /** Whether there was more. */
  truncated = false

  /** @param limit bytes that are kept */
  constructor(protected readonly limit: number) {}
}

/** The beginning of an output up to a limit, in whole characters. */
export class OutputStart extends Kept implements Keeper {
  push(chunk: Buffer): void {
    const room = this.limit - this.bytes
    if (chunk.length > room) this.truncated = true
    if (room <= 0) return
    // A copy: a slice would keep the whole chunk in memory.
    const kept = chunk.length > room ? Buffer.from(chunk.subarray(0, room)) : chunk
    this.chunks.push(kept)
    this.bytes += kept.length
  }

  text(): string {
    const all = Buffer.concat(this.chunks)
    return this.truncated ? new StringDecoder('utf8').write(all) : all.toString('utf8')
  }
}

/** The end of an unbounded output: bytes beyond the limit are dropped at the front, at a character boundary. */
export class OutputEnd extends Kept implements Keeper {
  push(chunk: Buffer): void {
    this.chunks.push(chunk)
    this.bytes += chunk.length
    while (this.bytes > this.limit) {
      const first = this.chunks[0]!
      const excess = this.bytes - this.limit
      this.truncated = true
      if (first.length <= excess) {
        this.chunks.shift()
        this.bytes -= first.length
      } else {
        this.chunks[0] = first.subarray(excess)
        this.bytes -= excess
      }
    }
    // Many small chunks cost more than their bytes.
    if (this.chunks.length > 1024) this.chunks.splice(0, this.chunks.length, Buffer.concat(this.chunks))
  }

  /** Like {@link text}, without the end of a line whose beginning is gone: the rest of a cut secret would not be recognized. */
  lines(): string {
    const text = this.text()
    return this.truncated ? text.slice(text.indexOf('\n') + 1 || text.length) : text
  }

  text(): string {
    const all = Buffer.concat(this.chunks)
    let start = 0
    if (this.truncated) while (start < 4 && start < all.length && (all[start]! & 0xc0) === 0x80) start++
    return all.toString('utf8', start)
  }
}
