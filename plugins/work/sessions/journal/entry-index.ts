/** Events of one stretch: what is read at most to find where an entry begins. */
const STRETCH = 1000
/** The start of an entry that an earlier version counted is unknown. */
const UNKNOWN = -1

const ALONE: ReadonlySet<string> = new Set(['user_message', 'system', 'session_stopped'])

/** An event that is a message for itself; others of one turn that follow each other are one message. */
export const standsAlone = (type: string): boolean => ALONE.has(type) || type.startsWith('transcript_marker.')

/** Where the newest entry begins, and what continues it. */
interface Open {
  readonly start: number
  /** Undefined: nothing continues it. */
  readonly turn: string | undefined
}

/**
 * Where the entries of a transcript begin, of the last event of each stretch of a journal: whoever looks for the beginning of a
 * long turn reads a stretch of it, and not all.
 */
export class EntryIndex {
  readonly #ends: number[]
  #open: Open

  /** From what {@link toJSON} gave; `counted` events of an earlier version have no place in it. */
  constructor({ ends, open }: { readonly ends?: readonly number[]; readonly open?: Partial<Open> } = {}, counted = 0) {
    this.#ends = ends ? [...ends] : Array.from({ length: Math.floor(counted / STRETCH) }, () => UNKNOWN)
    this.#open = { start: open?.start ?? UNKNOWN, turn: open?.turn }
  }

  note(sequence: number, { type, turnId }: { readonly type: string; readonly turnId: string }): void {
    const stretch = Math.floor(sequence / STRETCH)
    while (this.#ends.length < stretch) this.#ends.push(this.#open.start)
    if (standsAlone(type)) this.#open = { start: sequence, turn: undefined }
    else if (this.#open.turn !== turnId) this.#open = { start: sequence, turn: turnId }
  }

  /** Where the entry begins that this event belongs to, if it is the last one of a stretch and that is known. */
  startOf(sequence: number): number | undefined {
    if (sequence % STRETCH !== STRETCH - 1) return undefined
    const start = this.#ends[Math.floor(sequence / STRETCH)] ?? UNKNOWN
    return start === UNKNOWN ? undefined : start
  }

  toJSON(): { readonly ends: readonly number[]; readonly open: Open } {
    return { ends: this.#ends, open: this.#open }
  }
}
