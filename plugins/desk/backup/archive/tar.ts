import { shown } from '../../../../kernel/kit/text.js'
import { LIMITS } from './limits.js'

/** A file or folder of an archive. */
export interface TarEntry {
  readonly path: string
  readonly type: 'file' | 'folder'
  readonly mode: number
  readonly size: number
}

export const BLOCK = 512
const NAME_BYTES = 100
/** Largest size that eleven octal digits hold. A larger size goes into an extended header before the entry. */
const OCTAL_MOST = 0o77777777777
const TYPE_FILE = 0x30
const TYPE_FOLDER = 0x35
const TYPE_MORE = 0x78
const [MODE_AT, UID_AT, GID_AT, SIZE_AT, TIME_AT, SUM_AT, TYPE_AT, MAGIC_AT] = [100, 108, 116, 124, 136, 148, 156, 257]
const SUM_BYTES = 8

/** Number of zero bytes after the content of an entry. */
export const paddingOf = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK

/** Two empty blocks end an archive. */
export const END = Buffer.alloc(2 * BLOCK)

/** The header blocks of an entry (POSIX.1-2001, so `tar xf` reads them). Times and owners are omitted: they are not content. */
export function headerOf(entry: TarEntry): Buffer {
  const isLong = Buffer.byteLength(entry.path) > NAME_BYTES || /[^\x20-\x7e]/.test(entry.path)
  if (!isLong && entry.size <= OCTAL_MOST) return block(entry.path, entry)
  const more = Buffer.from(`${recordOf('path', entry.path)}${recordOf('size', String(entry.size))}`)
  const name = entry.path.replace(/[^\x20-\x7e]/g, '_').slice(-NAME_BYTES)
  return Buffer.concat([
    block('more', { mode: 0o600, size: more.length }, TYPE_MORE),
    more,
    Buffer.alloc(paddingOf(more.length)),
    block(name, { ...entry, size: Math.min(entry.size, OCTAL_MOST) }, entry.type === 'file' ? TYPE_FILE : TYPE_FOLDER),
  ])
}

