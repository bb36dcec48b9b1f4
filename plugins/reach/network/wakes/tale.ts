/** An event of a session's journal. */
export interface TurnEvent {
  readonly type: string
  readonly turn_id: string
  readonly content: unknown
}

type Content = Readonly<Record<string, unknown>>

/** End of a wake's turn. */
export type End =
  /** Its prompt was removed from the queue, or its agent never got it. */
  | { readonly how: 'unsent'; readonly why: string }
  | { readonly how: 'over'; readonly wallMs?: number; readonly tokens?: number }

/** The turn of a wake, derived from the session's journal. The same events give the same result, also after a restart. */
export class Tale {
  isBegun = false
  end: End | undefined
  #before: number | undefined
  #after: number | undefined

  constructor(
    private readonly turnId: string,
    /** Tokens of the conversation before the turn, if reported. */
    before: number | undefined,
  ) {
    this.#before = before
  }

  add({ type, turn_id: turnId, content: rawContent }: TurnEvent): void {
    if (this.end) return
    const content = (rawContent ?? {}) as Content
    if (turnId !== this.turnId) {
      if (type === 'usage' && !this.isBegun) this.#before = usedOf(content) ?? this.#before
      // Turns of a session do not overlap: the end of this one was not written.
      else if (type === 'user_message' && this.isBegun) this.end = { how: 'over' }
      return
    }
    if (type === 'user_message') this.isBegun = true
    else if (type === 'usage') this.#after = usedOf(content) ?? this.#after
    else if (type === 'system' && content.note === 'prompt_dropped') this.end = { how: 'unsent', why: 'prompt_dropped' }
    else if (type === 'error' && content.prompt_sent === false) this.end = { how: 'unsent', why: 'prompt_not_sent' }
    else if (type === 'done' || type === 'error') this.end = this.#over(content.duration_ms)
  }

  #over(duration: unknown): End {
    const tokens = this.#after === undefined ? 0 : this.#after - (this.#before ?? 0)
    return {
      how: 'over',
      ...(typeof duration === 'number' && duration >= 0 && { wallMs: Math.round(duration) }),
      // After a compaction of the conversation, the usage is unknown.
      ...(tokens > 0 && { tokens }),
    }
  }
}

function usedOf({ usage }: Content): number | undefined {
  const { used } = (usage ?? {}) as { readonly used?: unknown }
  return Number.isSafeInteger(used) && (used as number) >= 0 ? (used as number) : undefined
}
