import * as v from 'valibot'
import type { EventContent } from '../events.js'
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

/** What the events up to a sequence come to; kept in the row, so that nobody reads a whole journal to count or to search. */
export class Digest {
  private constructor(
    public sequence = 0,
    public usage: Usage = NO_USAGE,
    readonly types = new TypeIndex(),
    readonly entries = new EntryIndex(),
  ) {}

  /** Of the column; nothing counted where it was written by an earlier version, cannot be read, or tells of more than `last`. */
  static stored(column: string | null, last = Number.POSITIVE_INFINITY): Digest {
    try {
      const { sequence, usage, types, entries } = v.parse(Stored, JSON.parse(column ?? ''))
      // What was counted of a journal that was cut since is not there any more.
      if (sequence <= last) return new Digest(sequence, usage, new TypeIndex(types), new EntryIndex(entries, sequence))
    } catch {
      // As one that was never counted.
    }
    return new Digest()
  }

  /** Counts the next event in. */
  add(sequence: number, event: Counted): void {
    this.sequence = sequence
    this.usage = withEvent(this.usage, event)
    this.types.note(sequence, event.type)
    this.entries.note(sequence, event)
  }

  /** The column. */
  toString(): string {
    const { sequence, usage, types, entries } = this
    return JSON.stringify({ sequence, usage, types, entries })
  }
}
