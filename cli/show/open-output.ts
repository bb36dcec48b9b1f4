import { fstatSync, writeSync } from 'node:fs'
import type { Sink } from '../io.js'

/** Standard output; without Node's streams unless it is a terminal. */
export function openOutput(): Sink {
  const stat = fstatSync(1)
  if (!stat.isFIFO() && !stat.isFile()) return process.stdout.on('error', cannotWrite)
  return { write: text => writeWhole(Buffer.from(text)) }
}

function writeWhole(bytes: Buffer): void {
  let at = 0
  try {
    while (at < bytes.length) at += writeSync(1, bytes, at)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A nonblocking pipe: Node's stream waits for it.
    if (code === 'EAGAIN') process.stdout.write(bytes.subarray(at))
    // EPIPE means that the reader has closed the pipe, which is no error.
    else if (code !== 'EPIPE') cannotWrite(error as Error)
  }
}

function cannotWrite({ message }: Error): never {
  process.stderr.write(`error: the output cannot be written: ${message}\n`)
  process.exit(1)
}
