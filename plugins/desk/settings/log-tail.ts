import { close as closeFile, read as readFile, fstat as statFile } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import { promisify } from 'node:util'
import { openRegularFile } from '../../../kernel/kit/read-file.js'
import type { Clock, Frame } from '../../../kernel/plugin.js'

const POLL_MS = 500
/** Bytes of the log's end that a reader gets first, bytes per read, and most characters of a line. */
const FIRST = 64 * 1024
const CHUNK = 64 * 1024
const LONGEST = 64 * 1024

const read = promisify(readFile)
const stat = promisify(statFile)
const close = promisify(closeFile)

interface Open {
  readonly handle: number
  readonly ino: number
  at: number
}

/** Yields the last lines of the log and every later line until the signal aborts. Follows rotation of the log. */
export async function* tailOf(path: string, clock: Pick<Clock, 'sleep'>, signal: AbortSignal): AsyncGenerator<Frame> {
  let file: Open | undefined
  let rest = ''
  let decoder = new StringDecoder('utf8')
  let isFirst = true
  try {
    while (!signal.aborted) {
      file ??= await opened(path, isFirst)
      isFirst = false
      const text = file ? decoder.write(await nextBytes(file)) : ''
      const lines = (rest + text).split('\n')
      rest = (lines.pop() ?? '').slice(-LONGEST)
      for (const line of lines) if (line !== '') yield { event: 'log', data: dataOf(line) }
      if (text !== '') continue
      if (file && (await isRotated(path, file))) {
        await close(file.handle)
        file = undefined
        decoder = new StringDecoder('utf8')
        continue
      }
      await clock.sleep(POLL_MS, signal).catch(() => {})
    }
  } finally {
    if (file) await close(file.handle)
  }
}

/** Opens the log: near its end the first time, at its beginning after a rotation. */
async function opened(path: string, isFirst: boolean): Promise<Open | undefined> {
  const handle = await openRegularFile(path).catch(() => undefined)
  if (handle === undefined) return undefined
  const { size, ino } = await stat(handle)
  return { handle, ino, at: isFirst ? Math.max(0, size - FIRST) : 0 }
}

async function nextBytes(file: Open): Promise<Buffer> {
  const { bytesRead, buffer } = await read(file.handle, Buffer.alloc(CHUNK), 0, CHUNK, file.at)
  file.at += bytesRead
  return buffer.subarray(0, bytesRead)
}

async function isRotated(path: string, { ino }: Open): Promise<boolean> {
  const handle = await openRegularFile(path).catch(() => undefined)
  if (handle === undefined) return false
  const now = await stat(handle)
  await close(handle)
  return now.ino !== ino
}

/** A line as an object. A line that is not JSON was truncated, or written without the logger. */
function dataOf(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return { level: 'info', msg: line }
  }
}
