/** Callbacks of a session to its holder. */
export interface LiveListener {
  /** The session has stopped. */
  gone(): void
  /** A tool call of the running turn has its result. */
  toolEnded(): void
  /** A turn begins. */
  works(): void
  /** The turn is over. */
  rests(): void
}
