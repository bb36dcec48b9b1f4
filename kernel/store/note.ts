import { crc32 } from 'node:zlib'
import type { Room } from '../contract/storage.js'
import { jsonOrText } from '../kit/canonical.js'
import type { Disk } from './disk.js'
import { noReserve, writeAll } from './room.js'

/** Two slots, each in a sector of its own, are written alternately: damage to the newer note leaves the older one. */
const SLOT_BYTES = 512
/** Notes per sync, which bounds both the cost and the number of notes that a power loss can take. */
const NOTES_A_SYNC = 64
const NEW_LINE = 10

/** A note as bytes: a line of JSON with a number and a checksum, for which the members `number` and `sum` are reserved. */
export function noteBytes(value: object, number = 0): Buffer {
  const text = JSON.stringify({ ...value, number })
  const bytes = Buffer.alloc(SLOT_BYTES, ' ')
  bytes.write(`${text.slice(0, -1)},"sum":${crc32(text)}}`, 'latin1')
  bytes[SLOT_BYTES - 1] = NEW_LINE
  return bytes
}

/** The newest intact note of a file; undefined when there is none. */
export function readNote<T extends object>(bytes: Uint8Array = new Uint8Array(0)): T | undefined {
  const notes = [0, SLOT_BYTES].flatMap(at => {
    const { sum, ...note } = Object(jsonOrText(Buffer.from(bytes.subarray(at, at + SLOT_BYTES)).toString()))
    return sum === crc32(JSON.stringify(note)) ? [note] : []
  })
  return notes.sort((a, b) => b.number - a.number)[0]
}

/**
 * Notes beside a log, written in place after each sync of the log. A note survives a kill at once, a power loss after its next
 * sync.
 */
export class Note {
  #number: number

  /** @param before the note in the file */
  constructor(
    readonly disk: Pick<Disk, 'pwrite' | 'fsync'>,
    readonly handle: number,
    before: object = {},
    readonly room: Room = noReserve,
  ) {
    this.#number = 'number' in before ? Number(before.number) : 0
  }

  /** Returns true when the caller is to sync the note, after it has notified those that wait for the log. */
  async write(value: object): Promise<boolean> {
    // Counted after the write: a repeated write must not go to the slot of the previous note.
    const number = this.#number + 1
    await writeAll(this.disk, this.handle, noteBytes(value, number), (number % 2) * SLOT_BYTES, this.room)
    this.#number = number
    return number % NOTES_A_SYNC === 0
  }

  sync(): Promise<void> {
    return this.disk.fsync(this.handle)
  }
}
