import { StoreError } from '../../../kernel/platform.js'
import { crc32c } from './crc32c.js'

/** Bytes before the payload: length (4), CRC32C of length, sequence and payload (4), sequence (8); little-endian. */
export const HEADER_BYTES = 16
/** The largest payload, 16 MiB. */
export const LARGEST_PAYLOAD = 16 * 1024 * 1024

/** Encoded records for one write. */
export interface Batch {
  readonly bytes: Buffer
  readonly first: number
  readonly last: number
  /** Offset of each record in `bytes`. */
  readonly starts: readonly number[]
}

/** Encodes payloads as records with sequences from `first` on. @throws StoreError `journal_record_too_large` */
export function encodeBatch(payloads: readonly Uint8Array[], first: number): Batch {
  const large = payloads.find(payload => payload.length > LARGEST_PAYLOAD)
  if (large !== undefined) {
    const message = `a record of ${large.length} bytes is more than the ${LARGEST_PAYLOAD} allowed`
    throw new StoreError('journal_record_too_large', message, 'store large content elsewhere and refer to it')
  }
  const bytes = Buffer.alloc(payloads.reduce((sum, payload) => sum + HEADER_BYTES + payload.length, 0))
  const starts: number[] = []
  let at = 0
  for (const payload of payloads) {
    const end = at + HEADER_BYTES + payload.length
    bytes.writeUInt32LE(payload.length, at)
    bytes.writeUIntLE(first + starts.length, at + 8, 6)
    bytes.set(payload, at + HEADER_BYTES)
    bytes.writeUInt32LE(checksum(bytes, at, end), at + 4)
    starts.push(at)
    at = end
  }
  return { bytes, first, last: first + payloads.length - 1, starts }
}

/**
 * The length of the good record at `at` with that sequence; 0 when there is none; for a record that exceeds the buffer, minus the
 * number of bytes it needs.
 */
export function recordLength(bytes: Buffer, at: number, sequence: number): number {
  if (at + HEADER_BYTES > bytes.length) return -HEADER_BYTES
  const length = HEADER_BYTES + bytes.readUInt32LE(at)
  if (length > HEADER_BYTES + LARGEST_PAYLOAD || bytes.readUIntLE(at + 8, 6) !== sequence) return 0
  if (at + length > bytes.length) return -length
  return bytes.readUInt32LE(at + 4) === checksum(bytes, at, at + length) ? length : 0
}

function checksum(bytes: Buffer, start: number, end: number): number {
  return crc32c(bytes.subarray(start + 8, end), crc32c(bytes.subarray(start, start + 4)))
}
