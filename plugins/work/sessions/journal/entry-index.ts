/** Events per stretch: the upper limit of the search for the start of an entry. */
const STRETCH = 1000
/** The start of an entry counted by an earlier version is unknown. */
const UNKNOWN = -1

const ALONE: ReadonlySet<string> = new Set(['user_message', 'system', 'session_stopped'])

/** Whether an event is a message of its own; consecutive other events of one turn form one message. */
export const standsAlone = (type: string): boolean => ALONE.has(type) || type.startsWith('transcript_marker.')

/** The start of the newest entry, and the turn that continues it. */
interface Open {
  readonly start: number
  /** Undefined: nothing continues it. */
  readonly turn: string | undefined
}

/**
 * The start of the transcript entry at the last event of each stretch of a journal. With it, the search for the start of a long
 * turn reads one stretch instead of the whole turn.
 */
export class EntryIndex {
  readonly #ends: number[]
  #open: Open

  /** Restores the result of {@link toJSON}; the starts of `counted` events of an earlier version are unknown. */
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

  /** Start of the entry of this event, if it is the last one of a stretch and the start is known. */
  startOf(sequence: number): number | undefined {
    if (sequence % STRETCH !== STRETCH - 1) return undefined
    const start = this.#ends[Math.floor(sequence / STRETCH)] ?? UNKNOWN
    return start === UNKNOWN ? undefined : start
  }

  toJSON(): { readonly ends: readonly number[]; readonly open: Open } {
    return { ends: this.#ends, open: this.#open }
  }
}
