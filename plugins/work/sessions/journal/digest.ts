import * as v from 'valibot'
import type { EventContent } from '../../acp/api.js'
import { EntryIndex } from './entry-index.js'
import { TypeIndex } from './type-index.js'
import { NO_USAGE, Usage, withEvent } from './usage.js'

const Stored = v.object({
  sequence: v.number(),
  usage: Usage,
  types: v.array(v.number()),
  entries: v.optional(
    v.object({ ends: v.array(v.number()), open: v.object({ start: v.number(), turn: v.optional(v.string()) }) }),
  ),
})

/** The counted members of an event. */
interface Counted {
  readonly type: string
  readonly turnId: string
  readonly content: EventContent
}

/** Aggregates of the events up to a sequence, kept in the row so that counts and searches need not read the whole journal. */
export class Digest {
  private constructor(
    public sequence = 0,
    public usage: Usage = NO_USAGE,
    readonly types = new TypeIndex(),
    readonly entries = new EntryIndex(),
  ) {}

  /** Reads the column; empty for an earlier version, an unreadable value, or a value that covers more than `last`. */
  static stored(column: string | null, last = Number.POSITIVE_INFINITY): Digest {
    try {
      const { sequence, usage, types, entries } = v.parse(Stored, JSON.parse(column ?? ''))
      // The journal may have been truncated since; counts beyond its end are invalid.
      if (sequence <= last) return new Digest(sequence, usage, new TypeIndex(types), new EntryIndex(entries, sequence))
    } catch {
      // Counted again from the beginning.
    }
    return new Digest()
  }

  /** Counts the next event. */
  add(sequence: number, event: Counted): void {
    this.sequence = sequence
    this.usage = withEvent(this.usage, event)
    this.types.note(sequence, event.type)
    this.entries.note(sequence, event)
  }

  /** The value of the column. */
  toString(): string {
    const { sequence, usage, types, entries } = this
    return JSON.stringify({ sequence, usage, types, entries })
  }
}
