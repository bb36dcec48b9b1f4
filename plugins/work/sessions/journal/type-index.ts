import type { SessionEventType } from '../events.js'

/** Events per stretch: the upper limit of reads for each event found. */
const STRETCH = 4000
/** One bit per type in stored rows, so types may only be appended. */
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

/** The event types in each stretch of a journal, so that a search for a rare type reads only the stretches that may have it. */
export class TypeIndex {
  readonly #stretches: number[]

  /** Restores the result of {@link toJSON}. */
  constructor(stretches: readonly number[] = []) {
    this.#stretches = [...stretches]
  }

  note(sequence: number, type: string): void {
    const stretch = Math.floor(sequence / STRETCH)
    while (this.#stretches.length <= stretch) this.#stretches.push(0)
    this.#stretches[stretch]! |= BITS.get(type) ?? ANY_OTHER
  }

  /** The last sequence up to `sequence` at which an event of that type may be; 0 when there is none. */
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
