import { crc32 } from 'node:zlib'
import type { Room } from '../contract/storage.js'
import type { Disk } from './disk.js'
import { noReserve, writeAll } from './room.js'

/** Two places, each in a sector of its own, are written in turn: what spoils the newer note leaves the older one. */
const SLOT_BYTES = 512
/** One sync in so many notes: what power loss can take is bounded, and so is the price. */
const NOTES_A_SYNC = 64
const NEW_LINE = 10

/** A note as bytes: a line of JSON with its number and checksum; `number` and `sum` are its own. */
export function noteBytes(value: object, number = 0): Buffer {
  const text = JSON.stringify({ ...value, number })
  const bytes = Buffer.alloc(SLOT_BYTES, ' ')
  bytes.write(`${text.slice(0, -1)},"sum":${crc32(text)}}`, 'latin1')
  bytes[SLOT_BYTES - 1] = NEW_LINE
  return bytes
}

/** The newest note of a file that is whole; undefined when there is none. */
export function readNote<T extends object>(bytes: Uint8Array = new Uint8Array(0)): T | undefined {
  const notes = [0, SLOT_BYTES].flatMap(at => {
    try {
      const { sum, ...note } = JSON.parse(Buffer.from(bytes.subarray(at, at + SLOT_BYTES)).toString())
      return sum === crc32(JSON.stringify(note)) ? [note] : []
    } catch {
      return []
    }
  })
  return notes.sort((a, b) => b.number - a.number)[0]
}

/** Notes beside a log, written in place after each sync of the log: one survives a kill at once, power loss later. */
export class Note {
  #number: number

  /** `before` is the note that the file holds. */
  constructor(
    readonly disk: Pick<Disk, 'pwrite' | 'fsync'>,
    readonly handle: number,
    before: object = {},
    readonly room: Room = noReserve,
  ) {
    this.#number = 'number' in before ? Number(before.number) : 0
  }

  /** Returns true when the caller is to sync the note, after those who wait for the log have gone on. */
  async write(value: object): Promise<boolean> {
    // Counted when it is written: one that is repeated must not go to the place of the note before.
    const number = this.#number + 1
    await writeAll(this.disk, this.handle, noteBytes(value, number), (number % 2) * SLOT_BYTES, this.room)
    this.#number = number
    return number % NOTES_A_SYNC === 0
  }

  sync(): Promise<void> {
    return this.disk.fsync(this.handle)
  }
}
