/** What a session tells its holder. */
export interface LiveListener {
  /** It has stopped. */
  gone(): void
  /** A tool call of its turn has its result. */
  toolEnded(): void
  /** A turn begins. */
  works(): void
  /** Its turn is over. */
  rests(): void
}
