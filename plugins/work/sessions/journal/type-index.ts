import type { SessionEventType } from '../events.js'

/** Events of one stretch: what is read at most for each event that is found. */
const STRETCH = 4000
/** One bit each, in rows that are stored: a type is only ever added at the end. */
const TYPES: readonly SessionEventType[] = [
  'user_message',
  'agent_message',
  'thought',
  'tool_call',
  'tool_result',
  'plan',
  'permission',
  'usage',
  'runtime_progress',
  'runtime_warning',
  'transcript_marker.created',
  'system',
  'done',
  'error',
  'session_stopped',
  'hook_run',
]
const BITS = new Map<string, number>(TYPES.map((type, index) => [type, 1 << index]))
const ANY_OTHER = 1 << 30

/** Which types of events there are in which stretch of a journal: who looks for a rare one reads only where it may be. */
export class TypeIndex {
  readonly #stretches: number[]

  /** From what {@link toJSON} gave. */
  constructor(stretches: readonly number[] = []) {
    this.#stretches = [...stretches]
  }

  note(sequence: number, type: string): void {
    const stretch = Math.floor(sequence / STRETCH)
    while (this.#stretches.length <= stretch) this.#stretches.push(0)
    this.#stretches[stretch]! |= BITS.get(type) ?? ANY_OTHER
  }

  /** The last sequence, not after another, where there may be an event of that type; 0 when there is none. */
  lastPlace(sequence: number, type: string): number {
    const bit = BITS.get(type) ?? ANY_OTHER
    for (let stretch = Math.floor(sequence / STRETCH); stretch >= 0; stretch--) {
      if ((this.#stretches[stretch] ?? 0) & bit) return Math.min(sequence, (stretch + 1) * STRETCH - 1)
    }
    return 0
  }

  toJSON(): readonly number[] {
    return this.#stretches
  }
}