/** A record `<length> key=value\n`; the length includes its own digits. */
function recordOf(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`)
  let length = rest + 1
  while (rest + String(length).length !== length) length = rest + String(length).length
  return `${length} ${key}=${value}\n`
}

function block(
  name: string,
  { mode, size, ...entry }: Partial<TarEntry> & { mode: number; size: number },
  type?: number,
): Buffer {
  const bytes = Buffer.alloc(BLOCK)
  const octal = (value: number, at: number, length: number) =>
    bytes.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
  bytes.write(name, 0, NAME_BYTES, 'utf8')
  octal(mode, MODE_AT, 8)
  octal(0, UID_AT, 8)
  octal(0, GID_AT, 8)
  octal(size, SIZE_AT, 12)
  octal(0, TIME_AT, 12)
  bytes[TYPE_AT] = type ?? (entry.type === 'folder' ? TYPE_FOLDER : TYPE_FILE)
  bytes.write('ustar\x0000', MAGIC_AT, 'latin1')
  bytes.fill(' ', SUM_AT, SUM_AT + SUM_BYTES)
  octal(sumOf(bytes), SUM_AT, 7)
  return bytes
}

function sumOf(bytes: Uint8Array): number {
  let sum = 0
  for (const byte of bytes) sum += byte
  return sum
}

/** Why an archive cannot be read. */
export class TarProblem extends Error {}

/** Reads requested amounts of bytes from a stream of pieces. */
export class ByteReader {
  #piece: Uint8Array = new Uint8Array(0)
  #at = 0
  /** Bytes returned so far. */
  read = 0
  readonly #source: AsyncIterator<Uint8Array>

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** At least one and at most `most` bytes; undefined at the end. */
  async some(most: number): Promise<Uint8Array | undefined> {
    while (this.#at === this.#piece.length) {
      const { value, done } = await this.#source.next()
      if (done) return undefined
      this.#piece = value
      this.#at = 0
    }
    const bytes = this.#piece.subarray(this.#at, this.#at + most)
    this.#at += bytes.length
    this.read += bytes.length
    return bytes
  }

  /** Exactly `count` bytes; undefined at the end of the stream. */
  async exactly(count: number): Promise<Buffer | undefined> {
    const whole = Buffer.alloc(count)
    let filled = 0
    while (filled < count) {
      const bytes = await this.some(count - filled)
      if (bytes === undefined) {
        if (filled === 0) return undefined
        throw new TarProblem('it is cut off')
      }
      whole.set(bytes, filled)
      filled += bytes.length
    }
    return whole
  }

  async close(): Promise<void> {
    await this.#source.return?.()
  }
}

/** An entry whose content has not been read yet. */
export interface OpenEntry extends TarEntry {
  /** The content, in pieces; unread content is skipped. */
  bytes(): AsyncGenerator<Uint8Array>
}

/**
 * The entries of an archive as {@link headerOf} writes them; anything else (links, devices, sparse files) is refused.
 * @throws TarProblem
 */
export async function* entriesOf(reader: ByteReader): AsyncGenerator<OpenEntry> {
  let more: { path?: string; size?: number } = {}
  for (let count = 0; ; count++) {
    const header = await reader.exactly(BLOCK)
    if (header === undefined) throw new TarProblem('it is cut off')
    if (header.every(byte => byte === 0)) return endOf(reader)
    if (count > 2 * LIMITS.entries) throw new TarProblem(`it has more than ${LIMITS.entries} files`)
    const found = readBlock(header)
    if (found.type === TYPE_MORE) {
      if (found.size > LIMITS.headerBytes) throw new TarProblem('a name in it is too long')
      more = recordsOf((await reader.exactly(found.size + paddingOf(found.size))) ?? Buffer.alloc(0), found.size)
      continue
    }
    if (found.type !== TYPE_FILE && found.type !== TYPE_FOLDER)
      throw new TarProblem(`${JSON.stringify(more.path ?? found.path)} is neither a file nor a folder`)
    const type = found.type === TYPE_FILE ? 'file' : 'folder'
    const size = more.size ?? found.size
    if (type === 'folder' && size !== 0) throw new TarProblem('a folder in it has bytes')
    if (size > LIMITS.fileBytes) throw new TarProblem('a file in it is too large')
    const path = checkedPath(more.path ?? found.path)
    more = {}
    let left = size
    const bytes = async function* (): AsyncGenerator<Uint8Array> {
      while (left > 0) {
        const piece = await reader.some(left)
        if (piece === undefined) throw new TarProblem('it is cut off')
        left -= piece.length
        yield piece
      }
    }
    yield { path, type, mode: found.mode, size, bytes }
    for await (const _ of bytes());
    const padding = await reader.exactly(paddingOf(size))
    if (padding?.some(byte => byte !== 0)) throw new TarProblem('there are bytes between its files')
  }
}

/** Checks that only zeros follow. */
async function endOf(reader: ByteReader): Promise<void> {
  if ((await reader.exactly(BLOCK)) === undefined) throw new TarProblem('it is cut off')
  for (let bytes = await reader.some(BLOCK); bytes !== undefined; bytes = await reader.some(BLOCK))
    if (bytes.some(byte => byte !== 0)) throw new TarProblem('there are bytes after its end')
}

function readBlock(bytes: Buffer): { path: string; mode: number; size: number; type: number } {
  const octal = (at: number, length: number): number => {
    const text = bytes.toString('latin1', at, at + length).replace(/[\0 ]+$/, '')
    if (!/^[0-7]+$/.test(text)) throw new TarProblem('a header in it is damaged')
    return Number.parseInt(text, 8)
  }
  const sum = octal(SUM_AT, SUM_BYTES)
  const blank = Buffer.from(bytes).fill(' ', SUM_AT, SUM_AT + SUM_BYTES)
  if (sum !== sumOf(blank)) throw new TarProblem('a header in it is damaged')
  const end = bytes.indexOf(0)
  const path = bytes.toString('utf8', 0, Math.min(end < 0 ? NAME_BYTES : end, NAME_BYTES))
  return { path, mode: octal(MODE_AT, 8), size: octal(SIZE_AT, 12), type: bytes[TYPE_AT] ?? 0 }
}

function recordsOf(bytes: Buffer, size: number): { path?: string; size?: number } {
  const found: { path?: string; size?: number } = {}
  for (let at = 0; at < size; ) {
    const space = bytes.indexOf(0x20, at)
    const length = Number(bytes.toString('latin1', at, space < 0 ? at : space))
    const text = bytes.toString('utf8', space + 1, at + length - 1)
    const [, key, value = ''] = /^(path|size)=([\s\S]*)$/.exec(text) ?? []
    if (!Number.isSafeInteger(length) || length < 3 || at + length > size || key === undefined)
      throw new TarProblem('a header in it is damaged')
    if (key === 'path') found.path = value
    else if (/^\d{1,16}$/.test(value)) found.size = Number(value)
    else throw new TarProblem('a header in it is damaged')
    at += length
  }
  return found
}

/** A path that stays below its folder however it is joined. @throws TarProblem */
export function checkedPath(input: string): string {
  const path = input.endsWith('/') ? input.slice(0, -1) : input
  const parts = path.split('/')
  const isBad =
    Buffer.byteLength(path) > LIMITS.path ||
    parts.length > LIMITS.depth ||
    /[\0\\]/.test(path) ||
    parts.some(part => part === '' || part === '.' || part === '..')
  if (isBad) throw new TarProblem(`${shown(input)} leaves its folder`)
  return path
}
