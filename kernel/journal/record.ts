import { StoreError } from '../store/error.js'
import { crc32c } from './crc32c.js'

/** Bytes before the payload: length (4), CRC32C of length, sequence and payload (4), sequence (8); little-endian. */
export const HEADER_BYTES = 16
/** The largest payload, 16 MiB. */
export const LARGEST_PAYLOAD = 16 * 1024 * 1024

/** Records ready to be written in one piece. */
export interface Batch {
  readonly bytes: Buffer
  readonly first: number
  readonly last: number
  /** Where each record begins in `bytes`. */
  readonly starts: readonly number[]
}

/** Payloads as records with sequences from `first` on. @throws StoreError `journal_record_too_large` */
export function encodeBatch(payloads: readonly Uint8Array[], first: number): Batch {
  const large = payloads.find(payload => payload.length > LARGEST_PAYLOAD)
  if (large !== undefined) {
    throw new StoreError(
      'journal_record_too_large',
      `a record of ${large.length} bytes is more than the ${LARGEST_PAYLOAD} allowed`,
      'store large content elsewhere and refer to it',
    )
  }
  const bytes = Buffer.allocUnsafe(payloads.reduce((sum, payload) => sum + HEADER_BYTES + payload.length, 0))
  const starts: number[] = []
  let at = 0
  for (const payload of payloads) {
    starts.push(at)
    bytes.writeUInt32LE(payload.length, at)
    writeSequence(bytes, first + starts.length - 1, at + 8)
    bytes.set(payload, at + HEADER_BYTES)
    const end = at + HEADER_BYTES + payload.length
    bytes.writeUInt32LE(checksum(bytes, at, end), at + 4)
    at = end
  }
  return { bytes, first, last: first + payloads.length - 1, starts }
}

/**
 * The length of the good record at `at` whose sequence `accept` takes; 0 when there is none; when the record goes beyond the
 * bytes, minus the number of bytes it needs.
 */
export function recordLength(bytes: Buffer, at: number, accept: (sequence: number) => boolean): number {
  if (at + HEADER_BYTES > bytes.length) return -HEADER_BYTES
  const length = HEADER_BYTES + bytes.readUInt32LE(at)
  if (length > HEADER_BYTES + LARGEST_PAYLOAD || !accept(readSequence(bytes, at + 8))) return 0
  if (at + length > bytes.length) return -length
  return bytes.readUInt32LE(at + 4) === checksum(bytes, at, at + length) ? length : 0
}

/** Sequence of the record at `at`. */
export function sequenceAt(bytes: Buffer, at: number): number {
  return readSequence(bytes, at + 8)
}

function checksum(bytes: Buffer, start: number, end: number): number {
  return crc32c(bytes.subarray(start + 8, end), crc32c(bytes.subarray(start, start + 4)))
}

function writeSequence(bytes: Buffer, sequence: number, at: number): void {
  bytes.writeUInt32LE(sequence % 2 ** 32, at)
  bytes.writeUInt32LE(Math.floor(sequence / 2 ** 32), at + 4)
}

function readSequence(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32
}
