import { crc32 } from 'node:zlib'
import type { Disk } from './disk.js'
import type { Mirror } from './mirror.js'
import type { Image } from './recover.js'

/** How far the log of a database was on the disk when this was written (README.md, "Damage"). */
export interface Mark {
  /** The header of the log, hex; its salts change each time the log starts over. */
  readonly header: string
  /** Frames up to the end of the last commit. */
  readonly frames: number
  /** The last page of that commit: number, size in bytes, CRC32. */
  readonly page: number
  readonly size: number
  readonly crc: number
  /** Bytes of the database file itself at that time, without the log. */
  readonly bytes: number
}

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24

/** Derives the mark from SQLite's writes to its log. */
export class MarkFinder {
  mark: Mark | undefined
  #header = ''
  readonly #frame = Buffer.alloc(FRAME_HEADER_BYTES)
  #pageAt = 0

  /** @param main bytes of the database file */
  write(offset: number, bytes: Uint8Array, main: number): void {
    if (offset === 0) {
      this.#header = Buffer.from(bytes).toString('hex')
    } else if (bytes.length === FRAME_HEADER_BYTES) {
      this.#frame.set(bytes)
      this.#pageAt = offset + FRAME_HEADER_BYTES
    } else if (offset === this.#pageAt && this.#frame.readUInt32BE(4) !== 0) {
      // Only the frame that ends a commit holds the size of the database.
      const frames = (offset + bytes.length - HEADER_BYTES) / (FRAME_HEADER_BYTES + bytes.length)
      const page = this.#frame.readUInt32BE(0)
      this.mark = { header: this.#header, frames, page, size: bytes.length, crc: crc32(bytes), bytes: main }
    }
  }
}

/** The part of the marked state that the files lack; `recovered` is the number of frames that SQLite reads from the log. */
export function missingFrom({ image, wal, mark }: Image, recovered: number): string | undefined {
  if (!isMark(mark)) return undefined
  if (wal.length === 0) {
    // Another program may have moved the log into the database and removed it: then the page is there.
    const page = image.subarray((mark.page - 1) * mark.size, mark.page * mark.size)
    return crc32(page) === mark.crc ? undefined : 'its log is missing'
  }
  if (Buffer.from(wal.subarray(0, HEADER_BYTES)).toString('hex') !== mark.header) return 'its log differs'
  if (image.length < mark.bytes) return `only ${image.length} of ${mark.bytes} bytes exist`
  return recovered < mark.frames ? `its log is damaged: ${recovered} of ${mark.frames} frames are readable` : undefined
}

/** Bytes of a database that are read at once. */
const CHUNK_BYTES = 4 * 1024 * 1024

/** Records the size and the CRC32 of a database that was closed in order. Without this note the next start takes longer. */
export async function seal(disk: Disk, { files, sizes, note }: Mirror): Promise<void> {
  const chunk = new Uint8Array(CHUNK_BYTES)
  let crc = 0
  for (let at = 0, count = 1; at < sizes.main && count > 0; at += count) {
    count = await disk.read(files.main, chunk, at)
    crc = crc32(chunk.subarray(0, count), crc)
  }
  await note.write({ bytes: sizes.main, crc })
}

/** Whether a database is unchanged since it was closed in order. */
export function isSealed({ image, wal, mark }: Image): boolean {
  return !isMark(mark) && wal.length === 0 && mark?.bytes === image.length && mark.crc === crc32(image)
}

function isMark(note: Partial<Mark> | undefined): note is Mark {
  return note?.header !== undefined
}
